// Grammars of numbers between two bounds, written digit by digit. Called by the JSON schema grammar. Every function
// returns an expression, or undefined where no number fits.
import { either, joined, literal } from './gbnf.ts';
import { DIGITS_MAX } from './json-grammar.ts';

export interface NumberBounds {
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly isMinimumExclusive: boolean;
  readonly isMaximumExclusive: boolean;
}

/** A bound that is not negative, as digits; `fraction` has no zeros at its end. */
interface Bound {
  readonly whole: string;
  readonly fraction: string;
  readonly isExclusive: boolean;
}

/** Up to so many digits. */
const anyDigits = (count: number) => (count <= 0 ? '' : `[0-9]{0,${count}}`);
const zeros = (count: number) => (count <= 0 ? '' : `[0]{0,${count}}`);
/** Digits of a fraction that is not zero. */
const notZero = (places: number) => joined(zeros(places - 1), '[1-9]', anyDigits(places - 1));
const anyFraction = (places: number) => `("." ${joined('[0-9]', anyDigits(places - 1))})?`;
/** Numbers are written with at most DIGITS_MAX digits before the point, so bounds from here on bind nothing. */
const BOUND_MAX = 10 ** DIGITS_MAX;

/** Integers from `minimum` to `maximum`, both included; null is without bound. */
export function integerRange(minimum: number | null, maximum: number | null): string | undefined {
  const low = minimum === null || minimum <= -BOUND_MAX ? null : Math.ceil(minimum);
  const high = maximum === null || maximum >= BOUND_MAX ? null : Math.floor(maximum);
  const alternatives: string[] = [];
  if (low === null || low < 0) {
    const from = high !== null && high < 0 ? -high : 1;
    const negative = wholeRange(String(from), low === null ? null : String(-low));
    if (negative !== undefined) alternatives.push(`"-" ${negative}`);
  }
  if (high === null || high >= 0) {
    const positive = wholeRange(String(Math.max(low ?? 0, 0)), high === null ? null : String(high));
    if (positive !== undefined) alternatives.push(positive);
  }
  return anyOf(alternatives);
}

/** Decimal numbers inside the bounds, without exponent. Bounds that are exclusive or finer may ask for more places. */
export function decimalRange(bounds: NumberBounds, places = DIGITS_MAX): string | undefined {
  const { isMinimumExclusive, isMaximumExclusive } = bounds;
  const minimum = bounds.minimum !== null && bounds.minimum <= -BOUND_MAX ? null : bounds.minimum;
  const maximum = bounds.maximum !== null && bounds.maximum >= BOUND_MAX ? null : bounds.maximum;
  const zero: Bound = { whole: '0', fraction: '', isExclusive: false };
  const alternatives: string[] = [];
  if (minimum === null || minimum < 0) {
    const low = maximum !== null && maximum <= 0 ? boundOf(-maximum, isMaximumExclusive) : zero;
    const negative = unsignedRange(
      low,
      minimum === null ? null : boundOf(-minimum, isMinimumExclusive),
      places,
    );
    if (negative !== undefined) alternatives.push(`"-" ${negative}`);
  }
  if (maximum === null || maximum >= 0) {
    const low = minimum !== null && minimum >= 0 ? boundOf(minimum, isMinimumExclusive) : zero;
    const positive = unsignedRange(
      low,
      maximum === null ? null : boundOf(maximum, isMaximumExclusive),
      places,
    );
    if (positive !== undefined) alternatives.push(positive);
  }
  return anyOf(alternatives);
}

function boundOf(value: number, isExclusive: boolean): Bound {
  // Twenty places say exactly what a double of this size is, near enough; toString may write an exponent.
  const text = /e/.test(String(value)) ? value.toFixed(20) : String(value);
  const [whole = '0', fraction = ''] = text.split('.');
  return { whole, fraction: fraction.replace(/0+$/, ''), isExclusive };
}

function unsignedRange(low: Bound, high: Bound | null, places: number): string | undefined {
  if (high !== null && low.whole === high.whole) {
    const fraction = fractionBetween(low, high, places);
    return fraction === undefined ? undefined : joined(literal(low.whole), fraction);
  }
  if (high !== null && Number(high.whole) < Number(low.whole)) return undefined;
  const alternatives = [joined(literal(low.whole), fractionFrom(low, places))];
  const last = high === null ? null : String(Number(high.whole) - 1);
  const between = wholeRange(String(Number(low.whole) + 1), last);
  if (between !== undefined) alternatives.push(`${between} ${anyFraction(places)}`);
  const end = high === null ? undefined : fractionTo(high, places);
  if (high !== null && end !== undefined) alternatives.push(joined(literal(high.whole), end));
  return anyOf(alternatives);
}

function fractionFrom({ fraction, isExclusive }: Bound, places: number): string {
  if (fraction === '') return isExclusive ? `"." ${notZero(places)}` : anyFraction(places);
  return `"." ${atLeast(fraction, isExclusive, places)}`;
}

function fractionTo({ fraction, isExclusive }: Bound, places: number): string | undefined {
  if (fraction !== '') return `("." ${atMost(fraction, isExclusive, places)})?`;
  return isExclusive ? undefined : `("." ${joined('"0"', zeros(places - 1))})?`;
}

function fractionBetween(low: Bound, high: Bound, places: number): string | undefined {
  const digits = between(low, high, places);
  if (digits === undefined) return undefined;
  const isPointOptional =
    low.fraction === '' && !low.isExclusive && (high.fraction !== '' || !high.isExclusive);
  return isPointOptional ? `("." ${digits})?` : `"." ${digits}`;
}

