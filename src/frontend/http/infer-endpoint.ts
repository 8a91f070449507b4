// POST /v2/models/…/infer: body in, decoded request to the core, answer out. The hot path of the server.

import { deflate, gzip } from 'node:zlib';
import type { InferCall } from '../../core/infer.ts';
import type { ServedModel } from '../../core/model/served-model.ts';
import { inferShared } from '../../core/shm/infer-shared.ts';
import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import type { RequestRanges } from '../../domain/memory-range.ts';
import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { StatusError, unsupported } from '../../domain/status.ts';
import type { DecodedInferRequest } from '../../wire/v2-json/decode-infer-request.ts';
import {
  type EncodedInferResponse,
  type EncodeInferResponseOptions,
  encodeInferResponse,
} from '../../wire/v2-json/encode-infer-response.ts';
import { parseHeaderLength } from '../../wire/v2-json/header-length.ts';
import type { InferRequestDecoder } from '../../wire/v2-json/infer-request-decoder.ts';
import { SingleResponse } from '../single-response.ts';
import { pickHeaders } from '../wanted-headers.ts';
import { chooseEncoding } from './accept-encoding.ts';
import { BINARY_TYPE, errorAnswer, type HttpAnswer, JSON_TYPE, statusAnswer, TEXT_TYPE } from './answer.ts';
import type { Body } from './body-reader.ts';
import { decompress, isCompressed, UNSUPPORTED_COMPRESSION } from './decompress.ts';
import { forwardHeaders } from './header-forward.ts';
import type { HttpExchange, HttpHandler } from './http-connection.ts';
import { respondTraced, startHttpTrace } from './http-trace.ts';
import { decodeOnThread, encodeOnThread, isLargeJsonAnswer } from './large-json.ts';
import { headerOf } from './request-head.ts';
import type { HttpServices } from './services.ts';
import { versionOf } from './version.ts';

export interface InferContext {
  readonly services: HttpServices;
  readonly decoder: InferRequestDecoder;
}

/** One request on its way, for the functions below. */
interface Walk {
  readonly context: InferContext;
  readonly exchange: HttpExchange;
  readonly target: { readonly model: string; readonly version: number };
  /** Known once the body is complete; undefined when the request is not traced. */
  trace: RequestTrace | undefined;
}

/** Called with the head alone: what is already wrong with it is answered without keeping the body. */
export function beginInfer(
  context: InferContext,
  exchange: HttpExchange,
  route: { model: string; version: string },
): ReturnType<HttpHandler['begin']> {
  try {
    const { services } = context;
    const version = versionOf(services.catalog, route);
    const walk: Walk = { context, exchange, target: { model: route.model, version }, trace: undefined };
    const headMs = services.trace.isOn ? performance.now() : 0;
    requireUnary(services.catalog.find(route.model, version));
    const isZipped = isCompressed(headerOf(exchange.head, 'content-encoding'));
    const onBody = (body: Body): void => {
      if (services.trace.isOn)
        walk.trace = startHttpTrace(services, exchange, { model: route.model, headMs });
      if (isZipped) void unzipThenDecode(walk, body);
      else decodeBody(walk, body);
    };
    return { isBodyKept: true, onBody };
  } catch (thrown) {
    const answer = refusalOf(StatusError.from(thrown));
    return { isBodyKept: false, onBody: () => exchange.respond(answer) };
  }
}

function requireUnary(model: ServedModel): ServedModel {
  if (model.isDecoupled) {
    throw unsupported("HTTP end point doesn't support models with decoupled transaction policy");
  }
  return model;
}

function refusalOf(error: StatusError): HttpAnswer {
  if (error.message !== UNSUPPORTED_COMPRESSION) return statusAnswer(error, TEXT_TYPE);
  return { ...errorAnswer(501, error.message), headers: 'Accept-Encoding: gzip, deflate\r\n' };
}

async function unzipThenDecode(walk: Walk, body: Body): Promise<void> {
  try {
    decodeBody(walk, await decompress(body, walk.context.services.inputBytesMax));
  } catch (thrown) {
    reject(walk, thrown, TEXT_TYPE);
  }
}

function reject(walk: Walk, thrown: unknown, type: string): void {
  respondTraced(walk.exchange, statusAnswer(StatusError.from(thrown), type), walk.trace);
}

function decodeBody(walk: Walk, body: Body): void {
  const { services, decoder } = walk.context;
  let type = TEXT_TYPE;
  try {
    const header = headerOf(walk.exchange.head, 'inference-header-content-length');
    const jsonLength = parseHeaderLength(header, body.byteLength);
    const model = requireUnary(services.catalog.find(walk.target.model, walk.target.version));
    type = JSON_TYPE;
    const options = {
      body: body.pieces,
      bodyLength: body.byteLength,
      jsonLength,
      model,
      inputBytesMax: services.inputBytesMax,
    };
    if (jsonLength <= JSON_INLINE_BYTES_MAX) {
      submit(walk, model, decoder.decode(options));
      return;
    }
    void decodeOnThread(services.jsonThread, options).then(
      (decoded) => submitSafely(walk, model, decoded),
      (thrown) => reject(walk, thrown, JSON_TYPE),
    );
  } catch (thrown) {
    reject(walk, thrown, type);
  }
}

