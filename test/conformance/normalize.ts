// Brings a recorded and a received answer to a comparable form: what may differ between two correct servers
// (times, versions, order of outputs, reasons of parsers, texts of ONNX Runtime) is taken out, all else stays.
// Pure; the rules are those the recording was made for.
import type { CaseRequest } from './cases.ts';
import { isObject, type JsonObject } from './json.ts';
import type { Normal } from './normal-form.ts';
import type { NormalOptions } from './normal-parts.ts';
import { normalGrpc } from './normalize-grpc.ts';
import { normalHttp } from './normalize-http.ts';

export function normalAnswer(request: CaseRequest, answer: JsonObject, options: NormalOptions): Normal {
  if (Array.isArray(answer.parallel)) {
    const answers = answer.parallel.filter(isObject);
    return { parallel: answers.map((inner, i) => normalAnswer(request.parallel?.[i] ?? {}, inner, options)) };
  }
  const { only } = options.compare;
  if (only !== undefined) return Object.fromEntries(only.map((key) => [key, answer[key] ?? null]));
  const { rpc } = request;
  return rpc === undefined
    ? normalHttp(request, answer, options)
    : normalGrpc({ ...request, rpc }, answer, options);
}
