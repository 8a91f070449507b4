// Which messages are received into memory that is used again. One that is answered soon is not worth the copy: its pieces die
// young, and V8 frees them for next to nothing. When much is open at once they grow old, and freeing them means marking the
// whole heap (docs/adr/0009). For the answer, which is copied anyway, there is always such memory. Used by grpc-call.ts.

import { type ChunkPool, type LentBytes, payloadPool } from '../../lib/chunk-pool.ts';

/** With 600 kB each, up to eight clients are a little slower with copies, 16 are as fast and 32 a fifth faster. */
const OPEN_BYTES_MIN = 6 * 1024 * 1024;

/** An answer is taken to be as large as its request, but no more than this is kept for it. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

export class LargeMessages {
  readonly #pool: ChunkPool;
  #openBytes = 0;

  constructor(pool: ChunkPool) {
    this.#pool = pool;
  }

  /** Undefined: the message stays in the pieces in which it comes. Its call must `end` it in either case. */
  begin(byteLength: number): LentBytes | undefined {
    const isLent = this.#openBytes >= OPEN_BYTES_MIN;
    this.#openBytes += byteLength;
    if (isLent) return this.#pool.lend();
    this.#pool.provide(Math.min(byteLength, ANSWER_BYTES_MAX));
    return undefined;
  }

  /** The call is answered or gone. */
  end(byteLength: number): void {
    this.#openBytes -= byteLength;
  }
}

/** Of all connections together. */
export const largeMessages = new LargeMessages(payloadPool);