function submitSafely(walk: Walk, model: ServedModel, decoded: DecodedInferRequest): void {
  try {
    submit(walk, model, decoded);
  } catch (thrown) {
    reject(walk, thrown, JSON_TYPE);
  }
}

function submit(walk: Walk, model: ServedModel, decoded: DecodedInferRequest): void {
  const { services } = walk.context;
  const { exchange } = walk;
  const pattern = services.headerForwardPattern;
  const { request } = decoded;
  const forwarded =
    pattern === undefined
      ? request
      : { ...request, parameters: forwardHeaders(exchange.head.rawHeaders, pattern, request.parameters) };
  const sink = new UnarySink(walk, model, decoded);
  const wanted = model.wantedHeaders;
  const call: InferCall = {
    request: forwarded,
    sink,
    cancellation: exchange.cancellation,
    trace: walk.trace,
    headers: wanted === undefined ? undefined : pickHeaders(wanted, (name) => headerOf(exchange.head, name)),
  };
  if (decoded.ranges === undefined) services.infer(walk.target, call);
  else submitShared(walk, call, decoded.ranges);
}

/** Its tensors lie in shared memory: they are copied before the request starts and after it ends. */
function submitShared(walk: Walk, call: InferCall, ranges: RequestRanges): void {
  const { services } = walk.context;
  inferShared({
    memory: services.sharedMemory,
    ranges,
    isDecoupled: false,
    call,
    infer: (filled) => services.infer(walk.target, filled),
    onRefused: (error) => reject(walk, error, JSON_TYPE),
  });
}

/** One answer, written when the request is finished. */
class UnarySink implements ResponseSink {
  readonly #walk: Walk;
  readonly #model: ServedModel;
  readonly #decoded: DecodedInferRequest;
  readonly #single = new SingleResponse();

  constructor(walk: Walk, model: ServedModel, decoded: DecodedInferRequest) {
    this.#walk = walk;
    this.#model = model;
    this.#decoded = decoded;
  }

  send(response: InferResponse): boolean {
    return this.#single.add(response);
  }

  sendError(error: StatusError): boolean {
    return this.#single.add(error);
  }

  finish(): void {
    const { outcome } = this.#single;
    if (outcome instanceof StatusError) {
      this.fail(outcome);
      return;
    }
    this.#walk.trace?.mark('INFER_RESPONSE_COMPLETE');
    const { outputs, idBytes } = this.#decoded;
    writeResponse(this.#walk, outcome, { outputs, idBytes, model: this.#model });
  }

  fail(error: StatusError): void {
    this.#walk.trace?.mark('INFER_RESPONSE_COMPLETE');
    reject(this.#walk, error, TEXT_TYPE);
  }
}

/** Synchronous unless the answer is large JSON or compressed. */
function writeResponse(walk: Walk, response: InferResponse, options: EncodeInferResponseOptions): void {
  try {
    if (isLargeJsonAnswer(response, options.outputs)) {
      void encodeOnThread(walk.context.services.jsonThread, response, options).then(
        (encoded) => writeEncoded(walk, encoded),
        (thrown) => reject(walk, thrown, TEXT_TYPE),
      );
      return;
    }
    writeEncoded(walk, encodeInferResponse(response, options));
  } catch (thrown) {
    reject(walk, thrown, TEXT_TYPE);
  }
}

function writeEncoded(walk: Walk, encoded: EncodedInferResponse): void {
  const { exchange } = walk;
  const accept = headerOf(exchange.head, 'accept-encoding');
  const encoding = accept === undefined ? 'identity' : chooseEncoding(accept);
  if (encoding === 'identity') {
    respondTraced(exchange, answerOf(encoded, encoded), walk.trace);
    return;
  }
  const compress = encoding === 'gzip' ? gzip : deflate;
  compress(Buffer.concat(encoded.parts), (error, data) => {
    if (error !== null) {
      reject(walk, error, TEXT_TYPE);
      return;
    }
    const answer = answerOf(encoded, { parts: [data], byteLength: data.length });
    const headers = `${answer.headers}Content-Encoding: ${encoding}\r\n`;
    respondTraced(exchange, { ...answer, headers }, walk.trace);
  });
}

function answerOf(
  encoded: EncodedInferResponse,
  body: { parts: readonly Buffer[]; byteLength: number },
): HttpAnswer {
  const { parts, byteLength } = body;
  if (encoded.jsonLength === undefined) {
    return { status: 200, type: JSON_TYPE, headers: '', parts, byteLength };
  }
  const headers = `Inference-Header-Content-Length: ${encoded.jsonLength}\r\n`;
  return { status: 200, type: BINARY_TYPE, headers, parts, byteLength };
}
