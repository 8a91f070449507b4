// Stands before the sink of a request that was not in the cache: passes everything on and, when the request has succeeded with
// one response, gives that response to the cache. Made by cached-model.ts.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';

export class CachingSink implements ResponseSink {
  readonly #inner: ResponseSink;
  readonly #onSuccess: (response: InferResponse) => void;
  #response: InferResponse | undefined;
  #sentCount = 0;

  constructor(inner: ResponseSink, onSuccess: (response: InferResponse) => void) {
    this.#inner = inner;
    this.#onSuccess = onSuccess;
  }

  get onRoom(): (() => void) | undefined {
    return this.#inner.onRoom;
  }

  set onRoom(listener: (() => void) | undefined) {
    this.#inner.onRoom = listener;
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    this.#response = response;
    this.#sentCount++;
    return this.#inner.send(response, isFinal);
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    this.#sentCount++;
    this.#response = undefined;
    return this.#inner.sendError(error, isFinal);
  }

  /** The client is served first. It cannot ask again before this function returns, so the next equal request is a hit. */
  finish(): void {
    this.#inner.finish();
    if (this.#response !== undefined && this.#sentCount === 1) this.#onSuccess(this.#response);
  }

  fail(error: StatusError): void {
    this.#inner.fail(error);
  }
}
