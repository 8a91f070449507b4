// Where the responses of an inference go that a host asked for: back to that host, as RESULT frames. Made by
// host-calls.ts.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import { planOffsets, type ResultMessage, toCallParameters } from '../../instance/call-frame.ts';

export interface HostCallSinkOptions {
  sendResult(message: ResultMessage, data: readonly TensorBytes[]): void;
  onEnd(): void;
}

export class HostCallSink implements ResponseSink {
  readonly #callId: number;
  readonly #options: HostCallSinkOptions;
  #isPaused = false;
  /** The last response said that it is the last; nothing has to follow it. */
  #isFinalSent = false;
  onRoom: (() => void) | undefined;

  constructor(callId: number, options: HostCallSinkOptions) {
    this.#callId = callId;
    this.#options = options;
  }

  /** The model that asked takes the responses more slowly than they come. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!isPaused) this.onRoom?.();
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    const { outputs } = response;
    const offsets = planOffsets(outputs.map(({ byteLength }) => byteLength));
    const message: ResultMessage = {
      callId: this.#callId,
      isFinal,
      response: {
        model: response.modelName,
        version: response.modelVersion,
        id: response.id,
        parameters: toCallParameters(response.parameters),
        outputs: outputs.map(({ name, datatype, shape, byteLength }, i) => ({
          name,
          datatype,
          shape,
          offset: offsets[i]!,
          byteLength,
        })),
      },
    };
    this.#isFinalSent = isFinal;
    this.#options.sendResult(
      message,
      outputs.map(({ data }) => data),
    );
    return !this.#isPaused;
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    this.#isFinalSent = isFinal;
    this.#options.sendResult({ callId: this.#callId, isFinal, error: errorOf(error) }, []);
    return !this.#isPaused;
  }

  finish(): void {
    if (!this.#isFinalSent) this.#options.sendResult({ callId: this.#callId, isFinal: true }, []);
    this.#options.onEnd();
  }

  fail(error: StatusError): void {
    if (!this.#isFinalSent) {
      this.#options.sendResult({ callId: this.#callId, isFinal: true, error: errorOf(error) }, []);
    }
    this.#options.onEnd();
  }
}

function errorOf({ code, message }: StatusError): NonNullable<ResultMessage['error']> {
  return { code, message };
}
