// Memory for large payloads that is used again: chunks of one size, each with an ArrayBuffer of its own. A payload that V8
// would have to collect costs more than its copy into a chunk (docs/adr/0009). Whoever can prove that nothing refers to a
// payload any more releases its lease; everybody else forgets it, and the collector takes the chunks like any other buffer.

export const CHUNK_BYTES = 64 * 1024;

/** 64 MiB: what 32 clients have in flight with 1 MB each way. More than that is left to the collector. */
const FREE_CHUNKS_MAX = 1024;

/** The right to give the memory of a payload back. */
export interface Lease {
  /** Nothing refers to the payload any more. Only the first call counts. */
  release(): void;
}

export class ChunkPool {
  readonly #freeMax: number;
  /** The chunk that came back last is taken first: it is still in the processor's cache. */
  readonly #free: Buffer[] = [];

  constructor(freeMax = FREE_CHUNKS_MAX) {
    this.#freeMax = freeMax;
  }

  get freeCount(): number {
    return this.#free.length;
  }

  /** That many bytes could be lent without making a chunk. */
  hasFree(byteLength: number): boolean {
    return this.#free.length * CHUNK_BYTES >= byteLength;
  }

  /** Makes chunks, where so many bytes are not free. */
  provide(byteLength: number): void {
    while (!this.hasFree(byteLength) && this.#free.length < this.#freeMax) {
      this.#free.push(Buffer.allocUnsafeSlow(CHUNK_BYTES));
    }
  }

  /** Memory for one payload. No chunk is taken before there is something to write. */
  lend(): LentBytes {
    return new LentBytes(this.#free, this.#freeMax);
  }
}

/** A payload in chunks of the pool, written from front to back. */
export class LentBytes implements Lease {
  readonly #free: Buffer[];
  readonly #freeMax: number;
  readonly #chunks: Buffer[] = [];
  /** In the last chunk. */
  #writtenBytes = CHUNK_BYTES;
  #isReleased = false;

  constructor(free: Buffer[], freeMax: number) {
    this.#free = free;
    this.#freeMax = freeMax;
  }

  /** Copies [start, end) behind what is there. */
  write(source: Buffer, start: number, end: number): void {
    if (this.#isReleased) throw new Error('a payload is written that was given back');
    for (let at = start; at < end; ) {
      if (this.#writtenBytes === CHUNK_BYTES) this.#addChunk();
      const length = Math.min(end - at, CHUNK_BYTES - this.#writtenBytes);
      source.copy(this.#chunks.at(-1)!, this.#writtenBytes, at, at + length);
      this.#writtenBytes += length;
      at += length;
    }
  }

  /** What was written, and nothing of what the chunks held before. */
  views(): Buffer[] {
    const last = this.#chunks.length - 1;
    return this.#chunks.map((chunk, index) =>
      chunk.subarray(0, index === last ? this.#writtenBytes : CHUNK_BYTES),
    );
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    for (const chunk of this.#chunks) if (this.#free.length < this.#freeMax) this.#free.push(chunk);
  }

  #addChunk(): void {
    this.#chunks.push(this.#free.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES));
    this.#writtenBytes = 0;
  }
}

/** One payload that several parties use: it goes back when each of them has released its share. */
export function shareLease(lease: Lease, count: number): Lease[] {
  if (count === 1) return [lease];
  let left = count;
  return Array.from({ length: count }, () => {
    let isReleased = false;
    return {
      release() {
        if (isReleased) return;
        isReleased = true;
        left--;
        if (left === 0) lease.release();
      },
    };
  });
}

/** The server's: requests and answers take from the same chunks. */
export const payloadPool = new ChunkPool();
