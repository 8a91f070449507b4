// The tokens of JSON as rapidjson reads them: each function takes the offset of a token, checks it and returns
// the offset after it, or throws Triton's parse error. Beyond the standard, NaN, Inf and Infinity are numbers.
// Reading at or past `end` gives 0, and a NUL byte in the text ends it likewise.

import { internal, type StatusError } from '../../domain/status.ts';

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const LEFT_BRACKET = 0x5b;
export const RIGHT_BRACKET = 0x5d;
export const LEFT_CURLY = 0x7b;
export const RIGHT_CURLY = 0x7d;
export const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const LOWER_U = 0x75;

/** Digits that may still fit a double whatever the exponent; longer or larger ones are computed to know. */
const DECIMAL_EXPONENT_SAFE = 300;
const DECIMAL_EXPONENT_MAX = 308;

export function parseError(reason: string, offset: number): StatusError {
  return internal(`failed to parse the request JSON buffer: ${reason} at ${offset}`);
}

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function byteAt(text: Buffer, at: number, end: number): number {
  return at < end ? text[at]! : 0;
}

export function skipSpace(text: Buffer, at: number, end: number): number {
  let pos = at;
  while (pos < end) {
    const byte = text[pos]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    pos += 1;
  }
  return pos;
}

/** A string, a number or a literal; anything else is `Invalid value.`, as a number that does not start. */
export function scanScalar(text: Buffer, at: number, end: number): number {
  switch (byteAt(text, at, end)) {
    case QUOTE:
      return scanString(text, at, end);
    case 0x74:
      return scanLiteral(text, at, end, 'true');
    case 0x66:
      return scanLiteral(text, at, end, 'false');
    case 0x6e:
      return scanLiteral(text, at, end, 'null');
    default:
      return scanNumber(text, at, end);
  }
}

/** The error offset is the first byte that differs. */
function scanLiteral(text: Buffer, at: number, end: number, literal: string): number {
  for (let i = 0; i < literal.length; i++) {
    if (byteAt(text, at + i, end) !== literal.charCodeAt(i)) throw parseError('Invalid value.', at + i);
  }
  return at + literal.length;
}

export function scanString(text: Buffer, at: number, end: number): number {
  let pos = at + 1;
  for (;;) {
    const byte = byteAt(text, pos, end);
    if (byte === QUOTE) return pos + 1;
    if (byte === BACKSLASH) pos = scanEscape(text, pos, end);
    else if (byte >= 0x20) pos += 1;
    else if (byte === 0) throw parseError('Missing a closing quotation mark in string.', pos);
    else throw parseError('Invalid escape character in string.', pos);
  }
}

function scanEscape(text: Buffer, at: number, end: number): number {
  const byte = byteAt(text, at + 1, end);
  if (byte !== LOWER_U) {
    if (simpleEscape(byte) === 0) throw parseError('Invalid escape character in string.', at);
    return at + 2;
  }
  const unit = scanHex4(text, at + 2, end, at);
  if (unit < 0xd800 || unit > 0xdfff) return at + 6;
  const isPair =
    unit <= 0xdbff && byteAt(text, at + 6, end) === BACKSLASH && byteAt(text, at + 7, end) === LOWER_U;
  const low = isPair ? scanHex4(text, at + 8, end, at) : 0;
  if (low < 0xdc00 || low > 0xdfff) throw parseError('The surrogate pair in string is invalid.', at);
  return at + 12;
}

function scanHex4(text: Buffer, at: number, end: number, escapeAt: number): number {
  let unit = 0;
  for (let i = 0; i < 4; i++) {
    const digit = hexDigit(byteAt(text, at + i, end));
    if (digit < 0) throw parseError('Incorrect hex digit after \\u escape in string.', escapeAt);
    unit = unit * 16 + digit;
  }
  return unit;
}

export function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

/** What `\n` and its kind stand for; 0 when there is no such escape. */
export function simpleEscape(byte: number): number {
  switch (byte) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
      return byte;
    case 0x62:
      return 0x08;
    case 0x66:
      return 0x0c;
    case 0x6e:
      return 0x0a;
    case 0x72:
      return 0x0d;
    case 0x74:
      return 0x09;
    default:
      return 0;
  }
}

export function scanNumber(text: Buffer, at: number, end: number): number {
  let pos = byteAt(text, at, end) === MINUS ? at + 1 : at;
  const first = byteAt(text, pos, end);
  if (!isDigit(first)) return scanNotFinite(text, pos, end);
  const integerAt = pos;
  pos = first === 0x30 ? pos + 1 : scanDigits(text, pos, end);
  const integerDigits = pos - integerAt;
  let fractionDigits = 0;
  if (byteAt(text, pos, end) === DOT) {
    const fractionAt = pos + 1;
    pos = scanDigits(text, fractionAt, end);
    fractionDigits = pos - fractionAt;
    if (fractionDigits === 0) throw parseError('Miss fraction part in number.', pos);
  }
  let exponent = 0;
  if ((byteAt(text, pos, end) | 0x20) === 0x65) {
    const sign = byteAt(text, pos + 1, end);
    const exponentAt = sign === PLUS || sign === MINUS ? pos + 2 : pos + 1;
    pos = scanDigits(text, exponentAt, end);
    if (pos === exponentAt) throw parseError('Miss exponent in number.', pos);
    if (sign !== MINUS) exponent = Number(text.toString('latin1', exponentAt, pos));
  }
  if (integerDigits + exponent > DECIMAL_EXPONENT_SAFE) {
    const isTooBig =
      exponent > DECIMAL_EXPONENT_MAX + fractionDigits ||
      !Number.isFinite(Number(text.toString('latin1', at, pos)));
    if (isTooBig) throw parseError('Number too big to be stored in double.', at);
  }
  return pos;
}

function scanDigits(text: Buffer, at: number, end: number): number {
  let pos = at;
  while (pos < end && isDigit(text[pos]!)) pos += 1;
  return pos;
}

/** `NaN`, `Inf`, `Infinity`, the sign already read. */
function scanNotFinite(text: Buffer, at: number, end: number): number {
  const first = byteAt(text, at, end);
  if (first === 0x4e) return scanLiteral(text, at, end, 'NaN');
  if (first !== 0x49) throw parseError('Invalid value.', at);
  const pos = scanLiteral(text, at, end, 'Inf');
  return byteAt(text, pos, end) === 0x69 ? scanLiteral(text, pos, end, 'inity') : pos;
}
