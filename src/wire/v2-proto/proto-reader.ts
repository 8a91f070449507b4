// Reads the protobuf wire format from one buffer: a position, an end, and one method for each kind of value.
// Used by the codecs of this folder. Nothing is ever read past `end`; bytes are views; every fault is a ProtoError.

import { isUtf8 } from 'node:buffer';
import { ProtoError } from './proto-error.ts';

export const VARINT = 0;
export const FIXED64 = 1;
export const LENGTH = 2;
export const GROUP_START = 3;
export const GROUP_END = 4;
export const FIXED32 = 5;

/** As in protobuf: messages and groups nested deeper than this are refused. */
const DEPTH_MAX = 100;
const VARINT_BYTES_MAX = 10;
const TAG_BYTES_MAX = 5;
const LENGTH_MAX = 2 ** 31 - 1;
const TWO_32 = 2 ** 32;
/** The high half of the first integer that a number cannot hold exactly. */
const UNSAFE_HIGH = 2 ** 21;

/** Names come again with every request: up to this length they are looked up rather than made anew. */
const NAME_BYTES_MAX = 32;
const NAMES_MAX = 1024;
const names: string[] = new Array<string>(NAMES_MAX).fill('');

export class ProtoReader {
  readonly buffer: Buffer;
  at: number;
  end: number;
  #depth = 0;
  // The halves of the last varint: 64 bits do not fit one number.
  #low = 0;
  #high = 0;

  constructor(buffer: Buffer, at = 0, end = buffer.length) {
    this.buffer = buffer;
    this.at = at;
    this.end = end;
  }

  /** Field number and wire type; the number is never 0. */
  tag(): number {
    const first = this.buffer[this.at]!;
    if (this.at < this.end && first < 0x80) {
      this.at += 1;
      if (first < 8) throw new ProtoError('a field has number 0');
      return first;
    }
    const start = this.at;
    this.#varint();
    if (this.#high !== 0 || this.at - start > TAG_BYTES_MAX) throw new ProtoError('a tag is too long');
    if (this.#low < 8) throw new ProtoError('a field has number 0');
    return this.#low;
  }

  uint32(): number {
    const first = this.buffer[this.at]!;
    if (this.at < this.end && first < 0x80) {
      this.at += 1;
      return first;
    }
    this.#varint();
    return this.#low;
  }

  int32(): number {
    return this.uint32() | 0;
  }

  bool(): boolean {
    this.#varint();
    return this.#low !== 0 || this.#high !== 0;
  }

  /** A number where it is exact, else a bigint. */
  int64(): number | bigint {
    const first = this.buffer[this.at]!;
    if (this.at < this.end && first < 0x80) {
      this.at += 1;
      return first;
    }
    this.#varint();
    const low = this.#low;
    const high = this.#high;
    if (high < UNSAFE_HIGH) return high * TWO_32 + low;
    // The positive value of a negative number, minus one.
    const inverted = (~high >>> 0) * TWO_32 + (~low >>> 0);
    if (high >= 0x80000000 && inverted < Number.MAX_SAFE_INTEGER) return -inverted - 1;
    return BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low));
  }

  /** A number where it is exact, else a bigint. */
  uint64(): number | bigint {
    this.#varint();
    const low = this.#low;
    const high = this.#high;
    return high < UNSAFE_HIGH ? high * TWO_32 + low : (BigInt(high) << 32n) | BigInt(low);
  }

