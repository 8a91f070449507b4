// Values → an input tensor in the datatype and shape that a model declares, and BYTES tensors ↔ texts.
// Pure; generation-inputs.ts and the endpoints that ask with one JSON document call it.

import { type DataType, elementBytesOf } from '../../domain/datatype.ts';
import type { ModelView, TensorSpec } from '../../domain/model-view.ts';
import { internal } from '../../domain/status.ts';
import { contiguous, type InputTensor, type OutputTensor } from '../../domain/tensor.ts';
import { toBuffer } from '../json-thread.ts';
import { invalidField } from './api-error.ts';

/** Bytes are text in UTF-8. */
export type TensorValue = string | number | bigint | boolean | Uint8Array;
/** Token ids come as they are sent. */
export type TensorValues = readonly TensorValue[] | Int32Array;

/** `param` is the field of the request that a shape which does not fit is blamed on. */
export function tensorOf(
  model: Pick<ModelView, 'maxBatchSize'>,
  spec: TensorSpec,
  given: { readonly values: TensorValues; readonly param: string },
): InputTensor {
  const { values } = given;
  const shape = shapeOf(model, spec, given);
  const data = spec.datatype === 'BYTES' ? packTexts(values) : [packNumbers(spec.datatype, values)];
  const byteLength = data.reduce((sum, { length }) => sum + length, 0);
  return { name: spec.name, datatype: spec.datatype, shape, data, byteLength };
}

/** The innermost variable dimension takes all values, other variable ones are 1. */
function shapeOf(
  model: Pick<ModelView, 'maxBatchSize'>,
  spec: TensorSpec,
  { values, param }: { readonly values: TensorValues; readonly param: string },
): number[] {
  const fixed = spec.dims.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const innermost = spec.dims.lastIndexOf(-1);
  if (innermost < 0 ? values.length !== fixed : fixed !== 1) {
    throw invalidField(
      param,
      `${values.length} values of '${param}' do not fit the input '${spec.name}' of the model, which is [${spec.dims.join(',')}].`,
    );
  }
  const shape = spec.dims.map((dim, i) => (i === innermost ? values.length : dim === -1 ? 1 : dim));
  return model.maxBatchSize > 0 ? [1, ...shape] : shape;
}

/** Bytes, which may be many, are not copied. */
function packTexts(values: TensorValues): Buffer[] {
  const [first] = values;
  if (values.length !== 1 || !(first instanceof Uint8Array)) {
    return [packStrings(Array.from<TensorValue, string>(values, textOf))];
  }
  const length = Buffer.alloc(4);
  length.writeUInt32LE(first.length);
  return [length, toBuffer(first)];
}

function textOf(value: TensorValue): string {
  return value instanceof Uint8Array ? toBuffer(value).toString() : String(value);
}

/** Each text with its length before it, as BYTES tensors are. */
export function packStrings(texts: readonly string[]): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const packed = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + length, 0));
  let at = 0;
  for (let i = 0; i < texts.length; i++) {
    at = packed.writeUInt32LE(lengths[i]!, at);
    at += packed.write(texts[i]!, at);
  }
  return packed;
}

type Writer = (view: DataView, at: number, value: Exclude<TensorValue, Uint8Array>) => void;

const WRITERS: Partial<Readonly<Record<DataType, Writer>>> = {
  BOOL: (view, at, value) => view.setUint8(at, Number(value) > 0 ? 1 : 0),
  UINT8: (view, at, value) => view.setUint8(at, Number(value)),
  INT8: (view, at, value) => view.setInt8(at, Number(value)),
  UINT16: (view, at, value) => view.setUint16(at, Number(value), true),
  INT16: (view, at, value) => view.setInt16(at, Number(value), true),
  UINT32: (view, at, value) => view.setUint32(at, Number(value), true),
  INT32: (view, at, value) => view.setInt32(at, Number(value), true),
  FP32: (view, at, value) => view.setFloat32(at, Number(value), true),
  FP64: (view, at, value) => view.setFloat64(at, Number(value), true),
  UINT64: (view, at, value) => view.setBigUint64(at, BigInt.asUintN(64, BigInt(value)), true),
  INT64: (view, at, value) => view.setBigInt64(at, BigInt.asIntN(64, BigInt(value)), true),
};

function packNumbers(datatype: DataType, values: TensorValues): Buffer {
  if (datatype === 'INT32' && values instanceof Int32Array) {
    return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  }
  const write = WRITERS[datatype];
  if (write === undefined)
    throw internal(`an input of datatype ${datatype} cannot be made of a text request`);
  const elementBytes = elementBytesOf(datatype);
  const packed = Buffer.alloc(values.length * elementBytes);
  const view = new DataView(packed.buffer, packed.byteOffset, packed.length);
  values.forEach((value, i) => {
    write(view, i * elementBytes, value instanceof Uint8Array ? textOf(value) : value);
  });
  return packed;
}

/** The elements of a BYTES output. */
export function unpackBytes(tensor: OutputTensor): Buffer[] {
  const data = contiguous(tensor.data);
  const elements: Buffer[] = [];
  for (let at = 0; at + 4 <= data.length; ) {
    const end = at + 4 + data.readUInt32LE(at);
    if (end > data.length) throw internal(`the model's output '${tensor.name}' is cut off`);
    elements.push(data.subarray(at + 4, end));
    at = end;
  }
  return elements;
}

const READERS: Partial<Readonly<Record<DataType, (data: Buffer) => number[]>>> = {
  UINT32: (data) => everyFour(data, (at) => data.readUInt32LE(at)),
  INT32: (data) => everyFour(data, (at) => data.readInt32LE(at)),
  UINT64: (data) => everyEight(data, (at) => Number(data.readBigUInt64LE(at))),
  INT64: (data) => everyEight(data, (at) => Number(data.readBigInt64LE(at))),
};

function everyFour(data: Buffer, read: (at: number) => number): number[] {
  return Array.from({ length: data.length >> 2 }, (_, i) => read(i * 4));
}

function everyEight(data: Buffer, read: (at: number) => number): number[] {
  return Array.from({ length: data.length >> 3 }, (_, i) => read(i * 8));
}

/** The elements of an integer output; none for any other datatype. */
export function unpackIntegers(tensor: OutputTensor): number[] {
  return READERS[tensor.datatype]?.(contiguous(tensor.data)) ?? [];
}
