// A tensor as it travels: name, datatype, shape and its bytes as a list of views on received buffers.
// Bytes are little-endian and row-major; a list, because a body or a frame may arrive in several pieces
// and nothing is copied only to make it contiguous.

import type { DataType, RequestDataType } from './datatype.ts';

export type TensorBytes = readonly Buffer[];

export interface InputTensor {
  readonly name: string;
  readonly datatype: RequestDataType;
  readonly shape: readonly number[];
  readonly data: TensorBytes;
  readonly byteLength: number;
}

export interface OutputTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly data: TensorBytes;
  readonly byteLength: number;
}

/** The bytes as one buffer; copies only when they lie in several pieces. */
export function contiguous(data: TensorBytes): Buffer {
  return data.length === 1 ? data[0]! : Buffer.concat(data);
}

export function elementCountOf(shape: readonly number[]): number {
  let count = 1;
  for (let i = 0; i < shape.length; i++) count *= shape[i]!;
  return count;
}

/** `[1,16]`: the form in which error texts show a shape. */
export function shapeText(shape: readonly number[]): string {
  return `[${shape.join(',')}]`;
}
