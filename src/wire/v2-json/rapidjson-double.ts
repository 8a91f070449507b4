// A decimal number → a double, with the rounding of rapidjson's normal precision, which is what Triton uses: the
// digits are gathered in a 64-bit integer as far as they fit, then in a double, then scaled by one power of ten.
// The last bit may differ from the nearest double; a client that compares with Triton must not see that.

const UINT64_MAX = 2n ** 64n - 1n;
const INT64_MIN_MAGNITUDE = 2n ** 63n;
/** Fraction digits are gathered exactly up to here. */
const EXACT_MAX = 2 ** 53 - 1;
const SIGNIFICANT_DIGITS_MAX = 17;
const POWER_MAX = 308;
const POWERS_OF_TEN = Array.from({ length: POWER_MAX + 1 }, (_, i) => Number(`1e${i}`));

/** `text[start, end)` is a number that json-scan.ts has accepted, not a bare NaN or Infinity. */
export function rapidjsonDouble(text: Buffer, start: number, end: number): number {
  const isNegative = text[start] === 0x2d;
  const token = text.toString('latin1', isNegative ? start + 1 : start, end);
  const match = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token);
  if (match === null) return Number(token);
  const fraction = match[2];
  const whole = gatherWhole(match[1]!, isNegative);
  let { value } = whole;
  let power = 0;
  if (fraction !== undefined) {
    const gathered = gatherFraction(whole, fraction);
    value = gathered.value;
    power = gathered.power;
  }
  if (match[3] !== undefined) power += Math.max(-10_000, Math.min(10_000, Number(match[3])));
  const isInteger = fraction === undefined && match[3] === undefined && !whole.isInexact;
  const magnitude = scale(value, power);
  if (isInteger && magnitude === 0) return 0;
  return isNegative ? -magnitude : magnitude;
}

interface Whole {
  readonly value: number;
  readonly digits: number;
  /** More than 64 bits: the digits were gathered in a double. */
  readonly isInexact: boolean;
}

function gatherWhole(digits: string, isNegative: boolean): Whole {
  const limit = isNegative ? INT64_MIN_MAGNITUDE : UINT64_MAX;
  const count = digits.length - 1;
  if (digits.length <= 15) return { value: Number(digits), digits: count, isInexact: false };
  let exact = 0n;
  for (let i = 0; i < digits.length; i++) {
    const next = exact * 10n + BigInt(digits[i]!);
    if (next > limit) {
      let value = Number(exact);
      for (let k = i; k < digits.length; k++) value = value * 10 + Number(digits[k]);
      return { value, digits: i - 1, isInexact: true };
    }
    exact = next;
  }
  return { value: Number(exact), digits: count, isInexact: false };
}

function gatherFraction(whole: Whole, fraction: string): { value: number; power: number } {
  let { value, digits } = whole;
  let power = 0;
  let i = 0;
  if (!whole.isInexact) {
    for (; i < fraction.length && value <= EXACT_MAX; i++) {
      const next = exactNext(value, fraction[i]!);
      value = next;
      power--;
      if (value !== 0) digits++;
    }
  }
  for (; i < fraction.length && digits < SIGNIFICANT_DIGITS_MAX; i++) {
    value = value * 10 + Number(fraction[i]);
    power--;
    if (value > 0) digits++;
  }
  return { value, power };
}

/** value × 10 + digit as rapidjson's 64-bit integer holds it, rounded once when it becomes a double. */
function exactNext(value: number, digit: string): number {
  const next = value * 10 + Number(digit);
  return next <= EXACT_MAX ? next : Number(BigInt(value) * 10n + BigInt(digit));
}

function scale(value: number, power: number): number {
  if (power < -POWER_MAX) return scaleOnce(scaleOnce(value, -POWER_MAX), power + POWER_MAX);
  return scaleOnce(value, power);
}

function scaleOnce(value: number, power: number): number {
  if (power < -POWER_MAX) return 0;
  return power >= 0
    ? value * (POWERS_OF_TEN[power] ?? Number.POSITIVE_INFINITY)
    : value / POWERS_OF_TEN[-power]!;
}
