// A JSON `data` array → the bytes of a tensor, straight from the text: no value is boxed on the way.
// Nesting is flattened and only the count of elements is checked, as Triton does. The array was validated by
// json-reader.ts, so this walk looks for types, range and count alone.

import { type DataType, elementBytesOf } from '../../domain/datatype.ts';
import { JSON_DEPTH_MAX } from '../../domain/limits.ts';
import { internal, invalidArgument, type StatusError } from '../../domain/status.ts';
import { unescapeInto } from './json-reader.ts';
import {
  COMMA,
  isDigit,
  LEFT_BRACKET,
  MINUS,
  QUOTE,
  RIGHT_BRACKET,
  scanString,
  skipSpace,
} from './json-scan.ts';
import type { JsonArray } from './json-value.ts';
import { rapidjsonDouble } from './rapidjson-double.ts';

interface TokenCursor {
  readonly text: Buffer;
  /** At the first byte of a scalar before a reader runs, after it afterwards. */
  pos: number;
}

/** Reads the scalar at the cursor and stores it as element `index`. */
type ElementReader = (cursor: TokenCursor, index: number) => void;

const CONTEXT = "Unable to parse 'data': ";
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2n ** 64n - 1n;
/** Digits that a double holds exactly, so that they can be summed up in one. */
const EXACT_DIGITS_MAX = 15;
/** Powers of ten that a double holds exactly: one multiplication or division then rounds correctly. */
const POWERS_OF_TEN = Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

export function readJsonTensor(options: {
  array: JsonArray;
  datatype: Exclude<DataType, 'BYTES' | 'FP16' | 'BF16'>;
  elementCount: number;
}): Buffer {
  const { array, datatype, elementCount } = options;
  // No more elements than bytes of text: a huge shape with little data must not allocate what it claims.
  const capacity = Math.min(elementCount, array.end - array.start);
  const target = Buffer.allocUnsafeSlow(capacity * elementBytesOf(datatype));
  const read = readerOf(datatype, target);
  let count = 0;
  walkElements(array, CONTEXT, (cursor) => {
    if (count >= elementCount) throw shapeMismatch();
    read(cursor, count);
    count += 1;
  });
  if (count !== elementCount) throw shapeMismatch();
  return target;
}

/** BYTES elements as a tensor holds them: each a 32-bit length, then its bytes. Their count is checked by core. */
export function readJsonStrings(array: JsonArray): Buffer {
  const { text } = array;
  // An element takes at least three bytes of text (two quotes and a separator) and four more than its inside here.
  const target = Buffer.allocUnsafe(Math.ceil(((array.end - array.start) * 4) / 3) + 4);
  let length = 0;
  walkElements(array, '', (cursor) => {
    const start = cursor.pos;
    if (text[start] !== QUOTE) {
      throw internal('Unable to parse JSON bytes array: attempt to access JSON non-string as string');
    }
    cursor.pos = scanString(text, start, array.end);
    const after = unescapeInto(text, start + 1, cursor.pos - 1, target, length + 4);
    target.writeUInt32LE(after - length - 4, length);
    length = after;
  });
  return target.subarray(0, length);
}

function shapeMismatch(): StatusError {
  return internal(`${CONTEXT}Shape does not match true shape of 'data' field`);
}

function walkElements(array: JsonArray, context: string, visit: (cursor: TokenCursor) => void): void {
  const { text, end } = array;
  const cursor: TokenCursor = { text, pos: array.start + 1 };
  let depth = 1;
  for (;;) {
    const pos = skipSpace(text, cursor.pos, end);
    const byte = text[pos]!;
    cursor.pos = pos + 1;
    if (byte === RIGHT_BRACKET) {
      depth -= 1;
      if (depth === 0) return;
    } else if (byte !== COMMA) {
      if (depth >= JSON_DEPTH_MAX) {
        throw invalidArgument(
          `${context}JSON nesting depth exceeds maximum allowed limit (${JSON_DEPTH_MAX})`,
        );
      }
      if (byte === LEFT_BRACKET) {
        depth += 1;
      } else {
        cursor.pos = pos;
        visit(cursor);
      }
    }
  }
}

function readerOf(datatype: Exclude<DataType, 'BYTES' | 'FP16' | 'BF16'>, target: Buffer): ElementReader {
  const { buffer, byteOffset, length } = target;
  switch (datatype) {
    case 'BOOL':
      return (cursor, index) => {
        target[index] = readBoolean(cursor);
      };
    case 'FP32':
      return floatReader(new Float32Array(buffer, byteOffset, length / 4));
    case 'FP64':
      return floatReader(new Float64Array(buffer, byteOffset, length / 8));
    case 'UINT64':
    case 'INT64':
      return wideReader(new Uint32Array(buffer, byteOffset, length / 4), datatype === 'INT64');
    case 'INT8':
      return narrowReader(new Int8Array(buffer, byteOffset, length), true);
    case 'INT16':
      return narrowReader(new Int16Array(buffer, byteOffset, length / 2), true);
    case 'INT32':
      return narrowReader(new Int32Array(buffer, byteOffset, length / 4), true);
    case 'UINT8':
      return narrowReader(target, false);
    case 'UINT16':
      return narrowReader(new Uint16Array(buffer, byteOffset, length / 2), false);
    case 'UINT32':
      return narrowReader(new Uint32Array(buffer, byteOffset, length / 4), false);
  }
}

