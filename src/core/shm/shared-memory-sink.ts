// Stands before the sink of a request that has outputs in shared memory: every response is written to its regions
// before it is passed on. Large copies take a while, so what follows waits for them and the order is kept.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import type { RequestMemory } from './request-memory.ts';

type Stored = InferResponse | StatusError;

export class SharedMemorySink implements ResponseSink {
  readonly #inner: ResponseSink;
  readonly #memory: RequestMemory;
  readonly #isDecoupled: boolean;
  /** The last step that still writes; undefined when none does. */
  #tail: Promise<void> | undefined;
  #isEnded = false;

  constructor(inner: ResponseSink, memory: RequestMemory, options: { isDecoupled: boolean }) {
    this.#inner = inner;
    this.#memory = memory;
    this.#isDecoupled = options.isDecoupled;
  }

  get onRoom(): (() => void) | undefined {
    return this.#inner.onRoom;
  }

  set onRoom(listener: (() => void) | undefined) {
    this.#inner.onRoom = listener;
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    let hasRoom = true;
    this.#inOrder(() => {
      const stored = this.#store(response);
      if (stored instanceof Promise) {
        return stored.then((result) => {
          this.#pass(result, isFinal);
        });
      }
      hasRoom = this.#pass(stored, isFinal);
      return undefined;
    });
    return hasRoom;
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    let hasRoom = true;
    this.#inOrder(() => {
      if (!this.#isEnded) hasRoom = this.#inner.sendError(error, isFinal);
      return undefined;
    });
    return hasRoom;
  }

  finish(): void {
    this.#inOrder(() => this.#end(() => this.#inner.finish()));
  }

  fail(error: StatusError): void {
    this.#inOrder(() => this.#end(() => this.#inner.fail(error)));
  }

  /** At once, unless an earlier step still writes. */
  #inOrder(step: () => Promise<void> | undefined): void {
    const started = this.#tail === undefined ? step() : this.#tail.then(step);
    if (started === undefined) return;
    const tail: Promise<void> = started.then(() => {
      if (this.#tail === tail) this.#tail = undefined;
    });
    this.#tail = tail;
  }

  #store(response: InferResponse): Stored | Promise<Stored> {
    try {
      const stored = this.#memory.store(response);
      return stored instanceof Promise ? stored.catch(StatusError.from) : stored;
    } catch (thrown) {
      return StatusError.from(thrown);
    }
  }

  /** The one response of an ordinary model is its answer; a decoupled model may have more to say. */
  #pass(stored: Stored, isFinal: boolean): boolean {
    if (this.#isEnded) return true;
    if (!(stored instanceof StatusError)) return this.#inner.send(stored, isFinal);
    if (this.#isDecoupled) return this.#inner.sendError(stored, isFinal);
    this.#end(() => this.#inner.fail(stored));
    return true;
  }

  /** The ranges go first: a client that has its answer finds its regions free. */
  #end(last: () => void): undefined {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#memory.release();
    last();
  }
}
