// Numbers between bounds, held against arithmetic.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { createMatcher } from './gbnf-matcher.ts';
import { decimalRange, integerRange } from './number-grammar.ts';

test('integers: every value near and inside the bounds', () => {
  const random = createPrng(2);
  for (let round = 0; round < 150; round++) {
    const size = 10 ** random.integer(0, 4);
    const [a, b] = [random.integer(-size, size), random.integer(-size, size)];
    const minimum = random.boolean(0.2) ? null : Math.min(a, b);
    const maximum = random.boolean(0.2) ? null : Math.max(a, b);
    const matches = createMatcher(`root ::= ${integerRange(minimum, maximum)}`);
    const near = [
      a,
      b,
      0,
      random.integer(-size, size),
      random.integer(-size * 10, size * 10),
      10 * a,
      10 * b,
    ];
    for (const value of near.flatMap((one) => [one - 1, one, one + 1])) {
      const isInside = (minimum === null || value >= minimum) && (maximum === null || value <= maximum);
      assert.equal(matches(String(value)), isInside, `${value} in [${minimum}, ${maximum}]`);
    }
    assert.ok(!matches('01') && !matches('') && !matches('-') && !matches('1.0'));
  }
  assert.equal(integerRange(5, 4), undefined);
  const far = createMatcher(`root ::= ${integerRange(-(2 ** 63), 2 ** 63)}`);
  assert.ok(far('9007199254740991') && far('-9007199254740991') && far('0'));
});

test('decimals: every value near and inside the bounds', () => {
  const random = createPrng(4);
  const some = () => Number((random.integer(-3000, 3000) / 10 ** random.integer(0, 4)).toFixed(4));
  for (let round = 0; round < 400; round++) {
    const [a, b] = random.boolean(0.3) ? [random.float() < 0.5 ? 0.25 : -0.25, 0.31] : [some(), some()];
    const minimum = random.boolean(0.2) ? null : Math.min(a, b);
    const maximum = random.boolean(0.2) ? null : Math.max(a, b);
    const isMinimumExclusive = random.boolean();
    const isMaximumExclusive = random.boolean();
    const range = decimalRange({ minimum, maximum, isMinimumExclusive, isMaximumExclusive });
    const matches = range === undefined ? () => false : createMatcher(`root ::= ${range}`);
    const near = [a, b, 0, some(), (a + b) / 2];
    for (const value of near.flatMap((one) =>
      [-1, -0.1, -0.01, -0.0001, 0, 0.0001, 0.01, 0.1, 1].map((d) => one + d),
    )) {
      for (const text of [value.toFixed(4), String(Number(value.toFixed(4)))]) {
        const number = Number(text);
        const isAbove = minimum === null || number > minimum || (number === minimum && !isMinimumExclusive);
        const isBelow = maximum === null || number < maximum || (number === maximum && !isMaximumExclusive);
        // A zero may be written with a sign only where the negative side is open.
        if (Object.is(number, -0)) continue;
        assert.equal(
          matches(text),
          isAbove && isBelow,
          `${text} in ${minimum}..${maximum} ${isMinimumExclusive} ${isMaximumExclusive}`,
        );
      }
    }
  }
  assert.equal(
    decimalRange({ minimum: 1, maximum: 1, isMinimumExclusive: true, isMaximumExclusive: false }),
    undefined,
  );
});

test('decimals keep to their places', () => {
  const range = decimalRange(
    { minimum: 0, maximum: 10.5, isMinimumExclusive: false, isMaximumExclusive: false },
    2,
  );
  const matches = createMatcher(`root ::= ${range}`);
  assert.deepEqual(
    ['0', '0.01', '9.99', '10.5', '10.50', '10.49', '-0.1', '0.001', '10.51', '9.999', '10.500'].map(matches),
    [true, true, true, true, true, true, false, false, false, false, false],
  );
});
