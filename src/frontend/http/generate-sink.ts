// Where the responses of a generate request go: one JSON document, or one server-sent event each. The first response
// decides the status, an error among them too; generate-endpoint.ts makes a sink per request.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { StatusError } from '../../domain/status.ts';
import { errorDocument } from '../../wire/v2-json/documents.ts';
import { encodeGenerateResponse } from '../../wire/v2-json/generate-response.ts';
import { EVENT_STREAM_TYPE, httpStatusOf, JSON_TYPE } from './answer.ts';
import type { HttpStreamWriter } from './answer-stream.ts';
import type { HttpExchange } from './http-exchange.ts';

export interface GenerateSinkOptions {
  readonly exchange: HttpExchange;
  /** The request's id, when it is not valid UTF-8. */
  readonly idBytes: Buffer | undefined;
  /** Undefined when the request is not traced. */
  readonly trace: RequestTrace | undefined;
}

const OK = 200;
const ONE_RESPONSE_ONLY = Buffer.from(
  errorDocument(
    'generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses',
  ),
);
const EVENT_START = Buffer.from('data: ');
const EVENT_END = Buffer.from('\n\n');

/** One response or one error as JSON, with the status it would have as the first. */
interface Document {
  readonly status: number;
  readonly json: Buffer;
}

function documentOf(response: InferResponse, idBytes: Buffer | undefined): Document {
  try {
    return { status: OK, json: encodeGenerateResponse(response, { idBytes }) };
  } catch (thrown) {
    return errorDocumentOf(StatusError.from(thrown));
  }
}

function errorDocumentOf(error: StatusError): Document {
  return { status: httpStatusOf(error.code), json: Buffer.from(errorDocument(error.message)) };
}

/** generate: waits for the end, and the model must have sent exactly one response by then. */
export class GenerateSink implements ResponseSink {
  readonly #options: GenerateSinkOptions;
  #first: Document | undefined;
  #count = 0;
  #isFinal = false;

  constructor(options: GenerateSinkOptions) {
    this.#options = options;
  }

  /** Only the first is kept, so a model may send any number. */
  send(response: InferResponse, isFinal: boolean): boolean {
    this.#first ??= documentOf(response, this.#options.idBytes);
    return this.#counted(isFinal);
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    this.#first ??= errorDocumentOf(error);
    return this.#counted(isFinal);
  }

  #counted(isFinal: boolean): boolean {
    this.#options.trace?.mark('INFER_RESPONSE_COMPLETE');
    this.#count += 1;
    this.#isFinal = isFinal;
    return true;
  }

  /** The status stays that of the first response, whatever the document says. */
  finish(): void {
    const { exchange, trace } = this.#options;
    const status = this.#first?.status ?? OK;
    const json = this.#count === 1 ? this.#first!.json : ONE_RESPONSE_ONLY;
    if (!this.#isFinal) trace?.mark('INFER_RESPONSE_COMPLETE');
    trace?.mark('HTTP_SEND_START');
    exchange.begin({ status, type: JSON_TYPE }).end(json);
    trace?.mark('HTTP_SEND_END');
    trace?.end();
  }

  fail(error: StatusError): void {
    this.sendError(error, true);
    this.finish();
  }
}

/** generate_stream: each response leaves as an event the moment it comes. */
export class GenerateStreamSink implements ResponseSink {
  readonly #options: GenerateSinkOptions;
  #writer: HttpStreamWriter | undefined;
  #isFinal = false;
  onRoom: (() => void) | undefined;

  constructor(options: GenerateSinkOptions) {
    this.#options = options;
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    return this.#sendEvent(documentOf(response, this.#options.idBytes), isFinal);
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    return this.#sendEvent(errorDocumentOf(error), isFinal);
  }

  finish(): void {
    const { trace } = this.#options;
    if (!this.#isFinal) trace?.mark('INFER_RESPONSE_COMPLETE');
    this.#open(OK).end();
    trace?.mark('HTTP_SEND_END');
    trace?.end();
  }

  fail(error: StatusError): void {
    this.sendError(error, true);
    this.finish();
  }

  #sendEvent({ status, json }: Document, isFinal: boolean): boolean {
    this.#options.trace?.mark('INFER_RESPONSE_COMPLETE');
    this.#isFinal = isFinal;
    return this.#open(status).write(Buffer.concat([EVENT_START, json, EVENT_END]));
  }

  #open(status: number): HttpStreamWriter {
    if (this.#writer === undefined) {
      this.#options.trace?.mark('HTTP_SEND_START');
      this.#writer = this.#options.exchange.begin({ status, type: EVENT_STREAM_TYPE });
      this.#writer.onDrain = () => this.onRoom?.();
    }
    return this.#writer;
  }
}
