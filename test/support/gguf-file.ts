// Reads and writes GGUF files, version 3, little endian: metadata and tensors, with the data as it is. The tests make small
// models of their own with it (gguf-models.ts). Values of metadata stay encoded, since most are only passed on.
//
//   "GGUF" │ version │ tensor count │ metadata count │ metadata … │ tensor rows … │ pad │ data, each tensor at a multiple of 32
import { readFileSync, writeFileSync } from 'node:fs';

const MAGIC = 0x46554747;
const VERSION = 3;
const ALIGNMENT = 32;

/** The types of metadata that the tests write; `BYTES_OF` has all that can be read. */
const TYPE = { uint32: 4, int32: 5, float32: 6, boolean: 7, text: 8, array: 9 } as const;
const BYTES_OF: Readonly<Record<number, number>> = {
  ...{ 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1 },
  ...{ 10: 8, 11: 8, 12: 8 },
};
export const F32 = 0;
/** Values in a block and bytes of a block, of the tensor types in the files of the tests. */
const BLOCKS: Readonly<Record<number, { readonly values: number; readonly bytes: number }>> = {
  0: { values: 1, bytes: 4 },
  1: { values: 1, bytes: 2 },
  2: { values: 32, bytes: 18 },
  3: { values: 32, bytes: 20 },
  8: { values: 32, bytes: 34 },
};

export interface GgufValue {
  readonly type: number;
  readonly bytes: Buffer;
}

export interface GgufTensor {
  readonly name: string;
  /** The fastest first. */
  readonly dims: readonly number[];
  readonly type: number;
  readonly data: Buffer;
}

export interface GgufFile {
  readonly metadata: Map<string, GgufValue>;
  readonly tensors: readonly GgufTensor[];
}

export function uint32Value(value: number): GgufValue {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return { type: TYPE.uint32, bytes };
}

export function float32Value(value: number): GgufValue {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return { type: TYPE.float32, bytes };
}

export function booleanValue(value: boolean): GgufValue {
  return { type: TYPE.boolean, bytes: Buffer.from([value ? 1 : 0]) };
}

export function textValue(value: string): GgufValue {
  return { type: TYPE.text, bytes: encodeText(value) };
}

export function textsValue(values: readonly string[]): GgufValue {
  return arrayValue(TYPE.text, values.map(encodeText));
}

export function int32sValue(values: readonly number[]): GgufValue {
  const elements = values.map((value) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(value);
    return bytes;
  });
  return arrayValue(TYPE.int32, elements);
}

/** The texts of a value that is an array of texts. */
export function readTexts({ bytes }: GgufValue): string[] {
  const cursor = new Cursor(bytes);
  cursor.uint32();
  return Array.from({ length: cursor.uint64() }, () => cursor.text());
}

export function readInt32s({ bytes }: GgufValue): number[] {
  const cursor = new Cursor(bytes);
  cursor.uint32();
  return Array.from({ length: cursor.uint64() }, (_, i) => bytes.readInt32LE(cursor.offset + i * 4));
}

export function floatTensor(name: string, dims: readonly number[], values: Float32Array): GgufTensor {
  return { name, dims, type: F32, data: Buffer.from(values.buffer, values.byteOffset, values.byteLength) };
}

export function readGguf(path: string): GgufFile {
  const file = readFileSync(path);
  const cursor = new Cursor(file);
  if (cursor.uint32() !== MAGIC || cursor.uint32() !== VERSION)
    throw new Error(`${path} is no GGUF file of version 3`);
  const tensorCount = cursor.uint64();
  const metadataCount = cursor.uint64();
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < metadataCount; i++) {
    const name = cursor.text();
    const type = cursor.uint32();
    const begin = cursor.offset;
    cursor.skipValue(type);
    metadata.set(name, { type, bytes: file.subarray(begin, cursor.offset) });
  }
  const rows = Array.from({ length: tensorCount }, () => ({
    name: cursor.text(),
    dims: Array.from({ length: cursor.uint32() }, () => cursor.uint64()),
    type: cursor.uint32(),
    offset: cursor.uint64(),
  }));
  const dataBegin = aligned(cursor.offset);
  const tensors = rows.map(({ name, dims, type, offset }) => {
    const begin = dataBegin + offset;
    return { name, dims, type, data: file.subarray(begin, begin + byteLengthOf(dims, type)) };
  });
  return { metadata, tensors };
}

export function writeGguf(path: string, { metadata, tensors }: GgufFile): void {
  const parts: Buffer[] = [uint32(MAGIC), uint32(VERSION), uint64(tensors.length), uint64(metadata.size)];
  for (const [name, { type, bytes }] of metadata) parts.push(encodeText(name), uint32(type), bytes);
  let offset = 0;
  for (const { name, dims, type, data } of tensors) {
    if (data.length !== byteLengthOf(dims, type)) throw new Error(`${name} has ${data.length} bytes`);
    parts.push(encodeText(name), uint32(dims.length), ...dims.map(uint64), uint32(type), uint64(offset));
    offset = aligned(offset + data.length);
  }
  parts.push(padding(parts.reduce((sum, { length }) => sum + length, 0)));
  for (const { data } of tensors) parts.push(data, padding(data.length));
  writeFileSync(path, Buffer.concat(parts));
}

class Cursor {
  readonly #bytes: Buffer;
  offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  uint32(): number {
    this.offset += 4;
    return this.#bytes.readUInt32LE(this.offset - 4);
  }

  uint64(): number {
    this.offset += 8;
    return Number(this.#bytes.readBigUInt64LE(this.offset - 8));
  }

  text(): string {
    const length = this.uint64();
    this.offset += length;
    return this.#bytes.toString('utf8', this.offset - length, this.offset);
  }

  skipValue(type: number): void {
    if (type === TYPE.text) {
      this.text();
    } else if (type === TYPE.array) {
      const elementType = this.uint32();
      for (let left = this.uint64(); left > 0; left--) this.skipValue(elementType);
    } else {
      const byteLength = BYTES_OF[type];
      if (byteLength === undefined) throw new Error(`metadata of type ${type} is not known`);
      this.offset += byteLength;
    }
  }
}

function byteLengthOf(dims: readonly number[], type: number): number {
  const block = BLOCKS[type];
  if (block === undefined) throw new Error(`tensors of type ${type} are not known`);
  return (dims.reduce((product, dim) => product * dim, 1) / block.values) * block.bytes;
}

function arrayValue(type: number, elements: readonly Buffer[]): GgufValue {
  return { type: TYPE.array, bytes: Buffer.concat([uint32(type), uint64(elements.length), ...elements]) };
}

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  return uint32Value(value).bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function aligned(offset: number): number {
  return Math.ceil(offset / ALIGNMENT) * ALIGNMENT;
}

function padding(length: number): Buffer {
  return Buffer.alloc(aligned(length) - length);
}
