// Strings and numbers of a JSON schema as grammar expressions. Called by json-schema-grammar.ts.
import { either, literal, REPETITIONS_MAX } from './gbnf.ts';
import { type Schema, schemaError } from './json-schema.ts';
import type { SchemaContext } from './json-schema-grammar.ts';
import { decimalRange, integerRange, type NumberBounds } from './number-grammar.ts';
import { addJsonPattern } from './regex-grammar.ts';
import { STRING_FORMATS } from './string-formats.ts';

/** Multiples between two bounds are listed one by one up to this many. */
const LISTED_MAX = 1000;
/** Multiples without bounds are counted by remainder, one rule for each. */
const REMAINDERS_MAX = 200;
const NUMBER_FORMATS = ['int32', 'int64', 'float', 'double'];
const INT32: readonly [number, number] = [-(2 ** 31), 2 ** 31 - 1];

export function addString(schema: Schema, context: SchemaContext): string {
  const { grammar, json } = context;
  const pattern = schema.pattern;
  const format = schema.format;
  const lengths = ['minLength', 'maxLength'].filter((keyword) => schema[keyword] !== undefined);
  if (pattern !== undefined || format !== undefined) {
    const beside = pattern !== undefined && format !== undefined ? 'format' : lengths[0];
    const main = pattern !== undefined ? 'pattern' : 'format';
    if (beside !== undefined) throw schemaError(`has '${beside}' beside '${main}': that is not supported`);
    const expression = pattern ?? STRING_FORMATS[String(format)];
    if (expression === undefined) throw schemaError(`format '${String(format)}' is not supported`);
    if (typeof expression !== 'string') throw schemaError("keyword 'pattern' must be a string");
    return `"\\"" ${addJsonPattern(grammar, expression, json.character)} "\\""`;
  }
  if (lengths.length === 0) return json.string;
  const { min, max } = countsOf(schema, 'minLength', 'maxLength');
  return `"\\"" ${grammar.repeat(json.character, min, max)} "\\""`;
}

/** The two keywords that bound a length. */
export function countsOf(
  schema: Schema,
  minKeyword: string,
  maxKeyword: string,
): { readonly min: number; readonly max: number | null } {
  const read = (keyword: string): number | null => {
    const value = schema[keyword];
    if (value === undefined) return null;
    if (!Number.isInteger(value) || Number(value) < 0) {
      throw schemaError(`keyword '${keyword}' must be an integer that is not negative`);
    }
    if (Number(value) > REPETITIONS_MAX)
      throw schemaError(`keyword '${keyword}' must be at most ${REPETITIONS_MAX}`);
    return Number(value);
  };
  const min = read(minKeyword) ?? 0;
  const max = read(maxKeyword);
  if (max !== null && max < min) throw schemaError(`has '${maxKeyword}' below '${minKeyword}'`);
  return { min, max };
}

export function addNumber(schema: Schema, type: 'number' | 'integer', context: SchemaContext): string {
  const bounds = boundsOf(schema);
  const isBounded = bounds.minimum !== null || bounds.maximum !== null;
  if (schema.multipleOf !== undefined) return multiples(schema.multipleOf, type, bounds, context);
  if (!isBounded) return type === 'integer' ? context.json.integer : context.json.number;
  const range = type === 'integer' ? integersOf(bounds) : decimalRange(bounds);
  if (range === undefined) throw schemaError(`has no ${type} between its 'minimum' and 'maximum'`);
  return range;
}

function integersOf(bounds: NumberBounds): string | undefined {
  const { first, last } = wholeBounds(bounds);
  return integerRange(first, last);
}

/** The outermost integers inside the bounds. */
function wholeBounds(bounds: NumberBounds): { readonly first: number | null; readonly last: number | null } {
  const { minimum, maximum, isMinimumExclusive, isMaximumExclusive } = bounds;
  return {
    first: minimum === null ? null : isMinimumExclusive ? Math.floor(minimum) + 1 : Math.ceil(minimum),
    last: maximum === null ? null : isMaximumExclusive ? Math.ceil(maximum) - 1 : Math.floor(maximum),
  };
}

function boundsOf(schema: Schema): NumberBounds {
  const read = (keyword: string): number | null => {
    const value = schema[keyword];
    if (value === undefined || typeof value === 'boolean') return null;
    if (typeof value !== 'number') throw schemaError(`keyword '${keyword}' must be a number`);
    return value;
  };
  const format = schema.format;
  if (format !== undefined && schema.type !== undefined && !Array.isArray(schema.type)) {
    if (!NUMBER_FORMATS.includes(String(format)))
      throw schemaError(`format '${String(format)}' is not supported`);
  }
  const [least, most] = format === 'int32' ? INT32 : [null, null];
  const lows = [
    { value: read('minimum'), isExclusive: schema.exclusiveMinimum === true },
    { value: read('exclusiveMinimum'), isExclusive: true },
    { value: least, isExclusive: false },
  ];
  const highs = [
    { value: read('maximum'), isExclusive: schema.exclusiveMaximum === true },
    { value: read('exclusiveMaximum'), isExclusive: true },
    { value: most, isExclusive: false },
  ];
  const low = tightest(lows, 1);
  const high = tightest(highs, -1);
  return {
    minimum: low?.value ?? null,
    maximum: high?.value ?? null,
    isMinimumExclusive: low?.isExclusive ?? false,
    isMaximumExclusive: high?.isExclusive ?? false,
  };
}

