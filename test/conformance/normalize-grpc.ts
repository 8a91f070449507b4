// The comparable form of an answer to a gRPC call. Pure; called by normalize.ts.
import type { GrpcCaseRequest } from './cases.ts';
import { answerMessage } from './grpc-exchange.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import type { Normal, NormalObject } from './normal-form.ts';
import {
  byText,
  type NormalOptions,
  normalErrorText,
  normalIndex,
  normalServer,
  withDefaultsAllowed,
} from './normal-parts.ts';
import { statisticsDelta, statisticsNames } from './normalize-statistics.ts';

export function normalGrpc(
  request: GrpcCaseRequest,
  answer: JsonObject,
  options: NormalOptions,
): NormalObject {
  if (answer.code === undefined) return answer;
  const out: NormalObject = { code: answer.code };
  if (typeof answer.details === 'string') out.details = normalErrorText(answer.details);
  if (Array.isArray(answer.messages)) {
    const messages = answer.messages.filter(isObject).map(normalStreamMessage);
    out.messages = (request.messages?.length ?? 0) > 1 ? byRequestId(messages) : messages;
    return out;
  }
  const message = answerMessage(answer);
  if (message !== undefined) out.message = normalMessage(request.rpc, message, options);
  return out;
}

function normalMessage(rpc: string, message: JsonObject, options: NormalOptions): Normal {
  switch (rpc) {
    case 'ModelInfer':
      return normalInfer(message);
    case 'ServerMetadata':
      return normalServer(message);
    case 'ModelConfig':
      return withDefaultsAllowed(message);
    case 'RepositoryIndex':
      return { models: normalIndex(Array.isArray(message.models) ? message.models : [], options) };
    case 'ModelStatistics':
      return options.compare.delta_from === undefined
        ? { model_stats: statisticsNames(message) }
        : { delta: statisticsDelta(answerMessage(options.earlier) ?? {}, message) };
    default:
      return message;
  }
}

function normalStreamMessage(message: JsonObject): JsonObject {
  const out: JsonObject = { ...message };
  if (typeof out.error_message === 'string') out.error_message = normalErrorText(out.error_message);
  if (isObject(out.infer_response)) out.infer_response = normalInfer(out.infer_response);
  return out;
}

/** Answers to different requests of a stream may be interleaved: only the order per request id counts. */
function byRequestId(messages: readonly JsonObject[]): JsonObject {
  const out: Record<string, Json[]> = {};
  for (const message of messages) {
    const response = isObject(message.infer_response) ? message.infer_response : {};
    const id = `id ${String(response.id ?? '')}`;
    out[id] ??= [];
    out[id].push(message);
  }
  return out;
}

/** Outputs have no order, so raw data moves to the output it belongs to. */
function normalInfer(message: JsonObject): JsonObject {
  const { raw_output_contents: raw, ...rest } = message;
  const out: JsonObject = rest;
  const outputs = (Array.isArray(out.outputs) ? out.outputs : []).filter(isObject);
  const isPaired = Array.isArray(raw) && raw.length === outputs.length;
  if (raw !== undefined && !isPaired) out['(raw_output_contents)'] = raw;
  if (outputs.length === 0) return out;
  const paired = outputs.map((output, i) => (isPaired ? { ...output, '(raw)': raw[i] ?? null } : output));
  return { ...out, outputs: paired.sort(byText('name')) };
}
