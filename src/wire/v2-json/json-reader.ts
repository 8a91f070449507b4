// JSON text → JsonValue, imitating rapidjson as Triton sets it up, error texts and offsets included.
// Arrays are checked in one pass and kept as slices, so a tensor of a million numbers makes no million values.
// Only objects recurse, and their depth is bounded; arrays may nest without end and cost a counter.

import { isUtf8 } from 'node:buffer';
import { JSON_DEPTH_MAX } from '../../domain/limits.ts';
import { invalidArgument } from '../../domain/status.ts';
import {
  BACKSLASH,
  COLON,
  COMMA,
  hexDigit,
  isDigit,
  LEFT_BRACKET,
  LEFT_CURLY,
  MINUS,
  parseError,
  QUOTE,
  RIGHT_BRACKET,
  RIGHT_CURLY,
  scanScalar,
  scanString,
  simpleEscape,
  skipSpace,
} from './json-scan.ts';
import type { JsonArray, JsonBytes, JsonObject, JsonValue } from './json-value.ts';

const NO_OBJECTS: readonly JsonObject[] = [];
const INT64_MIN = -(2n ** 63n);
const UINT64_MAX = 2n ** 64n - 1n;
/** Integers of at most this many digits are exact as a number. */
const SAFE_DIGITS_MAX = 15;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

export function parseJson(text: Buffer): JsonValue {
  const end = text.length;
  let pos = 0;
  // As rapidjson: each byte of the mark is skipped if it is there.
  for (const byte of BYTE_ORDER_MARK) if (text[pos] === byte) pos += 1;
  pos = skipSpace(text, pos, end);
  const first = pos < end ? text[pos]! : 0;
  const isDelimiter = first === RIGHT_BRACKET || first === RIGHT_CURLY || first === COMMA || first === COLON;
  if (first === 0 || isDelimiter) throw parseError('The document is empty.', pos);
  const root = parseValue(text, pos, end, 0);
  pos = skipSpace(text, root.end, end);
  if (pos < end && text[pos] !== 0) {
    throw parseError('The document root must not be followed by other values.', pos);
  }
  return root.value;
}

interface Parsed {
  readonly value: JsonValue;
  readonly end: number;
}

function parseValue(text: Buffer, at: number, end: number, depth: number): Parsed {
  const first = at < end ? text[at] : 0;
  if (first === LEFT_CURLY) {
    const value = parseObject(text, at, end, depth + 1);
    return { value, end: value.end };
  }
  if (first === LEFT_BRACKET) {
    const value = parseArray(text, at, end, depth);
    return { value, end: value.end };
  }
  const after = scanScalar(text, at, end);
  return { value: scalarOf(text, at, after), end: after };
}

function parseObject(text: Buffer, at: number, end: number, depth: number): JsonObject {
  if (depth > JSON_DEPTH_MAX) {
    throw invalidArgument(`JSON nesting depth exceeds maximum allowed limit (${JSON_DEPTH_MAX})`);
  }
  const names: string[] = [];
  const values: JsonValue[] = [];
  let pos = skipSpace(text, at + 1, end);
  if (text[pos] === RIGHT_CURLY && pos < end)
    return { kind: 'object', start: at, end: pos + 1, names, values };
  for (;;) {
    if (pos >= end || text[pos] !== QUOTE) throw parseError('Missing a name for object member.', pos);
    const nameEnd = scanString(text, pos, end);
    names.push(displayText(decodeString(text, pos + 1, nameEnd - 1)));
    pos = skipSpace(text, nameEnd, end);
    if (pos >= end || text[pos] !== COLON) {
      throw parseError('Missing a colon after a name of object member.', pos);
    }
    const member = parseValue(text, skipSpace(text, pos + 1, end), end, depth);
    values.push(member.value);
    pos = skipSpace(text, member.end, end);
    const next = pos < end ? text[pos] : 0;
    if (next === RIGHT_CURLY) return { kind: 'object', start: at, end: pos + 1, names, values };
    if (next !== COMMA) throw parseError("Missing a comma or '}' after an object member.", pos);
    pos = skipSpace(text, pos + 1, end);
  }
}

/** Where in an array the scan stands: after `[`, after an element, or after a comma. */
const OPENED = 0;
const ELEMENT = 1;
const DELIMITER = 2;

