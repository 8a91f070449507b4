// POST /v2/models/…/infer: body in, decoded request to the core, answer out. The hot path of the server.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { deflate, gzip } from 'node:zlib';
import type { Model } from '../../core/model/model.ts';
import { LATEST_VERSION } from '../../core/repository/catalog.ts';
import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import { internal, StatusError, unsupported } from '../../domain/status.ts';
import type { Cancellation } from '../../lib/cancellation.ts';
import type { DecodedInferRequest } from '../../wire/v2-json/decode-infer-request.ts';
import {
  type EncodedInferResponse,
  type EncodeInferResponseOptions,
  encodeInferResponse,
} from '../../wire/v2-json/encode-infer-response.ts';
import { parseHeaderLength } from '../../wire/v2-json/header-length.ts';
import type { InferRequestDecoder } from '../../wire/v2-json/infer-request-decoder.ts';
import { chooseEncoding } from './accept-encoding.ts';
import { type Body, decompress, isCompressed, readBody, UNSUPPORTED_COMPRESSION } from './body.ts';
import { forwardHeaders } from './header-forward.ts';
import { isLargeJsonAnswer, type JsonThread } from './json-thread.ts';
import { closeRequest, openRequest } from './open-requests.ts';
import { headerOf } from './request-headers.ts';
import { BINARY_TYPE, JSON_TYPE, respondError, respondStatus, SERVER_HEADER, TEXT_TYPE } from './respond.ts';
import type { HttpServices } from './services.ts';
import { parseVersion } from './version.ts';

export interface InferContext {
  readonly services: HttpServices;
  readonly decoder: InferRequestDecoder;
  readonly jsonThread: JsonThread;
}

/** One request on its way, for the functions below. */
interface Exchange {
  readonly context: InferContext;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly target: { model: string; version: number };
  readonly cancellation: Cancellation;
}

export function handleInfer(
  context: InferContext,
  exchange: { req: IncomingMessage; res: ServerResponse; model: string; version: string },
): void {
  const { req, res } = exchange;
  const target = { model: exchange.model, version: LATEST_VERSION };
  let isZipped: boolean;
  try {
    if (exchange.version !== '') target.version = parseVersion(exchange.version);
    requireUnary(context.services.catalog.find(target.model, target.version));
    isZipped = isCompressed(headerOf(req, 'content-encoding'));
  } catch (thrown) {
    refuse(res, StatusError.from(thrown));
    return;
  }
  const cancellation = openRequest(req.socket);
  const walk: Exchange = { context, req, res, target, cancellation };
  readBody(
    req,
    (body) => {
      if (isZipped) void unzipThenDecode(walk, body);
      else decodeBody(walk, body);
    },
    (error) => {
      res.shouldKeepAlive = false;
      reject(walk, error, JSON_TYPE);
    },
  );
}

function requireUnary(model: Model): Model {
  if (model.isDecoupled) {
    throw unsupported("HTTP end point doesn't support models with decoupled transaction policy");
  }
  return model;
}

function refuse(res: ServerResponse, error: StatusError): void {
  if (error.message === UNSUPPORTED_COMPRESSION) {
    const headers = ['Accept-Encoding', 'gzip, deflate'];
    respondStatus(res, { status: 501, message: error.message, headers });
  } else respondError(res, error, TEXT_TYPE);
}

async function unzipThenDecode(walk: Exchange, body: Body): Promise<void> {
  try {
    decodeBody(walk, await decompress(body, walk.context.services.inputBytesMax));
  } catch (thrown) {
    reject(walk, thrown, TEXT_TYPE);
  }
}

function decodeBody(walk: Exchange, body: Body): void {
  const { services, decoder, jsonThread } = walk.context;
  let type = TEXT_TYPE;
  try {
    const header = headerOf(walk.req, 'inference-header-content-length');
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
    void jsonThread.decode(options).then(
      (decoded) => submitSafely(walk, model, decoded),
      (thrown) => reject(walk, thrown, JSON_TYPE),
    );
  } catch (thrown) {
    reject(walk, thrown, type);
  }
}

/** Answers a request that never reached a model. */
function reject(walk: Exchange, thrown: unknown, type: string): void {
  closeRequest(walk.req.socket, walk.cancellation);
  respondError(walk.res, StatusError.from(thrown), type);
}

