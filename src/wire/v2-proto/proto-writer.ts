// Writes the protobuf wire format into one growing buffer. Used by the codecs of this folder.
// A nested message is written in place behind one byte for its length; a longer length moves the message along.

import { LENGTH } from './proto-reader.ts';

const SIZE_FIRST = 256;
const VARINT_BYTES_MAX = 10;
const TWO_32 = 2 ** 32;
const TWO_63 = 2 ** 63;
const UINT64_MAX = 2n ** 64n - 1n;
const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

export class ProtoWriter {
  #buffer: Buffer;
  #at = 0;

  constructor(size = SIZE_FIRST) {
    this.#buffer = Buffer.allocUnsafe(size);
  }

  get byteLength(): number {
    return this.#at;
  }

  tag(number: number, wireType: number): void {
    this.uint32(((number << 3) | wireType) >>> 0);
  }

  uint32(value: number): void {
    if (value < 0x80 && this.#at < this.#buffer.length) {
      this.#buffer[this.#at++] = value;
      return;
    }
    this.#reserve(VARINT_BYTES_MAX);
    this.#varint(0, value);
  }

  /** Negative numbers are written as the 64 bits that they are in C++. */
  int32(value: number): void {
    this.#reserve(VARINT_BYTES_MAX);
    this.#varint(value < 0 ? 0xffffffff : 0, value >>> 0);
  }

  /** Clamped: the largest int64 that was read into a number is one too large. */
  int64(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0 && value < 0x80) {
      this.uint32(value);
      return;
    }
    this.#reserve(VARINT_BYTES_MAX);
    if (typeof value === 'number' && Number.isSafeInteger(value)) {
      this.#varint(Math.floor(value / TWO_32) >>> 0, value >>> 0);
      return;
    }
    this.#bigVarint(clamp(toBigInt(value), INT64_MIN, INT64_MAX));
  }

  uint64(value: number | bigint): void {
    this.#reserve(VARINT_BYTES_MAX);
    if (typeof value === 'number' && value >= 0 && value < TWO_63) {
      this.#varint(Math.floor(value / TWO_32) >>> 0, value >>> 0);
      return;
    }
    this.#bigVarint(clamp(toBigInt(value), 0n, UINT64_MAX));
  }

  bool(value: boolean): void {
    this.uint32(value ? 1 : 0);
  }

  float(value: number): void {
    this.#reserve(4);
    this.#at = this.#buffer.writeFloatLE(value, this.#at);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#at = this.#buffer.writeDoubleLE(value, this.#at);
  }

  bytes(value: Uint8Array): void {
    this.uint32(value.length);
    this.raw(value);
  }

  string(value: string): void {
    const length = value.length;
    // Three bytes are the most that one UTF-16 unit can need.
    this.#reserve(5 + length * 3);
    if (length < 0x80 && this.#ascii(value)) return;
    this.uint32(Buffer.byteLength(value));
    this.#at += this.#buffer.write(value, this.#at, 'utf8');
  }

  /** Bytes without a length before them. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#buffer.set(value, this.#at);
    this.#at += value.length;
  }

  /** Leaves room that somebody else will fill. */
  skip(size: number): void {
    this.#reserve(size);
    this.#at += size;
  }

  /** Opens a message, a map entry or a packed list; `close` wants what this returns. */
  open(number: number): number {
    this.tag(number, LENGTH);
    this.#reserve(1);
    this.#at += 1;
    return this.#at;
  }

  close(start: number): void {
    const length = this.#at - start;
    if (length < 0x80) {
      this.#buffer[start - 1] = length;
      return;
    }
    const extra = varintBytes(length) - 1;
    this.#reserve(extra);
    this.#buffer.copyWithin(start + extra, start, this.#at);
    this.#at = start - 1;
    this.#varint(0, length);
    this.#at += length;
  }

  /** What has been written; a view, valid until more is written. */
  finish(start = 0, end = this.#at): Buffer {
    return this.#buffer.subarray(start, end);
  }

  /** Length and text at once for short ASCII, which almost all names are. */
  #ascii(value: string): boolean {
    const buffer = this.#buffer;
    const start = this.#at + 1;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) return false;
      buffer[start + i] = code;
    }
    buffer[start - 1] = value.length;
    this.#at = start + value.length;
    return true;
  }

  #varint(high: number, low: number): void {
    const buffer = this.#buffer;
    let at = this.#at;
    let rest = low;
    let above = high;
    while (above !== 0) {
      buffer[at++] = (rest & 0x7f) | 0x80;
      rest = ((rest >>> 7) | (above << 25)) >>> 0;
      above >>>= 7;
    }
    while (rest > 0x7f) {
      buffer[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[at++] = rest;
    this.#at = at;
  }

  #bigVarint(value: bigint): void {
    const bits = BigInt.asUintN(64, value);
    this.#varint(Number(bits >> 32n), Number(bits & 0xffffffffn));
  }

  #reserve(size: number): void {
    const needed = this.#at + size;
    if (needed <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

/** Bytes that a length or a tag takes as a varint. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

function toBigInt(value: number | bigint): bigint {
  if (typeof value === 'bigint') return value;
  if (Number.isNaN(value)) return 0n;
  if (!Number.isFinite(value)) return value > 0 ? UINT64_MAX : INT64_MIN;
  return BigInt(Math.trunc(value));
}

function clamp(value: bigint, low: bigint, high: bigint): bigint {
  return value < low ? low : value > high ? high : value;
}