  float(): number {
    return this.buffer.readFloatLE(this.#take(4));
  }

  double(): number {
    return this.buffer.readDoubleLE(this.#take(8));
  }

  /** A view of that many bytes. */
  fixed(length: number): Buffer {
    const start = this.#take(length);
    return this.buffer.subarray(start, this.at);
  }

  /** All 64 bits of a varint, little-endian. */
  copyVarint(target: Buffer, at: number): void {
    this.#varint();
    target.writeUInt32LE(this.#low, at);
    target.writeUInt32LE(this.#high, at + 4);
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const start = this.#take(this.length());
    return this.buffer.subarray(start, this.at);
  }

  string(): string {
    const start = this.#take(this.length());
    return this.#text(start, this.at);
  }

  /** A string that is likely to come again. */
  name(): string {
    const length = this.length();
    const start = this.#take(length);
    if (length > NAME_BYTES_MAX) return this.#text(start, this.at);
    const { buffer } = this;
    let hash = length;
    for (let i = start; i < start + length; i++) hash = (Math.imul(hash, 31) + buffer[i]!) | 0;
    const slot = (hash ^ (hash >>> 10)) & (NAMES_MAX - 1);
    const known = names[slot]!;
    if (known.length === length) {
      let i = 0;
      while (i < length && known.charCodeAt(i) === buffer[start + i]) i++;
      // Only ASCII can be equal here: anything else has more bytes than characters, or is not UTF-8.
      if (i === length) return known;
    }
    const text = this.#text(start, this.at);
    if (text.length === length) names[slot] = text;
    return text;
  }

  /** The length of what follows, checked against what is there. */
  length(): number {
    let length = this.buffer[this.at]!;
    if (this.at < this.end && length < 0x80) {
      this.at += 1;
    } else {
      const start = this.at;
      this.#varint();
      length = this.#low;
      if (this.#high !== 0 || length > LENGTH_MAX || this.at - start > TAG_BYTES_MAX) {
        throw new ProtoError('a length is too large');
      }
    }
    if (length > this.end - this.at) throw new ProtoError('a field is longer than its message');
    return length;
  }

  /** Goes into a message; `leave` wants what this returns. */
  enter(): number {
    const length = this.length();
    const outerEnd = this.end;
    this.end = this.at + length;
    this.#deeper();
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.end = outerEnd;
    this.#depth -= 1;
  }

  /** Past the value of a field that is not known. */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        this.#varint();
        return;
      case FIXED64:
        this.#take(8);
        return;
      case LENGTH:
        this.#take(this.length());
        return;
      case GROUP_START:
        this.#skipGroup(tag >>> 3);
        return;
      case FIXED32:
        this.#take(4);
        return;
      default:
        throw new ProtoError(`a field has wire type ${tag & 7}`);
    }
  }

  #skipGroup(number: number): void {
    this.#deeper();
    for (;;) {
      const tag = this.tag();
      if ((tag & 7) !== GROUP_END) {
        this.skip(tag);
        continue;
      }
      if (tag >>> 3 !== number) throw new ProtoError('a group ends that did not begin');
      this.#depth -= 1;
      return;
    }
  }

  #deeper(): void {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw new ProtoError(`messages are nested deeper than ${DEPTH_MAX}`);
  }

  #take(length: number): number {
    const start = this.at;
    if (length > this.end - start) throw new ProtoError('a message ends inside a field');
    this.at = start + length;
    return start;
  }

  #text(start: number, end: number): string {
    const { buffer } = this;
    let bits = 0;
    for (let i = start; i < end; i++) bits |= buffer[i]!;
    if (bits < 0x80) return buffer.toString('latin1', start, end);
    if (!isUtf8(buffer.subarray(start, end))) throw new ProtoError('a string is not valid UTF-8');
    return buffer.toString('utf8', start, end);
  }

  #varint(): void {
    let low = 0;
    let high = 0;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      if (this.at >= this.end) throw new ProtoError('a message ends inside a varint');
      const byte = this.buffer[this.at]!;
      this.at += 1;
      const bits = byte & 0x7f;
      if (i < 4) {
        low |= bits << (7 * i);
      } else if (i === 4) {
        low |= bits << 28;
        high = bits >>> 4;
      } else {
        high |= bits << (7 * i - 32);
      }
      if (byte < 0x80) {
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return;
      }
    }
    throw new ProtoError(`a varint is longer than ${VARINT_BYTES_MAX} bytes`);
  }
}
