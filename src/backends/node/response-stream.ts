// The responses of a called model as an async iterator: what has come and has not been read, bounded by pausing the
// sender. Used by call-model.ts.

/** Responses that wait to be read before the sender is asked to pause, and how few let it go on. */
const WAITING_MAX = 16;
const WAITING_LOW = 4;

/** What the stream tells the one who fills it. */
export interface StreamSource {
  cancel(): void;
  setPaused(isPaused: boolean): void;
}

export class ResponseStream<T> implements AsyncIterableIterator<T> {
  readonly #source: StreamSource;
  readonly #waiting: T[] = [];
  readonly #readers: { resolve: (result: IteratorResult<T>) => void; reject: (error: Error) => void }[] = [];
  #error: Error | undefined;
  #isEnded = false;
  #isPaused = false;

  constructor(source: StreamSource) {
    this.#source = source;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  push(response: T): void {
    if (this.#isEnded) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader.resolve({ value: response, done: false });
      return;
    }
    this.#waiting.push(response);
    if (!this.#isPaused && this.#waiting.length >= WAITING_MAX) this.#setPaused(true);
  }

  end(): void {
    this.#isEnded = true;
    for (const reader of this.#readers.splice(0)) reader.resolve({ value: undefined, done: true });
  }

  /** What came before is still read; then the error is thrown, once. The request is over for its reader. */
  fail(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#source.cancel();
    const reader = this.#readers.shift();
    if (reader === undefined) this.#error = error;
    else reader.reject(error);
    this.end();
  }

  next(): Promise<IteratorResult<T>> {
    const response = this.#waiting.shift();
    if (response !== undefined) {
      if (this.#isPaused && this.#waiting.length <= WAITING_LOW) this.#setPaused(false);
      return Promise.resolve({ value: response, done: false });
    }
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#isEnded) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  /** The loop was left. */
  return(): Promise<IteratorResult<T>> {
    if (!this.#isEnded) this.#source.cancel();
    this.#waiting.length = 0;
    this.#error = undefined;
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  #setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (!this.#isEnded) this.#source.setPaused(isPaused);
  }
}