function parseArray(text: Buffer, at: number, end: number, depth: number): JsonArray {
  let objects: JsonObject[] | undefined;
  let nesting = 1;
  let state = OPENED;
  let pos = at + 1;
  while (nesting > 0) {
    pos = skipSpace(text, pos, end);
    const byte = pos < end ? text[pos]! : 0;
    if (byte === RIGHT_BRACKET && state !== DELIMITER) {
      nesting -= 1;
      pos += 1;
      state = ELEMENT;
    } else if (state === ELEMENT) {
      if (byte !== COMMA) throw parseError("Missing a comma or ']' after an array element.", pos);
      pos += 1;
      state = DELIMITER;
    } else if (byte === LEFT_BRACKET) {
      nesting += 1;
      pos += 1;
      state = OPENED;
    } else if (byte === LEFT_CURLY) {
      const object = parseObject(text, pos, end, depth + 1);
      objects ??= [];
      objects.push(object);
      pos = object.end;
      state = ELEMENT;
    } else {
      pos = scanScalar(text, pos, end);
      state = ELEMENT;
    }
  }
  return { kind: 'array', text, start: at, end: pos, objects: objects ?? NO_OBJECTS };
}

/** The elements of an array one by one; for the short arrays of a request head, not for tensor data. */
export function itemsOf(array: JsonArray): JsonValue[] {
  const { text, objects } = array;
  const end = array.end - 1;
  const items: JsonValue[] = [];
  let objectIndex = 0;
  let pos = skipSpace(text, array.start + 1, end);
  while (pos < end) {
    if (text[pos] === LEFT_CURLY) {
      // Objects inside nested arrays stand in the list as well: pass over those that lie behind us.
      while (objects[objectIndex]!.start < pos) objectIndex += 1;
      const object = objects[objectIndex]!;
      items.push(object);
      pos = object.end;
    } else {
      const item = parseValue(text, pos, end, 0);
      items.push(item.value);
      pos = item.end;
    }
    pos = skipSpace(text, pos, end);
    if (pos < end) pos = skipSpace(text, pos + 1, end);
  }
  return items;
}

/** The value of a scalar that was scanned already. */
function scalarOf(text: Buffer, start: number, end: number): JsonValue {
  const first = text[start]!;
  if (first === QUOTE) return decodeString(text, start + 1, end - 1);
  if (first === 0x74) return true;
  if (first === 0x66) return false;
  if (first === 0x6e) return null;
  return numberOf(text.toString('latin1', start, end));
}

function numberOf(token: string): JsonValue {
  const last = token.charCodeAt(token.length - 1);
  if (!isDigit(last)) return { kind: 'double', value: notFiniteOf(token) };
  if (/[.eE]/.test(token)) return { kind: 'double', value: Number(token) };
  // `-0` is the integer 0 for rapidjson.
  if (token.length <= SAFE_DIGITS_MAX) return Number(token) + 0;
  const exact = BigInt(token);
  const number = Number(exact);
  if (Number.isSafeInteger(number)) return number;
  if (exact < INT64_MIN || exact > UINT64_MAX) return { kind: 'double', value: number };
  return exact;
}

/** `NaN`, `Inf`, `Infinity` with or without a minus. */
function notFiniteOf(token: string): number {
  if (token.endsWith('NaN')) return Number.NaN;
  return token.charCodeAt(0) === MINUS ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

function displayText(value: string | JsonBytes): string {
  return typeof value === 'string' ? value : value.bytes.toString('utf8');
}

/** The inside of a scanned string, its quotes left out. */
export function decodeString(text: Buffer, start: number, end: number): string | JsonBytes {
  let highest = 0;
  for (let i = start; i < end; i++) {
    const byte = text[i]!;
    if (byte === BACKSLASH) {
      const bytes = Buffer.allocUnsafe(end - start);
      return textOrBytes(bytes.subarray(0, unescapeInto(text, start, end, bytes, 0)));
    }
    if (byte > highest) highest = byte;
  }
  if (highest < 0x80) return text.toString('latin1', start, end);
  return textOrBytes(text.subarray(start, end));
}

function textOrBytes(bytes: Buffer): string | JsonBytes {
  return isUtf8(bytes) ? bytes.toString('utf8') : { kind: 'bytes', bytes: Buffer.from(bytes) };
}

/** Writes the inside of a scanned string with its escapes resolved; returns the offset after it. Never longer than the text. */
export function unescapeInto(text: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let pos = start;
  let out = at;
  while (pos < end) {
    const byte = text[pos]!;
    if (byte !== BACKSLASH) {
      target[out++] = byte;
      pos += 1;
      continue;
    }
    const escaped = text[pos + 1]!;
    if (escaped !== 0x75) {
      target[out++] = simpleEscape(escaped);
      pos += 2;
      continue;
    }
    const unit = hex4(text, pos + 2);
    const isPair = unit >= 0xd800 && unit <= 0xdbff;
    const codePoint = isPair ? 0x10000 + ((unit - 0xd800) << 10) + (hex4(text, pos + 8) - 0xdc00) : unit;
    out += target.write(String.fromCodePoint(codePoint), out, 'utf8');
    pos += isPair ? 12 : 6;
  }
  return out;
}

function hex4(text: Buffer, at: number): number {
  let unit = 0;
  for (let i = 0; i < 4; i++) unit = unit * 16 + hexDigit(text[at + i]!);
  return unit;
}
