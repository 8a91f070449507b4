// The values that json-reader.ts makes, and the typed access to them with Triton's error texts.
// Objects keep duplicate members in order and lookup returns the first, as rapidjson does. An array is only
// a validated slice of the text: numbers are converted when someone knows the wanted datatype.

import { internal, type StatusError } from '../../domain/status.ts';

/** A number with a fraction, an exponent or no place in 64 bits; `1` and `1.0` differ for Triton. */
export interface JsonDouble {
  readonly kind: 'double';
  readonly value: number;
}

/** A string that is not valid UTF-8: Triton passes its bytes on as they are. */
export interface JsonBytes {
  readonly kind: 'bytes';
  readonly bytes: Buffer;
}

export interface JsonObject {
  readonly kind: 'object';
  /** Offset of `{` in the text. */
  readonly start: number;
  /** Offset after `}`. */
  readonly end: number;
  readonly names: readonly string[];
  readonly values: readonly JsonValue[];
}

/**
 *   text:  … [ 1, [2, 3], {"a": 4} ] …
 *            ^start                 ^end       objects: the one {"a": 4}, whatever the depth of its array
 */
export interface JsonArray {
  readonly kind: 'array';
  readonly text: Buffer;
  readonly start: number;
  readonly end: number;
  readonly objects: readonly JsonObject[];
}

/** Integers of 64 bits are numbers when safe and bigints beyond. */
export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | JsonDouble
  | JsonBytes
  | JsonObject
  | JsonArray;

const INT64_MAX = 2n ** 63n - 1n;

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && value.kind === 'object';
}

export function isArray(value: JsonValue | undefined): value is JsonArray {
  return typeof value === 'object' && value !== null && value.kind === 'array';
}

/** The first member of that name; undefined also when `value` is no object, as Triton's Find does. */
export function findMember(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (!isObject(value)) return undefined;
  const index = value.names.indexOf(name);
  return index < 0 ? undefined : value.values[index];
}

/** Context is what Triton puts before the accessor's text: `Unable to parse 'name'`. */
function accessError(reason: string, context: string): StatusError {
  return internal(context === '' ? reason : `${context}: ${reason}`);
}

function mistyped(type: string, context: string): StatusError {
  return accessError(`attempt to access JSON non-${type} as ${type === 'number' ? 'double' : type}`, context);
}

export function requireMember(value: JsonValue, name: string, context: string): JsonValue {
  const member = findMember(value, name);
  if (member === undefined) {
    throw accessError(`attempt to access non-existing object member '${name}'`, context);
  }
  return member;
}

export function memberNames(value: JsonValue, context: string): readonly string[] {
  if (!isObject(value)) throw accessError('attempt to get members for non-object', context);
  return value.names;
}

export function asBytesOrString(value: JsonValue, context: string): string | JsonBytes {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null && value.kind === 'bytes') return value;
  throw mistyped('string', context);
}

/** The text as Triton's C strings carry it: up to the first NUL; invalid UTF-8 is shown, not kept. */
export function asString(value: JsonValue, context: string): string {
  const found = asBytesOrString(value, context);
  const text = typeof found === 'string' ? found : found.bytes.toString('utf8');
  const nul = text.indexOf('\0');
  return nul < 0 ? text : text.slice(0, nul);
}

export function asBoolean(value: JsonValue, context: string): boolean {
  if (typeof value !== 'boolean') throw mistyped('boolean', context);
  return value;
}

export function asUnsigned(value: JsonValue, context: string): number | bigint {
  if ((typeof value === 'number' || typeof value === 'bigint') && value >= 0) return value;
  throw mistyped('unsigned-integer', context);
}

export function asSigned(value: JsonValue, context: string): number | bigint {
  if (typeof value === 'number' || (typeof value === 'bigint' && value <= INT64_MAX)) return value;
  throw mistyped('signed-integer', context);
}

export function asDouble(value: JsonValue, context: string): number {
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value);
  if (typeof value === 'object' && value !== null && value.kind === 'double') return value.value;
  throw mistyped('number', context);
}

export function asArray(value: JsonValue, context: string): JsonArray {
  if (!isArray(value)) throw mistyped('array', context);
  return value;
}