function floatReader(target: Float32Array | Float64Array): ElementReader {
  return (cursor, index) => {
    target[index] = readDouble(cursor);
  };
}

type NarrowArray = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array;

/** Storing in a typed array wraps around, as Triton's C cast does. */
function narrowReader(target: NarrowArray, isSigned: boolean): ElementReader {
  return (cursor, index) => {
    const value = readInteger(cursor, isSigned);
    target[index] = typeof value === 'number' ? value : Number(BigInt.asUintN(32, value));
  };
}

/** 64-bit integers, stored as low and high half. */
function wideReader(target: Uint32Array, isSigned: boolean): ElementReader {
  return (cursor, index) => {
    const value = readInteger(cursor, isSigned);
    if (typeof value === 'number') {
      target[index * 2] = value;
      target[index * 2 + 1] = Math.floor(value / 0x1_0000_0000);
    } else {
      target[index * 2] = Number(BigInt.asUintN(32, value));
      target[index * 2 + 1] = Number(BigInt.asUintN(32, value >> 32n));
    }
  };
}

function readBoolean(cursor: TokenCursor): number {
  const first = cursor.text[cursor.pos];
  if (first === 0x74) {
    cursor.pos += 4;
    return 1;
  }
  if (first === 0x66) {
    cursor.pos += 5;
    return 0;
  }
  throw internal(`${CONTEXT}attempt to access JSON non-boolean as boolean`);
}

function notInteger(isSigned: boolean): StatusError {
  const type = isSigned ? 'signed-integer' : 'unsigned-integer';
  return internal(`${CONTEXT}attempt to access JSON non-${type} as ${type}`);
}

function readInteger(cursor: TokenCursor, isSigned: boolean): number | bigint {
  const { text, pos: start } = cursor;
  const isNegative = text[start] === MINUS;
  const digitsAt = isNegative ? start + 1 : start;
  let pos = digitsAt;
  let magnitude = 0;
  while (isDigit(text[pos]!)) {
    magnitude = magnitude * 10 + (text[pos]! - 0x30);
    pos += 1;
  }
  const next = text[pos]!;
  if (pos === digitsAt || next === 0x2e || (next | 0x20) === 0x65) throw notInteger(isSigned);
  cursor.pos = pos;
  if (isNegative && !isSigned && magnitude !== 0) throw notInteger(isSigned);
  if (pos - digitsAt <= EXACT_DIGITS_MAX) return isNegative ? -magnitude : magnitude;
  const exact = BigInt(text.toString('latin1', start, pos));
  const isInRange = isSigned ? exact >= INT64_MIN && exact <= INT64_MAX : exact <= UINT64_MAX;
  if (!isInRange) throw notInteger(isSigned);
  return exact;
}

function readDouble(cursor: TokenCursor): number {
  const { text, pos: start } = cursor;
  const isNegative = text[start] === MINUS;
  const digitsAt = isNegative ? start + 1 : start;
  let pos = digitsAt;
  let magnitude = 0;
  while (isDigit(text[pos]!)) magnitude = magnitude * 10 + (text[pos++]! - 0x30);
  if (pos === digitsAt) return readNotFinite(cursor, digitsAt, isNegative);
  let digits = pos - digitsAt;
  let isInteger = true;
  let exponent = 0;
  if (text[pos] === 0x2e) {
    isInteger = false;
    pos += 1;
    const fractionAt = pos;
    while (isDigit(text[pos]!)) magnitude = magnitude * 10 + (text[pos++]! - 0x30);
    exponent = fractionAt - pos;
    digits -= exponent;
  }
  if ((text[pos]! | 0x20) === 0x65) {
    isInteger = false;
    pos = exponentEnd(text, pos + 1);
    // Rare in tensors; read with all care below.
    digits = EXACT_DIGITS_MAX + 1;
  }
  cursor.pos = pos;
  if (digits > EXACT_DIGITS_MAX) return rapidjsonDouble(text, start, pos);
  const value = exponent === 0 ? magnitude : magnitude / POWERS_OF_TEN[-exponent]!;
  // `-0` is the integer 0 for rapidjson, `-0.0` is not.
  if (!isNegative || (isInteger && value === 0)) return value;
  return -value;
}

function exponentEnd(text: Buffer, at: number): number {
  let pos = isDigit(text[at]!) ? at : at + 1;
  while (isDigit(text[pos]!)) pos += 1;
  return pos;
}

/** `NaN`, `Inf` or `Infinity`; whatever else stands here is no number. */
function readNotFinite(cursor: TokenCursor, at: number, isNegative: boolean): number {
  const { text } = cursor;
  const first = text[at];
  if (first === 0x4e) {
    cursor.pos = at + 3;
    return Number.NaN;
  }
  if (first !== 0x49) throw internal(`${CONTEXT}attempt to access JSON non-number as double`);
  cursor.pos = text[at + 3] === 0x69 ? at + 8 : at + 3;
  return isNegative ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