/** Digits of a fraction that is not below `digits`, which are not empty. */
function atLeast(digits: string, isExclusive: boolean, places: number): string {
  const head = Number(digits[0]);
  const alternatives = [joined(`"${head}"`, restAtLeast(digits.slice(1), isExclusive, places - 1))];
  if (head < 9) alternatives.push(joined(digitsFrom(head + 1, 9), anyDigits(places - 1)));
  return either(alternatives);
}

function restAtLeast(digits: string, isExclusive: boolean, places: number): string {
  if (digits !== '') return atLeast(digits, isExclusive, places);
  return isExclusive ? notZero(places) : anyDigits(places);
}

/** Digits, at least one, of a fraction that is not above `digits`. Their last digit is not zero. */
function atMost(digits: string, isExclusive: boolean, places: number): string {
  const head = Number(digits[0]);
  const alternatives: string[] = [];
  if (head > 0) alternatives.push(joined(digitsFrom(0, head - 1), anyDigits(places - 1)));
  return either([...alternatives, ...equalThenAtMost(digits, isExclusive, places)]);
}

/** As atMost, and more than zero. */
function positiveAtMost(digits: string, isExclusive: boolean, places: number): string {
  const head = Number(digits[0]);
  if (head === 0) return `"0" ${positiveAtMost(digits.slice(1), isExclusive, places - 1)}`;
  const alternatives = [`"0" ${notZero(places - 1)}`];
  if (head > 1) alternatives.push(joined(digitsFrom(1, head - 1), anyDigits(places - 1)));
  return either([...alternatives, ...equalThenAtMost(digits, isExclusive, places)]);
}

/** The first digit as in `digits`, then nothing or what keeps the whole at most `digits`. */
function equalThenAtMost(digits: string, isExclusive: boolean, places: number): string[] {
  const rest = digits.slice(1);
  if (rest !== '') return [`"${digits[0]}" (${atMost(rest, isExclusive, places - 1)})?`];
  return isExclusive ? [] : [joined(`"${digits[0]}"`, zeros(places - 1))];
}

/** Digits, at least one, of a fraction between two others. */
function between(low: Bound, high: Bound, places: number): string | undefined {
  if (low.fraction === '' && high.fraction === '') {
    return low.isExclusive || high.isExclusive ? undefined : joined('"0"', zeros(places - 1));
  }
  if (high.fraction === '') return undefined;
  if (low.fraction === '') {
    const write = low.isExclusive ? positiveAtMost : atMost;
    return write(high.fraction, high.isExclusive, places);
  }
  const [lowHead, highHead] = [Number(low.fraction[0]), Number(high.fraction[0])];
  const lowRest = { ...low, fraction: low.fraction.slice(1) };
  if (lowHead > highHead) return undefined;
  if (lowHead === highHead) {
    const rest = between(lowRest, { ...high, fraction: high.fraction.slice(1) }, places - 1);
    if (rest === undefined) return undefined;
    const isEndAllowed = lowRest.fraction === '' && !low.isExclusive;
    return isEndAllowed ? `"${lowHead}" (${rest})?` : `"${lowHead}" ${rest}`;
  }
  const alternatives = [joined(`"${lowHead}"`, restAtLeast(lowRest.fraction, low.isExclusive, places - 1))];
  if (highHead - lowHead > 1) {
    alternatives.push(joined(digitsFrom(lowHead + 1, highHead - 1), anyDigits(places - 1)));
  }
  return either([...alternatives, ...equalThenAtMost(high.fraction, high.isExclusive, places)]);
}

/** Whole numbers without sign; the bounds are digits without leading zeros. */
function wholeRange(low: string, high: string | null): string | undefined {
  const alternatives: string[] = [];
  const lengthMax = high === null ? low.length : high.length;
  for (let length = low.length; length <= lengthMax; length++) {
    const first = length === low.length ? low : `1${'0'.repeat(length - 1)}`;
    const last = high !== null && length === high.length ? high : '9'.repeat(length);
    if (first <= last) alternatives.push(sameLength(first, last));
  }
  if (high === null && low.length < DIGITS_MAX) {
    alternatives.push(`[1-9] [0-9]{${low.length},${DIGITS_MAX - 1}}`);
  }
  return anyOf(alternatives);
}

/** Numbers between two of equal length. */
function sameLength(low: string, high: string): string {
  if (low === high) return literal(low);
  const [lowHead, highHead] = [Number(low[0]), Number(high[0])];
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  if (lowHead === highHead) return `"${lowHead}" ${sameLength(lowRest, highRest)}`;
  const count = lowRest.length;
  const isLowWhole = /^0*$/.test(lowRest);
  const isHighWhole = /^9*$/.test(highRest);
  const alternatives: string[] = [];
  if (!isLowWhole) alternatives.push(`"${lowHead}" ${sameLength(lowRest, '9'.repeat(count))}`);
  const from = isLowWhole ? lowHead : lowHead + 1;
  const to = isHighWhole ? highHead : highHead - 1;
  if (from <= to) alternatives.push(joined(digitsFrom(from, to), count === 0 ? '' : `[0-9]{${count}}`));
  if (!isHighWhole) alternatives.push(`"${highHead}" ${sameLength('0'.repeat(count), highRest)}`);
  return either(alternatives);
}

function digitsFrom(low: number, high: number): string {
  return low === high ? `[${low}]` : `[${low}-${high}]`;
}

function anyOf(alternatives: readonly string[]): string | undefined {
  return alternatives.length === 0 ? undefined : either(alternatives);
}
