// ModelInfer: one request, one answer. The hot path of gRPC; no promise is made for an ordinary request.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { internal, StatusError, unavailable, unsupported } from '../../domain/status.ts';
import type { Lease } from '../../lib/chunk-pool.ts';
import { decodeInferRequest } from '../../wire/v2-proto/decode-infer-request.ts';
import { encodeInferResponse } from '../../wire/v2-proto/encode-infer-response.ts';
import { unparsableRequest } from '../../wire/v2-proto/grpc-status.ts';
import type { ConvertedInferRequest } from '../../wire/v2-proto/to-infer-request.ts';
import { SingleResponse } from '../single-response.ts';
import type { CallHandler, GrpcCall } from './grpc-call.ts';
import { encodingFor } from './grpc-headers.ts';
import { convert, type FoundModel, findModel, startInfer, startTrace } from './infer-request.ts';
import { PREFIX_BYTES } from './message-reader.ts';
import type { GrpcServices } from './services.ts';

export const STOPPING_TEXT = 'GRPC server is shutting down and has stopped accepting new requests.';

export class ModelInfer implements CallHandler {
  readonly #services: GrpcServices;
  readonly #call: GrpcCall;
  readonly isReturningMessages = true;
  readonly #startMs = performance.now();
  #isStarted = false;

  constructor(services: GrpcServices, call: GrpcCall) {
    this.#services = services;
    this.#call = call;
    call.encoding = encodingFor(services.compressionLevel, call.headers.acceptEncoding);
  }

  onMessage(pieces: readonly Buffer[], _byteLength: number, lease: Lease | undefined): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    try {
      this.#start(pieces, lease);
    } catch (thrown) {
      this.#call.fail(unparsableRequest(thrown) ?? StatusError.from(thrown));
    }
  }

  onHalfClose(): void {
    if (!this.#isStarted) this.#call.fail(internal('Unable to parse request'));
  }

  #start(pieces: readonly Buffer[], lease: Lease | undefined): void {
    const services = this.#services;
    const call = this.#call;
    if (services.isStopping()) throw unavailable(STOPPING_TEXT);
    const message = decodeInferRequest(pieces);
    const found = findModel(services, message);
    if (found.model.isDecoupled) {
      throw unsupported("ModelInfer RPC doesn't support models with decoupled transaction policy");
    }
    const metadata = call.headers.pairs;
    const converted = convert(services, message, metadata);
    const trace = startTrace(services, message.modelName, metadata);
    trace?.mark('GRPC_WAITREAD_START', this.#startMs);
    trace?.mark('GRPC_WAITREAD_END');
    try {
      startInfer(services, {
        found,
        converted,
        metadata,
        sink: new UnarySink(call, { found, converted, trace, lease }),
        cancellation: call.cancellation,
        trace,
        onRefused: (error) => {
          call.fail(error);
          trace?.end();
        },
      });
    } catch (thrown) {
      trace?.end();
      throw thrown;
    }
  }
}

class UnarySink implements ResponseSink {
  readonly #call: GrpcCall;
  readonly #found: FoundModel;
  readonly #converted: ConvertedInferRequest;
  readonly #trace: RequestTrace | undefined;
  readonly #requestLease: Lease | undefined;
  #responseLease: Lease | undefined;
  #isOwner = false;
  readonly #single = new SingleResponse();

  constructor(
    call: GrpcCall,
    parts: {
      found: FoundModel;
      converted: ConvertedInferRequest;
      trace: RequestTrace | undefined;
      /** Of the request's message. */
      lease: Lease | undefined;
    },
  ) {
    this.#call = call;
    this.#found = parts.found;
    this.#converted = parts.converted;
    this.#trace = parts.trace;
    this.#requestLease = parts.lease;
  }

  send(response: InferResponse): boolean {
    return this.#single.add(response);
  }

  sendError(error: StatusError): boolean {
    return this.#single.add(error);
  }

  own(outputs: Lease | undefined): void {
    this.#isOwner = true;
    this.#responseLease = outputs;
  }

  finish(): void {
    const { outcome } = this.#single;
    if (outcome instanceof StatusError) {
      this.fail(outcome);
      return;
    }
    const trace = this.#trace;
    trace?.mark('INFER_RESPONSE_COMPLETE');
    try {
      const { outputs } = this.#converted;
      const encoded = encodeInferResponse(outcome, {
        outputs,
        model: this.#found.model,
        headroomBytes: PREFIX_BYTES,
      });
      trace?.mark('GRPC_SEND_START');
      this.#call.respond(encoded, this.#responseLease);
      if (this.#isOwner) this.#requestLease?.release();
    } catch (thrown) {
      this.#call.fail(StatusError.from(thrown));
    }
    trace?.mark('GRPC_SEND_END');
    trace?.end();
  }

  fail(error: StatusError): void {
    this.#trace?.mark('GRPC_SEND_START');
    this.#call.fail(error);
    this.#trace?.mark('GRPC_SEND_END');
    this.#trace?.end();
  }
}
