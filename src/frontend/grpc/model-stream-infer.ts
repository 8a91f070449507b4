// ModelStreamInfer: many requests and their answers on one call. Answers of ordinary models leave in the order of the
// requests, those of decoupled models as they come. A request that fails is answered inside the stream, which goes on;
// with the metadata `triton_grpc_error: true` the failure of a model ends it with that status.

import { GRPC_STREAM_REQUESTS_MAX } from '../../domain/limits.ts';
import { StatusError, unavailable } from '../../domain/status.ts';
import { NumberTable } from '../../lib/number-table.ts';
import { decodeInferRequest, type ModelInferRequest } from '../../wire/v2-proto/decode-infer-request.ts';
import { encodeStreamNotice } from '../../wire/v2-proto/encode-infer-response.ts';
import { unparsableRequest } from '../../wire/v2-proto/grpc-status.ts';
import type { CallHandler, GrpcCall, OutgoingMessage } from './grpc-call.ts';
import { encodingFor, findHeader } from './grpc-headers.ts';
import { convert, type FoundModel, findModel, startInfer, startTrace } from './infer-request.ts';
import { PREFIX_BYTES } from './message-reader.ts';
import { STOPPING_TEXT } from './model-infer.ts';
import { type Lane, OrderedLanes } from './ordered-lanes.ts';
import type { GrpcServices } from './services.ts';
import { type StreamOwner, StreamRequest } from './stream-request.ts';

export class ModelStreamInfer implements CallHandler, StreamOwner {
  readonly #services: GrpcServices;
  readonly #call: GrpcCall;
  readonly #isErrorFatal: boolean;
  readonly #requests = new NumberTable<StreamRequest>();
  #requestCount = 0;
  readonly #lanes = new OrderedLanes((encoded) => this.#write(encoded));
  /** Decoupled models write whenever they have something. */
  readonly #freeLane: Lane = { write: (encoded) => this.#write(encoded), end: () => {} };
  #isHalfClosed = false;
  #isBehind = false;

  constructor(services: GrpcServices, call: GrpcCall) {
    this.#services = services;
    this.#call = call;
    this.#isErrorFatal = findHeader(call.headers.pairs, 'triton_grpc_error') === 'true';
    call.encoding = encodingFor(services.compressionLevel, call.headers.acceptEncoding);
    call.cancellation.onCancel(() => this.#abandon());
  }

  onMessage(pieces: readonly Buffer[]): void {
    const startMs = performance.now();
    let message: ModelInferRequest;
    try {
      message = decodeInferRequest(pieces);
    } catch (thrown) {
      this.#end(unparsableRequest(thrown) ?? StatusError.from(thrown));
      return;
    }
    const found = this.#find(message);
    const isFree = !(found instanceof StatusError) && found.model.isDecoupled;
    const lane = isFree ? this.#freeLane : this.#lanes.open();
    try {
      if (found instanceof StatusError) throw found;
      this.#start({ message, found, lane, startMs });
    } catch (thrown) {
      refuse(message, StatusError.from(thrown), lane);
    }
    this.#look();
  }

  #find(message: ModelInferRequest): FoundModel | StatusError {
    if (this.#services.isStopping()) return unavailable(STOPPING_TEXT);
    try {
      return findModel(this.#services, message);
    } catch (thrown) {
      return StatusError.from(thrown);
    }
  }

  #start(parts: { message: ModelInferRequest; found: FoundModel; lane: Lane; startMs: number }): void {
    const { message, found, lane } = parts;
    const services = this.#services;
    const metadata = this.#call.headers.pairs;
    const converted = convert(services, message, metadata);
    const trace = startTrace(services, message.modelName, metadata);
    trace?.mark('GRPC_WAITREAD_START', parts.startMs);
    trace?.mark('GRPC_WAITREAD_END');
    const ordinal = this.#requestCount++;
    const request = new StreamRequest(this, { ordinal, message, found, converted, trace, lane });
    this.#requests.set(ordinal, request);
    try {
      startInfer(services, {
        found,
        converted,
        metadata,
        sink: request,
        cancellation: request.cancellation,
        trace,
        onRefused: (error) => {
          refuse(message, error, lane);
          trace?.end();
          this.onRequestEnd(ordinal);
        },
      });
    } catch (thrown) {
      this.#requests.delete(ordinal);
      trace?.end();
      throw thrown;
    }
  }

  #write(encoded: OutgoingMessage): boolean {
    const hasRoom = this.#call.write(encoded);
    if (!hasRoom) this.#isBehind = true;
    return hasRoom;
  }

  /** The model sends faster than the client reads, by count of responses. */
  isPoolFull(writtenCount: number): boolean {
    return writtenCount >= this.#services.responsePoolMax && this.#call.wantRoom();
  }

  isFatal(error: StatusError): boolean {
    if (!this.#isErrorFatal) return false;
    this.#end(error);
    return true;
  }

  onRequestEnd(ordinal: number): void {
    this.#requests.delete(ordinal);
    this.#look();
  }

  onHalfClose(): void {
    this.#isHalfClosed = true;
    this.#look();
  }

  onRoom(): void {
    this.#isBehind = false;
    for (const request of this.#requests.values()) request.goOn();
    this.#look();
  }

  /** Reads on, or not, and ends the stream when the last answer has been written. */
  #look(): void {
    // Quick requests behind a slow one have ended, but their answers wait here.
    const unanswered = Math.max(this.#requests.size, this.#lanes.openCount);
    this.#call.isHolding = unanswered >= GRPC_STREAM_REQUESTS_MAX || this.#isBehind;
    // Letting go may have brought new requests.
    if (this.#isHalfClosed && this.#requests.size === 0) this.#call.finish();
  }

  #end(error: StatusError): void {
    this.#call.fail(error);
    this.#abandon();
  }

  #abandon(): void {
    for (const request of this.#requests.values()) request.cancellation.cancel();
  }
}

/** An error of the request itself carries its id alone. */
function refuse(message: ModelInferRequest, error: StatusError, lane: Lane): void {
  const notice = { errorMessage: error.message, id: message.id, modelName: '', modelVersion: '' };
  lane.write(encodeStreamNotice({ ...notice, isFinal: undefined, headroomBytes: PREFIX_BYTES }));
  lane.end();
}
