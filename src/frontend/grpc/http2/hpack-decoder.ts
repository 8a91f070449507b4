// HPACK decoding (RFC 7541) with the dynamic table of one connection. Called by HeaderReader with whole blocks. What
// is too large or malformed is still decoded to its end, because the next block builds on the table; it is not kept.

import { ERROR_CODE } from './frames.ts';
import { STATIC_TABLE } from './hpack-static-table.ts';
import { Http2Error } from './http2-error.ts';
import type { HeaderPair } from './http2-types.ts';
import { decodeHuffman } from './huffman.ts';

/** The default of SETTINGS_HEADER_TABLE_SIZE, which we leave. */
const TABLE_BYTES_MAX = 4096;
/** What RFC 7541 adds to the bytes of each entry; so the table has at most 128. */
const ENTRY_OVERHEAD_BYTES = 32;
const TABLE_ENTRIES_MAX = TABLE_BYTES_MAX / ENTRY_OVERHEAD_BYTES;
/** No length or index of an honest client is near this; below it, sums stay exact. */
const INTEGER_MAX = 2 ** 24;

const VALID_NAME = /^:?[a-z0-9!#$%&'*+\-.^_`|~]+$/;
const BAD_VALUE = ['\0', '\r', '\n'];

interface Entry {
  readonly pair: HeaderPair;
  readonly bytes: number;
  readonly isMalformed: boolean;
}

export interface DecodedBlock {
  readonly pairs: readonly HeaderPair[];
  /** A name or value has characters that it must not have. */
  readonly isMalformed: boolean;
  /** The list is longer than allowed; `pairs` holds only its beginning. */
  readonly isTooLarge: boolean;
}

const STATIC_ENTRIES: readonly Entry[] = STATIC_TABLE.map(createEntry);

export class HpackDecoder {
  readonly #listBytesMax: number;
  /** A ring; the newest entry is at #newest, older ones before it. */
  readonly #ring: (Entry | undefined)[] = new Array(TABLE_ENTRIES_MAX).fill(undefined);
  #newest = 0;
  #entryCount = 0;
  #tableBytes = 0;
  #tableBytesMax = TABLE_BYTES_MAX;
  #changeCount = 0;
  // the block that is being decoded
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #end = 0;

  constructor(listBytesMax: number) {
    this.#listBytesMax = listBytesMax;
  }

  /** Another number means that the same bytes may now mean other headers. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** Throws a compression error; the connection cannot go on after it. */
  decode(bytes: Buffer, start: number, end: number): DecodedBlock {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    const pairs: HeaderPair[] = [];
    let listBytes = 0;
    let isMalformed = false;
    let isSizeAllowed = true;
    while (this.#at < end) {
      const first = bytes[this.#at]!;
      if ((first & 0xe0) === 0x20) {
        if (!isSizeAllowed) throw compressionError('table size update after a header');
        this.#resize(this.#integer(5));
        continue;
      }
      isSizeAllowed = false;
      const entry = this.#header(first);
      isMalformed ||= entry.isMalformed;
      listBytes += entry.bytes;
      if (listBytes <= this.#listBytesMax) pairs.push(entry.pair);
    }
    return { pairs, isMalformed, isTooLarge: listBytes > this.#listBytesMax };
  }

  #header(first: number): Entry {
    if (first >= 0x80) return this.#entry(this.#integer(7));
    const isIndexed = first >= 0x40;
    const nameIndex = this.#integer(isIndexed ? 6 : 4);
    const name = nameIndex === 0 ? this.#text() : this.#entry(nameIndex).pair[0];
    const entry = createEntry([name, this.#text()]);
    if (isIndexed) this.#insert(entry);
    return entry;
  }

  #entry(index: number): Entry {
    const entry =
      index <= STATIC_ENTRIES.length
        ? STATIC_ENTRIES[index - 1]
        : this.#dynamicEntry(index - STATIC_ENTRIES.length - 1);
    if (entry === undefined) throw compressionError('no header with this index');
    return entry;
  }

  #dynamicEntry(age: number): Entry | undefined {
    if (age >= this.#entryCount) return undefined;
    return this.#ring[(this.#newest - age + TABLE_ENTRIES_MAX) % TABLE_ENTRIES_MAX];
  }

  #insert(entry: Entry): void {
    this.#changeCount++;
    this.#evict(this.#tableBytesMax - entry.bytes);
    // RFC 7541, 4.4: one that is larger than the table empties it, and that is no error
    if (entry.bytes > this.#tableBytesMax) return;
    this.#newest = (this.#newest + 1) % TABLE_ENTRIES_MAX;
    this.#ring[this.#newest] = entry;
    this.#entryCount++;
    this.#tableBytes += entry.bytes;
  }

  #resize(bytesMax: number): void {
    if (bytesMax > TABLE_BYTES_MAX) throw compressionError('table size above the setting');
    this.#changeCount++;
    this.#tableBytesMax = bytesMax;
    this.#evict(bytesMax);
  }

  #evict(bytesMax: number): void {
    while (this.#entryCount > 0 && this.#tableBytes > bytesMax) {
      const oldest = (this.#newest - this.#entryCount + 1 + TABLE_ENTRIES_MAX) % TABLE_ENTRIES_MAX;
      this.#tableBytes -= this.#ring[oldest]!.bytes;
      this.#ring[oldest] = undefined;
      this.#entryCount--;
    }
  }

  /** RFC 7541, 5.1; the prefix is the low bits of the next byte. */
  #integer(prefixBits: number): number {
    const prefixMax = (1 << prefixBits) - 1;
    let value = this.#byte() & prefixMax;
    if (value < prefixMax) return value;
    for (let factor = 1; factor <= INTEGER_MAX; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (value > INTEGER_MAX) break;
      if (byte < 0x80) return value;
    }
    throw compressionError('integer too large');
  }

  #text(): string {
    if (this.#at >= this.#end) throw compressionError('header block too short');
    const isHuffman = this.#bytes[this.#at]! >= 0x80;
    const length = this.#integer(7);
    const start = this.#at;
    if (length > this.#end - start) throw compressionError('header block too short');
    this.#at = start + length;
    if (isHuffman) return decodeHuffman(this.#bytes, start, this.#at);
    return this.#bytes.toString('latin1', start, this.#at);
  }

  #byte(): number {
    if (this.#at >= this.#end) throw compressionError('header block too short');
    return this.#bytes[this.#at++]!;
  }
}

function createEntry(pair: HeaderPair): Entry {
  const [name, value] = pair;
  const isMalformed = !VALID_NAME.test(name) || BAD_VALUE.some((bad) => value.includes(bad));
  return { pair, bytes: name.length + value.length + ENTRY_OVERHEAD_BYTES, isMalformed };
}

function compressionError(message: string): Http2Error {
  return new Http2Error(ERROR_CODE.compression, message);
}
