// POST /v2/models/…/generate and …/generate_stream: a flat JSON object in, one JSON object or a stream of
// server-sent events out. Works for decoupled models and others alike.

import type { ServedModel } from '../../core/model/served-model.ts';
import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { invalidArgument, StatusError } from '../../domain/status.ts';
import { contiguous } from '../../domain/tensor.ts';
import { type DecodedGenerateRequest, decodeGenerateRequest } from '../../wire/v2-json/generate-request.ts';
import { pickHeaders } from '../wanted-headers.ts';
import { statusAnswer } from './answer.ts';
import type { Body } from './body-reader.ts';
import { GenerateSink, GenerateStreamSink } from './generate-sink.ts';
import type { HttpHandler } from './http-connection.ts';
import type { HttpExchange } from './http-exchange.ts';
import { respondTraced, startHttpTrace } from './http-trace.ts';
import type { InferContext } from './infer-endpoint.ts';
import { decodeGenerateOnThread } from './large-json.ts';
import { headerOf } from './request-head.ts';
import { versionOf } from './version.ts';

/** One request on its way, for the functions below. */
interface Walk {
  readonly context: InferContext;
  readonly exchange: HttpExchange;
  readonly target: { readonly model: string; readonly version: number };
  readonly isStream: boolean;
}

/** Called with the head alone: what is already wrong with it is answered without keeping the body. */
export function beginGenerate(
  context: InferContext,
  exchange: HttpExchange,
  route: { model: string; version: string; isStream: boolean },
): ReturnType<HttpHandler['begin']> {
  try {
    const { services } = context;
    const target = { model: route.model, version: versionOf(services.catalog, route) };
    const headMs = services.trace.isOn ? performance.now() : 0;
    services.catalog.find(target.model, target.version);
    requireIdentity(headerOf(exchange.head, 'content-encoding'));
    const walk: Walk = { context, exchange, target, isStream: route.isStream };
    const onBody = (body: Body): void => {
      const isTraced = services.trace.isOn;
      const trace = isTraced ? startHttpTrace(services, exchange, { model: route.model, headMs }) : undefined;
      generate(walk, body, trace);
    };
    return { isBodyKept: true, onBody };
  } catch (thrown) {
    const answer = statusAnswer(StatusError.from(thrown));
    return { isBodyKept: false, onBody: () => exchange.respond(answer) };
  }
}

function requireIdentity(encoding: string | undefined): void {
  if (encoding === undefined || encoding === '' || encoding === 'identity') return;
  throw invalidArgument("Unsupported content-encoding, only 'identity' is supported.");
}

/** What is refused here is plain JSON; once the core has the request every answer goes through the sink. */
function generate(walk: Walk, body: Body, trace: RequestTrace | undefined): void {
  const { services } = walk.context;
  const refuse = (thrown: unknown): void =>
    respondTraced(walk.exchange, statusAnswer(StatusError.from(thrown)), trace);
  try {
    const model = services.catalog.find(walk.target.model, walk.target.version);
    const { inputBytesMax, jsonThread } = services;
    const options = { body: contiguous(body.pieces), model, inputBytesMax };
    if (body.byteLength <= JSON_INLINE_BYTES_MAX || body.byteLength > inputBytesMax) {
      submit(walk, { model, decoded: decodeGenerateRequest(options), trace });
      return;
    }
    void decodeGenerateOnThread(jsonThread, options)
      .then((decoded) => submit(walk, { model, decoded, trace }))
      .catch(refuse);
  } catch (thrown) {
    refuse(thrown);
  }
}

function submit(
  { context, exchange, target, isStream }: Walk,
  given: { model: ServedModel; decoded: DecodedGenerateRequest; trace: RequestTrace | undefined },
): void {
  const { model, decoded, trace } = given;
  const options = { exchange, idBytes: decoded.idBytes, trace };
  const sink = isStream ? new GenerateStreamSink(options) : new GenerateSink(options);
  const wanted = model.wantedHeaders;
  const headers =
    wanted === undefined ? undefined : pickHeaders(wanted, (name) => headerOf(exchange.head, name));
  const { request } = decoded;
  context.services.infer(target, { request, sink, cancellation: exchange.cancellation, trace, headers });
}
