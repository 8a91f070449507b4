// Memory of ours whose address native code may keep between calls: always behind an ArrayBuffer of its own, since
// V8 keeps small typed arrays inside its moving heap. Also the writing of 64-bit words without making bigints.

import koffi from 'koffi';

const TWO_POW_32 = 2 ** 32;

/** `count` 64-bit words: pointers, size_t or int64 values, little-endian. */
export class NativeWords {
  readonly words: BigUint64Array;
  readonly address: bigint;
  readonly #halves: Uint32Array;

  constructor(count: number) {
    const memory = new ArrayBuffer(Math.max(count, 1) * 8);
    this.words = new BigUint64Array(memory);
    this.#halves = new Uint32Array(memory);
    this.address = koffi.address(this.words);
  }

  get length(): number {
    return this.words.length;
  }

  /** An address; 0 clears. */
  pointer(index: number): bigint {
    return this.words[index]!;
  }

  addressOf(index: number): bigint {
    return this.address + BigInt(index * 8);
  }

  setNumber(index: number, value: number): void {
    this.#halves[index * 2] = value % TWO_POW_32;
    this.#halves[index * 2 + 1] = Math.floor(value / TWO_POW_32);
  }

  number(index: number): number {
    return this.#halves[index * 2]! + (this.#halves[index * 2 + 1]! | 0) * TWO_POW_32;
  }

  setNumbers(values: readonly number[]): void {
    for (let i = 0; i < values.length; i++) this.setNumber(i, values[i]!);
  }
}

export function allocateBytes(count: number): Buffer {
  return Buffer.from(new ArrayBuffer(Math.max(count, 1)));
}

/** A NUL-terminated copy; it lives as long as the buffer is referenced. */
export function cString(text: string): Buffer {
  const bytes = allocateBytes(Buffer.byteLength(text) + 1);
  bytes.write(text);
  return bytes;
}

export function addressOfBytes(bytes: Buffer): bigint {
  // Reading `.buffer` moves a small typed array out of V8's heap, after which its address is stable.
  void bytes.buffer;
  return koffi.address(bytes);
}

/** Native memory seen as bytes, without a copy; valid until its owner frees it. */
export function viewBytes(view: { address: bigint; byteLength: number }): Buffer {
  return view.byteLength === 0 ? Buffer.alloc(0) : Buffer.from(koffi.view(view.address, view.byteLength));
}

export function readText(address: bigint): string {
  return koffi.decode.string(address);
}
