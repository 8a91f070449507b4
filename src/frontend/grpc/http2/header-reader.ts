// Header blocks of one connection: HEADERS and CONTINUATION put together, decoded and checked. Called by
// Http2Connection. gRPC clients repeat a block byte for byte, so the last ones are remembered with their headers,
// as long as they neither change the HPACK table nor does another block.

import { ERROR_CODE } from './frames.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { Http2Error } from './http2-error.ts';
import type { HeaderPair } from './http2-types.ts';

export interface RequestHeaders {
  readonly pairs: readonly HeaderPair[];
  /** Why the stream must be refused; the connection goes on. */
  readonly fault: 'malformed' | 'too large' | undefined;
}

/**
 * A list that is too large costs its stream only, if the block can be decoded at all: the HPACK table needs it. Blocks
 * above this, or above twice the list, cost the connection.
 */
const BLOCK_BYTES_MIN = 64 * 1024;
/** Honest clients send fragments of 16 KiB and seldom more than one. */
const CONTINUATIONS_MAX = 32;
/** The blocks of a client that calls a few methods; comparing must stay cheaper than decoding. */
const REMEMBERED_BLOCKS = 4;
const REMEMBERED_BYTES_MAX = 512;

interface Remembered {
  readonly block: Buffer;
  readonly headers: RequestHeaders;
}

export class HeaderReader {
  /** Compressed bytes of one block. */
  readonly blockBytesMax: number;
  readonly #decoder: HpackDecoder;
  #remembered: Remembered[] = [];
  #rememberedAt = 0;
  #changeCount = 0;
  #fragments: Buffer[] = [];
  #fragmentBytes = 0;

  constructor(listBytesMax: number) {
    this.#decoder = new HpackDecoder(listBytesMax);
    this.blockBytesMax = Math.max(BLOCK_BYTES_MIN, 2 * listBytesMax);
  }

  /** A part of a block that another frame continues; copied, as the chunk it came in may be large. */
  addFragment(bytes: Buffer, start: number, end: number): void {
    this.#fragmentBytes += end - start;
    if (this.#fragmentBytes > this.blockBytesMax || this.#fragments.length > CONTINUATIONS_MAX) {
      throw new Http2Error(ERROR_CODE.enhanceYourCalm, 'header block too large');
    }
    this.#fragments.push(Buffer.from(bytes.subarray(start, end)));
  }

  /** The last part of a block, mostly its only one. */
  finish(bytes: Buffer, start: number, end: number): RequestHeaders {
    if (this.#fragments.length === 0) return this.#find(bytes, start, end) ?? this.#decode(bytes, start, end);
    this.addFragment(bytes, start, end);
    const block = Buffer.concat(this.#fragments);
    this.#fragments = [];
    this.#fragmentBytes = 0;
    return this.#decode(block, 0, block.length);
  }

  #find(bytes: Buffer, start: number, end: number): RequestHeaders | undefined {
    const length = end - start;
    for (const { block, headers } of this.#remembered) {
      if (block.length !== length) continue;
      let at = 0;
      while (at < length && block[at] === bytes[start + at]) at++;
      if (at === length) return headers;
    }
    return undefined;
  }

  #decode(bytes: Buffer, start: number, end: number): RequestHeaders {
    const { pairs, isMalformed, isTooLarge } = this.#decoder.decode(bytes, start, end);
    const isBad = isMalformed || (!isTooLarge && !isRequest(pairs));
    const fault = isTooLarge ? 'too large' : isBad ? 'malformed' : undefined;
    const headers: RequestHeaders = { pairs, fault };
    if (this.#decoder.changeCount !== this.#changeCount) {
      this.#changeCount = this.#decoder.changeCount;
      this.#remembered = [];
      this.#rememberedAt = 0;
    } else if (end - start <= REMEMBERED_BYTES_MAX) {
      const block = Buffer.from(bytes.subarray(start, end));
      this.#remembered[this.#rememberedAt] = { block, headers };
      this.#rememberedAt = (this.#rememberedAt + 1) % REMEMBERED_BLOCKS;
    }
    return headers;
  }
}

const PSEUDO_HEADERS = [':method', ':scheme', ':path', ':authority'];
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'];

/** RFC 9113, 8.2 and 8.3: which headers a request must have, and must not. */
function isRequest(pairs: readonly HeaderPair[]): boolean {
  const seen = new Set<string>();
  let isRegularSeen = false;
  for (const [name, value] of pairs) {
    if (!name.startsWith(':')) {
      isRegularSeen = true;
      if (CONNECTION_HEADERS.includes(name)) return false;
      if (name === 'te' && value !== 'trailers') return false;
      continue;
    }
    if (isRegularSeen || seen.has(name) || !PSEUDO_HEADERS.includes(name)) return false;
    if (name === ':path' && value === '') return false;
    seen.add(name);
  }
  return seen.has(':method') && seen.has(':scheme') && seen.has(':path');
}
