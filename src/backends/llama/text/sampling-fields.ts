// Readers of single sampling parameters: type, cast and range, with errors that name the parameter and say what is
// right. Values given as text are cast, as Triton's vLLM backend does. Called by sampling-parameters.ts.
import { invalidArgument, type StatusError } from '../../../domain/status.ts';

/** The values by name; null counts as absent. */
export type RawParameters = ReadonlyMap<string, unknown>;

export interface NumberRule {
  readonly min?: number;
  readonly max?: number;
  /** The value must be above `min`, not equal to it. */
  readonly isAboveMin?: boolean;
}

export function refused(name: string, rule: string, value: unknown): StatusError {
  const text = typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? String(value));
  const shown = text.length > 100 ? `${text.slice(0, 100)}…` : text;
  return invalidArgument(`sampling parameter '${name}' must be ${rule}, but got ${shown}`);
}

export function readNumber(
  raw: RawParameters,
  name: string,
  fallback: number,
  rule: NumberRule = {},
): number {
  const value = present(raw, name);
  if (value === undefined) return fallback;
  const number = toNumber(value);
  if (number === undefined || !isInside(number, rule))
    throw refused(name, `a number${rangeText(rule)}`, value);
  return number;
}

export function readInteger<Fallback extends number | null>(
  raw: RawParameters,
  name: string,
  fallback: Fallback,
  rule: NumberRule = {},
): number | Fallback {
  const value = present(raw, name);
  if (value === undefined) return fallback;
  const number = toNumber(value);
  if (number === undefined || !Number.isSafeInteger(number) || !isInside(number, rule)) {
    throw refused(name, `an integer${rangeText(rule)}`, value);
  }
  return number;
}

export function readBoolean(raw: RawParameters, name: string, fallback: boolean): boolean {
  const value = present(raw, name);
  if (value === undefined) return fallback;
  if (typeof value === 'boolean') return value;
  const text = String(value).toLowerCase();
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw refused(name, 'true or false', value);
}

export function readText(raw: RawParameters, name: string): string | null {
  const value = present(raw, name);
  if (value === undefined) return null;
  if (typeof value !== 'string' || value === '') throw refused(name, 'a string that is not empty', value);
  return value;
}

export function readOneOf<Word extends string>(
  raw: RawParameters,
  name: string,
  words: readonly Word[],
): Word | null {
  const value = present(raw, name);
  if (value === undefined) return null;
  const word = words.find((one) => one === value);
  if (word === undefined) throw refused(name, `one of ${words.join(', ')}`, value);
  return word;
}

/** A list or object; request parameters can carry it only as JSON text. */
export function readJson(raw: RawParameters, name: string): unknown {
  const value = present(raw, name);
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    throw refused(name, 'valid JSON', value);
  }
}

export function present(raw: RawParameters, name: string): unknown {
  return raw.get(name) ?? undefined;
}

export function toNumber(value: unknown): number | undefined {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string' || !/^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/.test(value))
    return undefined;
  return Number(value);
}

function isInside(value: number, { min, max, isAboveMin }: NumberRule): boolean {
  if (min !== undefined && (isAboveMin === true ? value <= min : value < min)) return false;
  return max === undefined || value <= max;
}

function rangeText({ min, max, isAboveMin }: NumberRule): string {
  const low = min === undefined ? '' : isAboveMin === true ? ` above ${min}` : ` of at least ${min}`;
  const high = max === undefined ? '' : ` ${low === '' ? '' : 'and '}at most ${max}`;
  return low + high;
}
