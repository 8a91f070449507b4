// The body of an HTTP/1.1 request from the pieces in which it arrives: a known number of bytes, or chunks.
// Keeps views on the pieces, never copies; bounded in bytes and in chunks.

import { HTTP_BODY_BYTES_MAX, HTTP_CHUNKS_MAX } from '../../domain/limits.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';
import { isTrailerLine } from './request-head.ts';

export interface Body {
  readonly pieces: readonly Buffer[];
  readonly byteLength: number;
}

export const EMPTY_BODY: Body = { pieces: [], byteLength: 0 };

/** `more`: all of `chunk` was taken. `done`: the rest begins at `used`. `bad`: not HTTP. */
export type ReadResult =
  | { readonly kind: 'more' }
  | { readonly kind: 'done'; readonly used: number }
  | { readonly kind: 'bad' }
  | { readonly kind: 'refused'; readonly error: StatusError };

const MORE: ReadResult = { kind: 'more' };
const BAD: ReadResult = { kind: 'bad' };

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const QUOTED = '"(?:[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e])*"';
/** Extensions are ignored. Their grammar is kept to, without blanks: parsers disagree about everything else. */
const SIZE_LINE = new RegExp(`^([0-9a-fA-F]{1,13})(?:;${TOKEN}(?:=(?:${TOKEN}|${QUOTED}))?)*$`);
/** A chunk's size line with its extensions, and a trailer line; nobody needs more. */
const LINE_BYTES_MAX = 4096;
const TRAILERS_BYTES_MAX = 16 * 1024;
/** After the bytes of a chunk nothing but CR LF. */
const DATA_END_BYTES = 2;

export class BodyReader {
  readonly #pieces: Buffer[] = [];
  readonly #isKept: boolean;
  readonly #keptBytesMax: number;
  readonly #isChunked: boolean;
  #byteLength = 0;
  /** Bytes still missing of the body, or of the current chunk. */
  #left: number;
  #phase: 'data' | 'size-line' | 'data-end' | 'trailers';
  #line = '';
  #chunkCount = 0;
  #trailerBytes = 0;

  /**
   * `bodyLength` -1 is chunked; with `isKept` false the bytes are counted and dropped, and so are all of them once they
   * are more than `keptBytesMax`.
   */
  constructor(options: { bodyLength: number; isKept: boolean; keptBytesMax?: number | undefined }) {
    this.#isKept = options.isKept;
    this.#keptBytesMax = options.keptBytesMax ?? HTTP_BODY_BYTES_MAX;
    this.#isChunked = options.bodyLength < 0;
    this.#left = Math.max(0, options.bodyLength);
    this.#phase = this.#isChunked ? 'size-line' : 'data';
  }

  get body(): Body {
    return { pieces: this.#pieces, byteLength: this.#isKept ? this.#byteLength : 0 };
  }

  push(chunk: Buffer): ReadResult {
    let at = 0;
    while (at < chunk.length) {
      if (this.#phase === 'data') {
        if (this.#byteLength + this.#left > HTTP_BODY_BYTES_MAX)
          return { kind: 'refused', error: tooLarge() };
        at = this.#takeData(chunk, at);
        if (this.#left > 0) return MORE;
        if (!this.#isChunked) return { kind: 'done', used: at };
        this.#phase = 'data-end';
        continue;
      }
      const next = chunk.indexOf(0x0a, at);
      const end = next === -1 ? chunk.length : next + 1;
      this.#line += chunk.toString('latin1', at, end);
      at = end;
      if (this.#line.length > (this.#phase === 'data-end' ? DATA_END_BYTES : LINE_BYTES_MAX)) return BAD;
      if (next === -1) return MORE;
      const result = this.#endLine(at);
      if (result !== undefined) return result;
    }
    return MORE;
  }

  #takeData(chunk: Buffer, at: number): number {
    const taken = Math.min(this.#left, chunk.length - at);
    if (this.#isKept && taken > 0) {
      this.#pieces.push(at === 0 && taken === chunk.length ? chunk : chunk.subarray(at, at + taken));
    }
    this.#byteLength += taken;
    if (this.#byteLength > this.#keptBytesMax) this.#pieces.length = 0;
    this.#left -= taken;
    return at + taken;
  }

  /** A line of the chunked framing is complete; undefined goes on. */
  #endLine(at: number): ReadResult | undefined {
    const line = this.#line;
    this.#line = '';
    if (!line.endsWith('\r\n')) return BAD;
    const text = line.slice(0, -2);
    if (this.#phase === 'data-end') {
      this.#phase = 'size-line';
      return text === '' ? undefined : BAD;
    }
    if (this.#phase === 'trailers') {
      this.#trailerBytes += line.length;
      if (this.#trailerBytes > TRAILERS_BYTES_MAX) return BAD;
      if (text === '') return { kind: 'done', used: at };
      return isTrailerLine(text) ? undefined : BAD;
    }
    const match = SIZE_LINE.exec(text);
    if (match === null) return BAD;
    this.#left = Number.parseInt(match[1]!, 16);
    this.#phase = this.#left === 0 ? 'trailers' : 'data';
    if (this.#left > 0) this.#chunkCount++;
    return this.#chunkCount > HTTP_CHUNKS_MAX ? { kind: 'refused', error: tooManyChunks() } : undefined;
  }
}

export function tooLarge(): StatusError {
  return invalidArgument(`request body is larger than the maximum of ${HTTP_BODY_BYTES_MAX} bytes`);
}

function tooManyChunks(): StatusError {
  return invalidArgument(
    `Chunked request body exceeds maximum of ${HTTP_CHUNKS_MAX} non-empty chunks. Send fewer or larger HTTP chunks.`,
  );
}
