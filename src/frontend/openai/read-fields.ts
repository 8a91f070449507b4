// Reads the fields of a request body, each by its name and with its bounds. A field that is missing or null is undefined;
// a wrong one throws an ApiError that names it. Pure; the …-request.ts files are made of it.

import { type ApiError, invalidField } from './api-error.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export interface NumberBounds {
  readonly min?: number;
  readonly max?: number;
  readonly isInteger?: boolean;
}

export function readNumber(body: JsonObject, name: string, bounds: NumberBounds = {}): number | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined) return undefined;
  const { min = -Infinity, max = Infinity, isInteger = false } = bounds;
  const isNumber = typeof value === 'number' && (!isInteger || Number.isInteger(value));
  if (!isNumber || value < min || value > max) throw wrong(name, boundsText(bounds), value);
  return value;
}

function boundsText({ min, max, isInteger }: NumberBounds): string {
  const what = isInteger ? 'an integer' : 'a number';
  if (min !== undefined && max !== undefined) return `${what} between ${min} and ${max}`;
  if (min !== undefined) return `${what} of at least ${min}`;
  return max === undefined ? what : `${what} of at most ${max}`;
}

export function readBoolean(body: JsonObject, name: string): boolean | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || typeof value === 'boolean') return value;
  throw wrong(name, 'true or false', value);
}

export function readString(body: JsonObject, name: string): string | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw wrong(name, 'a string', value);
}

export function requireString(body: JsonObject, name: string): string {
  const value = readString(body, name);
  if (value === undefined) throw missing(name);
  return value;
}

export function readObject(body: JsonObject, name: string): JsonObject | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw wrong(name, 'an object', value);
}

export function readChoice<T extends string>(
  body: JsonObject,
  name: string,
  choices: readonly T[],
): T | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined) return undefined;
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw wrong(name, `one of ${choices.join(', ')}`, value);
  return found;
}

/** A list whose elements `check` accepts. */
export function readList<T>(
  body: JsonObject,
  name: string,
  element: { readonly what: string; check(value: unknown): value is T },
): readonly T[] | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw wrong(name, `a list of ${element.what}`, value);
  const at = value.findIndex((entry) => !element.check(entry));
  if (at >= 0) throw wrong(`${name}[${at}]`, `one of a list of ${element.what}`, value[at]);
  return value as readonly T[];
}

export const STRINGS = { what: 'strings', check: (value: unknown) => typeof value === 'string' } as const;
export const TOKENS = {
  what: 'token ids',
  check: (value: unknown): value is number => Number.isInteger(value) && isInt32(value as number),
} as const;
export const OBJECTS = { what: 'objects', check: isObject } as const;

function isInt32(value: number): boolean {
  return value >= 0 && value < 2 ** 31;
}

/** A string stands for a list of one. */
export function readStrings(body: JsonObject, name: string): readonly string[] | undefined {
  const value = body[name];
  if (typeof value === 'string') return [value];
  return readList<string>(body, name, {
    ...STRINGS,
    check: (entry): entry is string => STRINGS.check(entry),
  });
}

const SHOWN_CHARS_MAX = 60;

export function wrong(name: string, expected: string, got: unknown): ApiError {
  const text = JSON.stringify(got) ?? String(got);
  const shown = text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
  return invalidField(name, `Invalid '${name}': expected ${expected}, but got ${shown}.`);
}

export function missing(name: string): ApiError {
  return invalidField(name, `Missing required parameter: '${name}'.`);
}