function submitSafely(walk: Exchange, model: Model, decoded: DecodedInferRequest): void {
  try {
    submit(walk, model, decoded);
  } catch (thrown) {
    reject(walk, thrown, JSON_TYPE);
  }
}

function submit(walk: Exchange, model: Model, decoded: DecodedInferRequest): void {
  const { services } = walk.context;
  const pattern = services.headerForwardPattern;
  const request =
    pattern === undefined
      ? decoded.request
      : { ...decoded.request, parameters: forwardHeaders(walk.req, pattern, decoded.request.parameters) };
  services.infer(walk.target, request, new UnarySink(walk, model, decoded), walk.cancellation);
}

/** One answer, written when the request is finished. */
class UnarySink implements ResponseSink {
  readonly #walk: Exchange;
  readonly #model: Model;
  readonly #decoded: DecodedInferRequest;
  #response: InferResponse | undefined;
  #count = 0;

  constructor(walk: Exchange, model: Model, decoded: DecodedInferRequest) {
    this.#walk = walk;
    this.#model = model;
    this.#decoded = decoded;
  }

  send(response: InferResponse): void {
    this.#response = response;
    this.#count++;
  }

  finish(): void {
    if (this.#response === undefined || this.#count !== 1) {
      this.fail(internal(`expected a single response, got ${this.#count}`));
      return;
    }
    closeRequest(this.#walk.req.socket, this.#walk.cancellation);
    const { outputs, idBytes } = this.#decoded;
    writeResponse(this.#walk, this.#response, { outputs, idBytes, model: this.#model });
  }

  fail(error: StatusError): void {
    closeRequest(this.#walk.req.socket, this.#walk.cancellation);
    respondError(this.#walk.res, error, TEXT_TYPE);
  }
}

/** Synchronous unless the answer is large JSON or compressed. */
function writeResponse(walk: Exchange, response: InferResponse, options: EncodeInferResponseOptions): void {
  try {
    if (isLargeJsonAnswer(response, options.outputs)) {
      void walk.context.jsonThread.encode(response, options).then(
        (encoded) => writeEncoded(walk, encoded),
        (thrown) => respondError(walk.res, StatusError.from(thrown), TEXT_TYPE),
      );
      return;
    }
    writeEncoded(walk, encodeInferResponse(response, options));
  } catch (thrown) {
    respondError(walk.res, StatusError.from(thrown), TEXT_TYPE);
  }
}

function writeEncoded(walk: Exchange, encoded: EncodedInferResponse): void {
  const { req, res } = walk;
  if (res.destroyed) return;
  const accept = headerOf(req, 'accept-encoding');
  const encoding = accept === undefined ? 'identity' : chooseEncoding(accept);
  if (encoding === 'identity') {
    writeParts(res, encoded, headersOf(encoded, encoded.byteLength));
    return;
  }
  const compress = encoding === 'gzip' ? gzip : deflate;
  compress(Buffer.concat(encoded.parts), (error, data) => {
    if (error !== null) {
      respondError(res, internal(error.message), TEXT_TYPE);
      return;
    }
    const headers = [...headersOf(encoded, data.length), 'Content-Encoding', encoding];
    writeParts(res, { parts: [data] }, headers);
  });
}

function headersOf(encoded: EncodedInferResponse, byteLength: number): string[] {
  const length = String(byteLength);
  if (encoded.jsonLength === undefined) {
    return ['Server', SERVER_HEADER, 'Content-Type', JSON_TYPE, 'Content-Length', length];
  }
  return [
    'Server',
    SERVER_HEADER,
    'Content-Type',
    BINARY_TYPE,
    'Inference-Header-Content-Length',
    String(encoded.jsonLength),
    'Content-Length',
    length,
  ];
}

/** Below this one copy and one write beat several writes. */
const SINGLE_WRITE_BYTES_MAX = 64 * 1024;

function writeParts(res: ServerResponse, body: { parts: readonly Buffer[] }, headers: string[]): void {
  if (res.destroyed || res.headersSent) return;
  res.writeHead(200, headers);
  const { parts } = body;
  if (parts.length === 1) {
    res.end(parts[0]);
    return;
  }
  let byteLength = 0;
  for (const part of parts) byteLength += part.length;
  if (byteLength <= SINGLE_WRITE_BYTES_MAX) {
    res.end(Buffer.concat(parts, byteLength));
    return;
  }
  res.cork();
  for (const part of parts) res.write(part);
  res.end();
  res.uncork();
}
