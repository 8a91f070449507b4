// One request of a ModelStreamInfer call: where its responses go. Made by model-stream-infer.ts.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { StatusError } from '../../domain/status.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import type { ModelInferRequest } from '../../wire/v2-proto/decode-infer-request.ts';
import { encodeStreamInferResponse, encodeStreamNotice } from '../../wire/v2-proto/encode-infer-response.ts';
import type { ConvertedInferRequest } from '../../wire/v2-proto/to-infer-request.ts';
import type { OutgoingMessage } from './grpc-call.ts';
import type { FoundModel } from './infer-request.ts';
import { PREFIX_BYTES } from './message-reader.ts';
import type { Lane } from './ordered-lanes.ts';

export interface StreamOwner {
  /** This many responses of one request were written since the client had last taken everything. */
  isPoolFull(writtenCount: number): boolean;
  /** True when this error of a model has ended the stream. */
  isFatal(error: StatusError): boolean;
  onRequestEnd(ordinal: number): void;
}

interface StreamRequestParts {
  /** Among the requests of the stream. */
  readonly ordinal: number;
  readonly message: ModelInferRequest;
  readonly found: FoundModel;
  readonly converted: ConvertedInferRequest;
  readonly trace: RequestTrace | undefined;
  readonly lane: Lane;
}

export class StreamRequest implements ResponseSink {
  readonly cancellation = new Cancellation();
  readonly #owner: StreamOwner;
  readonly #parts: StreamRequestParts;
  #isFinalSent = false;
  #writtenCount = 0;
  onRoom: (() => void) | undefined;

  constructor(owner: StreamOwner, parts: StreamRequestParts) {
    this.#owner = owner;
    this.#parts = parts;
  }

  /** The client has taken everything. */
  goOn(): void {
    this.#writtenCount = 0;
    this.onRoom?.();
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    const { converted, found } = this.#parts;
    let encoded: OutgoingMessage;
    try {
      const { outputs } = converted;
      const { model } = found;
      encoded = encodeStreamInferResponse(response, { outputs, model, isFinal, headroomBytes: PREFIX_BYTES });
    } catch (thrown) {
      return this.sendError(StatusError.from(thrown), isFinal);
    }
    this.#isFinalSent ||= isFinal;
    return this.#write(encoded);
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    this.#isFinalSent ||= isFinal;
    if (this.#owner.isFatal(error)) return true;
    return this.#write(this.#notice(error.message, isFinal));
  }

  finish(): void {
    const { converted, found } = this.#parts;
    if (!this.#isFinalSent && found.model.isDecoupled && converted.isEmptyFinalWanted) {
      this.#write(this.#notice('', true));
    }
    this.#end();
  }

  fail(error: StatusError): void {
    if (!this.cancellation.isCancelled) this.sendError(error, true);
    this.#end();
  }

  #notice(errorMessage: string, isFinal: boolean): OutgoingMessage {
    const { id, modelName, modelVersion } = this.#parts.message;
    const names = { id, modelName, modelVersion };
    return encodeStreamNotice({ errorMessage, ...names, isFinal, headroomBytes: PREFIX_BYTES });
  }

  #write(encoded: OutgoingMessage): boolean {
    const { trace, lane } = this.#parts;
    this.#writtenCount++;
    trace?.mark('GRPC_SEND_START');
    const hasRoom = lane.write(encoded);
    trace?.mark('GRPC_SEND_END');
    return hasRoom && !this.#owner.isPoolFull(this.#writtenCount);
  }

  #end(): void {
    this.#parts.lane.end();
    this.#parts.trace?.end();
    this.#owner.onRequestEnd(this.#parts.ordinal);
  }
}
