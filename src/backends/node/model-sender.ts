// The sender of a decoupled model's request. A response that the model may not give reaches the client as an error, as it
// would from execute, so that a forgotten await loses nothing.

import type {
  InferResponse,
  ResponseSender as ModelSideSender,
} from '../../backend/model-sdk/model-request.ts';
import type { ExecuteOutputs, ResponseSender } from '../../backend/sdk.ts';
import type { StatusError } from '../../domain/status.ts';

/** Turns what the model gives into what is sent; never throws. */
export type Convert = (response: InferResponse | Error) => ExecuteOutputs | StatusError;

export class ModelSender implements ModelSideSender {
  readonly #sender: ResponseSender;
  readonly #convert: Convert;
  #isFinished = false;

  constructor(sender: ResponseSender, convert: Convert) {
    this.#sender = sender;
    this.#convert = convert;
  }

  get isCancelled(): boolean {
    return this.#sender.isCancelled;
  }

  send(response: InferResponse | Error): Promise<void> {
    if (this.#isFinished) throw new Error('a response was sent after the request was finished');
    this.#sender.send(this.#convert(response), false);
    return this.#sender.whenRoom();
  }

  finish(response?: InferResponse | Error): void {
    if (this.#isFinished) {
      if (response !== undefined) throw new Error('a response was sent after the request was finished');
      return;
    }
    this.#isFinished = true;
    if (response === undefined) this.#sender.finish();
    else this.#sender.send(this.#convert(response), true);
  }

  /** The execution broke; what has been finished stays as it is. */
  fail(error: StatusError): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#sender.send(error, true);
  }
}