interface OneBound {
  readonly value: number | null;
  readonly isExclusive: boolean;
}

/** The bound that leaves the least; of two equal ones that which excludes. `sign` is 1 for lower bounds, else -1. */
function tightest(bounds: readonly OneBound[], sign: 1 | -1): OneBound | undefined {
  return bounds
    .filter(({ value }) => value !== null)
    .sort((a, b) => sign * (b.value! - a.value!) || Number(b.isExclusive) - Number(a.isExclusive))[0];
}

function multiples(step: unknown, type: string, bounds: NumberBounds, context: SchemaContext): string {
  if (typeof step !== 'number' || !(step > 0))
    throw schemaError("keyword 'multipleOf' must be a number above 0");
  if (bounds.minimum !== null && bounds.maximum !== null) {
    const listed = listMultiples(step, bounds, type === 'integer');
    if (listed !== undefined) return listed;
  }
  const isBounded = bounds.minimum !== null || bounds.maximum !== null;
  // Powers of ten from one down: numbers with so many places. An integer is a multiple of all of them.
  const places = step === 1 ? 0 : /^0\.(0*1)$/.exec(String(step))?.[1]?.length;
  if (places !== undefined) {
    const isWhole = type === 'integer' || places === 0;
    if (!isBounded)
      return isWhole ? context.json.integer : `${context.json.integer} ("." [0-9]{1,${places}})?`;
    const range = isWhole ? integersOf(bounds) : decimalRange(onGrid(bounds, step), places);
    if (range === undefined) throw schemaError("has no multiple of its 'multipleOf' between its bounds");
    return range;
  }
  if (isBounded) {
    throw schemaError(
      `has 'multipleOf' ${step} with bounds that are open or too far apart: that is not supported`,
    );
  }
  if (!Number.isInteger(step) || step > REMAINDERS_MAX)
    throw schemaError(`keyword 'multipleOf' ${step} is not supported`);
  return byRemainder(step, context);
}

/** The outermost multiples inside the bounds. */
function onGrid(bounds: NumberBounds, step: number): NumberBounds {
  const { minimum, maximum, isMinimumExclusive, isMaximumExclusive } = bounds;
  const inwards = (value: number, isExclusive: boolean, sign: 1 | -1): number => {
    const count = sign === 1 ? Math.ceil(value / step - 1e-9) : Math.floor(value / step + 1e-9);
    const isOnBound = Math.abs(count * step - value) < step * 1e-6;
    return Number(((count + (isOnBound && isExclusive ? sign : 0)) * step).toPrecision(12));
  };
  return {
    minimum: minimum === null ? null : inwards(minimum, isMinimumExclusive, 1),
    maximum: maximum === null ? null : inwards(maximum, isMaximumExclusive, -1),
    isMinimumExclusive: false,
    isMaximumExclusive: false,
  };
}

function listMultiples(step: number, bounds: NumberBounds, isInteger: boolean): string | undefined {
  const [minimum, maximum] = [bounds.minimum!, bounds.maximum!];
  const first = Math.ceil(minimum / step - 1e-9);
  const last = Math.floor(maximum / step + 1e-9);
  if (last - first >= LISTED_MAX) return undefined;
  const values: number[] = [];
  for (let index = first; index <= last; index++) {
    // Twelve digits clean what the multiplication of decimals leaves behind.
    const value = Number((index * step).toPrecision(12));
    const isInside =
      (bounds.isMinimumExclusive ? value > minimum : value >= minimum) &&
      (bounds.isMaximumExclusive ? value < maximum : value <= maximum);
    if (isInside && (!isInteger || Number.isInteger(value))) values.push(value);
  }
  if (values.length === 0) throw schemaError("has no multiple of its 'multipleOf' between its bounds");
  return either(values.map((value) => literal(JSON.stringify(value))));
}

/** Long division as rules: one per remainder, each digit leads to the next. */
function byRemainder(step: number, { grammar }: SchemaContext): string {
  const names = Array.from({ length: step }, (_, remainder) =>
    grammar.reserve(`multiple-${step}-${remainder}`),
  );
  for (const [remainder, name] of names.entries()) {
    const digits = Array.from(
      { length: 10 },
      (_, digit) => `"${digit}" ${names[(remainder * 10 + digit) % step]}`,
    );
    grammar.define(name, `${digits.join(' | ')}${remainder === 0 ? ' | ""' : ''}`);
  }
  const first = Array.from({ length: 9 }, (_, index) => `"${index + 1}" ${names[(index + 1) % step]}`);
  // The length is not bounded here: a bound would multiply the rules.
  return `"-"? ("0" | ${first.join(' | ')})`;
}
