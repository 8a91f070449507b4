// ONNX Runtime's element types against the datatypes of the protocol.

import type { DataType } from '../../domain/datatype.ts';

/** ONNXTensorElementDataType, by its number. */
const NAMES = [
  'UNDEFINED',
  'FLOAT',
  'UINT8',
  'INT8',
  'UINT16',
  'INT16',
  'INT32',
  'INT64',
  'STRING',
  'BOOL',
  'FLOAT16',
  'DOUBLE',
  'UINT32',
  'UINT64',
  'COMPLEX64',
  'COMPLEX128',
  'BFLOAT16',
] as const;

const DATATYPES: Readonly<Partial<Record<(typeof NAMES)[number], DataType>>> = {
  FLOAT: 'FP32',
  UINT8: 'UINT8',
  INT8: 'INT8',
  UINT16: 'UINT16',
  INT16: 'INT16',
  INT32: 'INT32',
  INT64: 'INT64',
  STRING: 'BYTES',
  BOOL: 'BOOL',
  FLOAT16: 'FP16',
  DOUBLE: 'FP64',
  UINT32: 'UINT32',
  UINT64: 'UINT64',
  BFLOAT16: 'BF16',
};

/** undefined for what the protocol cannot carry: complex, 8-bit and smaller floats, packed integers. */
export function datatypeOfElementType(elementType: number): DataType | undefined {
  const name = NAMES[elementType];
  return name === undefined ? undefined : DATATYPES[name];
}

export function elementTypeOfDatatype(datatype: DataType): number {
  return NAMES.findIndex((name) => DATATYPES[name] === datatype);
}

/** As the C API spells it; error texts show it. */
export function elementTypeName(elementType: number): string {
  return NAMES[elementType] ?? `element type ${elementType}`;
}
