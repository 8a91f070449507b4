// A tensor as a model sees it: name, datatype, shape, and its elements as a typed array on the bytes that came, without
// a copy. Immutable by agreement: what was given away may still be on its way to a client.

import { type DataType, elementBytesOf } from '../../domain/datatype.ts';
import { elementCountOf, shapeText } from '../../domain/tensor.ts';

interface TypedArrays {
  BOOL: Uint8Array;
  UINT8: Uint8Array;
  UINT16: Uint16Array;
  UINT32: Uint32Array;
  UINT64: BigUint64Array;
  INT8: Int8Array;
  INT16: Int16Array;
  INT32: Int32Array;
  INT64: BigInt64Array;
  /** The bits of the half floats. */
  FP16: Uint16Array;
  FP32: Float32Array;
  FP64: Float64Array;
  /** Each element as its length (u32, little-endian) and its bytes; `strings()` and `elements()` take them apart. */
  BYTES: Uint8Array;
  BF16: Uint16Array;
}

export type TypedArrayOf<D extends DataType> = TypedArrays[D];
export type TensorData = TypedArrays[DataType];

type ArrayMaker = new (buffer: ArrayBufferLike, byteOffset: number, length: number) => TensorData;

const ARRAY_MAKERS: Readonly<Record<DataType, ArrayMaker>> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
  BYTES: Uint8Array,
  BF16: Uint16Array,
};

/** By the name of the class: a Buffer is a Uint8Array, and a script may have classes of another realm. */
const DATATYPE_OF_ARRAY: Readonly<Record<string, DataType>> = {
  Buffer: 'UINT8',
  Uint8Array: 'UINT8',
  Uint16Array: 'UINT16',
  Uint32Array: 'UINT32',
  BigUint64Array: 'UINT64',
  Int8Array: 'INT8',
  Int16Array: 'INT16',
  Int32Array: 'INT32',
  BigInt64Array: 'INT64',
  Float32Array: 'FP32',
  Float64Array: 'FP64',
};

const LENGTH_BYTES = 4;

export class Tensor {
  readonly name: string;
  readonly datatype: DataType;
  /** The batch dimension in front where the model batches. */
  readonly shape: readonly number[];
  /** The elements as they travel: little-endian, row-major. */
  readonly bytes: Uint8Array;
  #data: TensorData | undefined;

  /** `from`, `fromStrings` and `fromElements` are the usual ways to make one. */
  constructor(name: string, datatype: DataType, shape: readonly number[], bytes: Uint8Array) {
    this.name = name;
    this.datatype = datatype;
    this.shape = shape;
    this.bytes = bytes;
  }

  /** The datatype follows from the array; FP16, BF16 and BOOL are named. Without a shape it is [length]. */
  static from(name: string, data: TensorData, shape?: readonly number[], datatype?: DataType): Tensor {
    const found = datatype ?? DATATYPE_OF_ARRAY[data.constructor.name];
    if (found === undefined) {
      throw new TypeError(`Tensor '${name}' needs a typed array, not ${data.constructor.name}`);
    }
    if (found !== 'BYTES' && data.BYTES_PER_ELEMENT !== elementBytesOf(found)) {
      throw new TypeError(
        `Tensor '${name}' of ${found} needs elements of ${elementBytesOf(found)} bytes, not of ${data.BYTES_PER_ELEMENT}`,
      );
    }
    const given = shape ?? [data.length];
    if (found !== 'BYTES') checkCount(name, given, data.length);
    return new Tensor(name, found, given, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }

  /** A BYTES tensor of texts, in UTF-8. */
  static fromStrings(name: string, strings: readonly string[], shape?: readonly number[]): Tensor {
    checkCount(name, shape ?? [strings.length], strings.length);
    let total = 0;
    for (const text of strings) total += LENGTH_BYTES + Buffer.byteLength(text);
    const bytes = Buffer.allocUnsafe(total);
    let at = 0;
    for (const text of strings) {
      const length = bytes.write(text, at + LENGTH_BYTES);
      at = bytes.writeUInt32LE(length, at) + length;
    }
    return new Tensor(name, 'BYTES', shape ?? [strings.length], bytes);
  }

  /** A BYTES tensor of elements that are no text. */
  static fromElements(name: string, elements: readonly Uint8Array[], shape?: readonly number[]): Tensor {
    checkCount(name, shape ?? [elements.length], elements.length);
    const parts = elements.flatMap((element) => {
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt32LE(element.length);
      return [length, element];
    });
    return new Tensor(name, 'BYTES', shape ?? [elements.length], Buffer.concat(parts));
  }

  /** The elements, without a copy. */
  get data(): TensorData {
    this.#data ??= viewOf(this.datatype, this.bytes);
    return this.#data;
  }

  /** The same as `data`, with its type; throws when the tensor is of another. */
  dataAs<D extends DataType>(datatype: D): TypedArrayOf<D> {
    if (this.datatype !== datatype) {
      throw new TypeError(`Tensor '${this.name}' is of ${this.datatype}, not ${datatype}`);
    }
    return this.data as TypedArrayOf<D>;
  }

  /** The elements of a BYTES tensor as texts. */
  strings(): string[] {
    return this.elements().map((element) => element.toString());
  }

  /** The elements of a BYTES tensor, without a copy. */
  elements(): Buffer[] {
    if (this.datatype !== 'BYTES')
      throw new TypeError(`Tensor '${this.name}' is of ${this.datatype}, not BYTES`);
    const bytes = Buffer.from(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
    const elements: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const start = at + LENGTH_BYTES;
      at = start + bytes.readUInt32LE(at);
      elements.push(bytes.subarray(start, at));
    }
    return elements;
  }

  /** The same elements under another name. */
  rename(name: string): Tensor {
    return new Tensor(name, this.datatype, this.shape, this.bytes);
  }

  /** The same elements in another shape. */
  reshape(shape: readonly number[]): Tensor {
    checkCount(this.name, shape, elementCountOf(this.shape));
    return new Tensor(this.name, this.datatype, shape, this.bytes);
  }
}

function viewOf(datatype: DataType, bytes: Uint8Array): TensorData {
  const elementBytes = elementBytesOf(datatype) || 1;
  // Bytes that came from the server are aligned; those that a model cut out of something may not be.
  const aligned = bytes.byteOffset % elementBytes === 0 ? bytes : Uint8Array.from(bytes);
  return new ARRAY_MAKERS[datatype](aligned.buffer, aligned.byteOffset, aligned.byteLength / elementBytes);
}

function checkCount(name: string, shape: readonly number[], count: number): void {
  const wanted = elementCountOf(shape);
  if (wanted === count) return;
  throw new RangeError(
    `Tensor '${name}' of shape ${shapeText(shape)} needs ${wanted} elements and has ${count}`,
  );
}
