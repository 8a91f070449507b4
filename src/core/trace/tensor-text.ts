// A tensor's elements as Triton's trace writes them: separated by commas, numbers as a C++ stream prints them, texts in
// quotes. Pure; called by trace-record.ts.

import { contiguous, elementCountOf, type InputTensor, type OutputTensor } from '../../domain/tensor.ts';

/** A larger tensor is traced with its name, shape and type alone: its text would hold up every other request. */
const TENSOR_BYTES_MAX = 16 * 1024 * 1024;

/** A C++ stream prints this many digits unless told otherwise. */
const STREAM_DIGITS = 6;

type ReadElement = (bytes: Buffer, index: number) => string;

const READERS: Readonly<Record<string, ReadElement>> = {
  BOOL: (bytes, i) => (bytes[i] === 0 ? '0' : '1'),
  // Triton writes the bytes themselves here, which makes the file invalid; numbers are what is meant.
  UINT8: (bytes, i) => String(bytes[i]),
  INT8: (bytes, i) => String(bytes.readInt8(i)),
  UINT16: (bytes, i) => String(bytes.readUInt16LE(2 * i)),
  INT16: (bytes, i) => String(bytes.readInt16LE(2 * i)),
  UINT32: (bytes, i) => String(bytes.readUInt32LE(4 * i)),
  INT32: (bytes, i) => String(bytes.readInt32LE(4 * i)),
  UINT64: (bytes, i) => String(bytes.readBigUInt64LE(8 * i)),
  INT64: (bytes, i) => String(bytes.readBigInt64LE(8 * i)),
  FP32: (bytes, i) => streamNumber(bytes.readFloatLE(4 * i)),
  FP64: (bytes, i) => streamNumber(bytes.readDoubleLE(8 * i)),
};

/** Empty for half precision, as in Triton, and for bytes that do not fit the shape. */
export function tensorText(tensor: InputTensor | OutputTensor): string {
  if (tensor.byteLength > TENSOR_BYTES_MAX) return '';
  const count = elementCountOf(tensor.shape);
  if (tensor.datatype === 'BYTES') return bytesText(contiguous(tensor.data), count);
  const read = READERS[tensor.datatype];
  if (read === undefined || count === 0 || tensor.byteLength % count !== 0) return '';
  const bytes = contiguous(tensor.data);
  const texts: string[] = [];
  for (let i = 0; i < count; i++) texts.push(read(bytes, i));
  return texts.join(',');
}

function bytesText(bytes: Buffer, count: number): string {
  const texts: string[] = [];
  let at = 0;
  for (let i = 0; i < count && at + 4 <= bytes.length; i++) {
    const end = at + 4 + bytes.readUInt32LE(at);
    if (end > bytes.length) break;
    texts.push(`"${bytes.toString('utf8', at + 4, end)}"`);
    at = end;
  }
  return texts.join(',');
}

/** As printf's %g: six digits without trailing zeros, an exponent of two digits where the number is far from 1. */
export function streamNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [digits = '', exponentText = '0'] = value.toExponential(STREAM_DIGITS - 1).split('e');
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < STREAM_DIGITS) {
    return withoutZeros(value.toFixed(STREAM_DIGITS - 1 - exponent));
  }
  const sign = exponent < 0 ? '-' : '+';
  return `${withoutZeros(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function withoutZeros(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}
