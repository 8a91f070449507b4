// One scalar or enum value of text format, checked against the range of its type. Texts of errors are those
// of protobuf's TextFormat.

import type { FieldSchema } from '../../domain/message-schema.ts';
import { enumNameOf, enumNumberOf, enumSchemaOf } from '../../domain/model-config-enums.ts';
import { type Cursor, fail, isAt, peek, shown, take, tryTake } from './cursor.ts';
import { nearestName } from './nearest-name.ts';
import { PbtxtError } from './pbtxt-error.ts';
import { decodeUtf8, unescapeLiteral } from './string-literal.ts';
import type { Token } from './tokenizer.ts';

const INTEGER_MAX: Readonly<Record<string, bigint>> = {
  int32: 2n ** 31n - 1n,
  int64: 2n ** 63n - 1n,
  uint32: 2n ** 32n - 1n,
  uint64: 2n ** 64n - 1n,
};

export function parseScalar(cursor: Cursor, field: FieldSchema): string | number | boolean {
  switch (field.type) {
    case 'string':
      return parseString(cursor, field);
    case 'bool':
      return parseBool(cursor, field);
    case 'enum':
      return parseEnum(cursor, field);
    case 'float':
      return Math.fround(parseDouble(cursor));
    case 'double':
      return parseDouble(cursor);
    default:
      return parseInteger(cursor, INTEGER_MAX[field.type]!, field.type.startsWith('int'));
  }
}

/** Adjacent literals are one string, as in C. */
function parseString(cursor: Cursor, field: FieldSchema): string {
  const first = peek(cursor);
  if (first.kind !== 'string') throw fail(cursor, `Expected string, got: ${shown(first)}`);
  const bytes: number[] = [];
  while (peek(cursor).kind === 'string') {
    const literal = take(cursor);
    const problem = unescapeLiteral(literal.text, bytes);
    if (problem !== undefined) {
      throw new PbtxtError(cursor.text, literal.offset + problem.at, problem.reason);
    }
  }
  const text = decodeUtf8(bytes);
  if (text === undefined)
    throw fail(cursor, `String field "${field.name}" contains invalid UTF-8 data.`, first);
  return text;
}

const TRUE_WORDS: ReadonlySet<string> = new Set(['true', 'True', 't']);
const FALSE_WORDS: ReadonlySet<string> = new Set(['false', 'False', 'f']);

function parseBool(cursor: Cursor, field: FieldSchema): boolean {
  const token = peek(cursor);
  if (token.kind === 'integer') return parseInteger(cursor, 1n, false) === 1;
  if (token.kind !== 'identifier') throw fail(cursor, `Expected identifier, got: ${shown(token)}`);
  const isTrue = TRUE_WORDS.has(token.text);
  if (!isTrue && !FALSE_WORDS.has(token.text)) {
    throw fail(cursor, `Invalid value for boolean field "${field.name}". Value: "${shown(token)}".`);
  }
  take(cursor);
  return isTrue;
}

function parseEnum(cursor: Cursor, field: FieldSchema): string {
  const token = peek(cursor);
  if (token.kind === 'identifier') {
    if (enumNumberOf(field.typeName, token.text) === undefined) throw unknownEnumValue(cursor, field, token);
    return take(cursor).text;
  }
  if (token.kind !== 'integer' && !isAt(cursor, '-')) {
    throw fail(cursor, `Expected integer or identifier, got: ${shown(token)}`);
  }
  const number = parseInteger(cursor, INTEGER_MAX.int32!, true);
  const name = enumNameOf(field.typeName, number);
  if (name === undefined) throw unknownEnumValue(cursor, field, { ...token, text: String(number) });
  return name;
}

function unknownEnumValue(cursor: Cursor, field: FieldSchema, token: Token): PbtxtError {
  const nearest = nearestName(token.text, Object.keys(enumSchemaOf(field.typeName)));
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
  return fail(
    cursor,
    `Unknown enumeration value of "${shown(token)}" for field "${field.name}".${hint}`,
    token,
  );
}

function parseInteger(cursor: Cursor, max: bigint, isSigned: boolean): number {
  const isNegative = isSigned && tryTake(cursor, '-');
  const token = peek(cursor);
  if (token.kind !== 'integer') throw fail(cursor, `Expected integer, got: ${shown(token)}`);
  const magnitude = integerOf(token.text);
  // Two's complement reaches one further below zero.
  if (magnitude === undefined || magnitude > (isNegative ? max + 1n : max)) {
    throw fail(cursor, `Integer out of range (${shown(token)})`);
  }
  take(cursor);
  return Number(isNegative ? -magnitude : magnitude);
}

/** No 64-bit integer has more digits than this, leading zeros aside; BigInt of a megabyte would take seconds. */
const INTEGER_DIGITS_MAX = 64;

function integerOf(text: string): bigint | undefined {
  if (text.length > INTEGER_DIGITS_MAX) return undefined;
  if (/^0[xX]/.test(text)) return BigInt(text);
  return text.length > 1 && text.startsWith('0') ? BigInt(`0o${text.slice(1)}`) : BigInt(text);
}

function parseDouble(cursor: Cursor): number {
  const isNegative = tryTake(cursor, '-');
  const token = peek(cursor);
  const magnitude = doubleOf(cursor, token);
  take(cursor);
  return isNegative ? -magnitude : magnitude;
}

function doubleOf(cursor: Cursor, token: Token): number {
  if (token.kind === 'integer') {
    if (/^0[0-7xX]/.test(token.text)) throw fail(cursor, `Expect a decimal number, got: ${shown(token)}`);
    return Number(token.text);
  }
  if (token.kind === 'float') return Number(token.text.replace(/[fF]$/, ''));
  const word = token.kind === 'identifier' ? token.text.toLowerCase() : '';
  if (word === 'inf' || word === 'infinity') return Number.POSITIVE_INFINITY;
  if (word === 'nan') return Number.NaN;
  throw fail(cursor, `Expected double, got: ${shown(token)}`);
}
