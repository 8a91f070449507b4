// Accuracy against sorted values, and the sliding of the window.
// Distributions are seeded; one has two peaks far apart, which rank sketches find hard.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng, type Prng } from './prng.ts';
import { QUANTILE_WINDOW_MS, WindowedQuantiles } from './quantiles.ts';

const FRACTIONS = [0.5, 0.9, 0.95, 0.99, 0.999];

const DISTRIBUTIONS: Readonly<Record<string, (random: Prng) => number>> = {
  uniform: (random) => random.integer(1, 1_000_000),
  exponential: (random) => random.exponential(2_000) + 1,
  twoPeaks: (random) => (random.boolean(0.97) ? 150 + random.float() * 20 : 2_000_000 + random.float()),
};

for (const [name, sample] of Object.entries(DISTRIBUTIONS)) {
  test(`quantiles of a ${name} stream are within one percent of the true value`, () => {
    const random = createPrng(11);
    const quantiles = new WindowedQuantiles();
    const values: number[] = [];
    for (let i = 0; i < 20_000; i++) {
      const value = sample(random);
      values.push(value);
      quantiles.add(value, i);
    }
    values.sort((a, b) => a - b);
    const read = quantiles.read(FRACTIONS, 20_000);
    FRACTIONS.forEach((fraction, i) => {
      const exact = values[Math.ceil(fraction * values.length) - 1]!;
      assert.ok(Math.abs(read[i]! - exact) <= exact * 0.01, `${fraction}: ${read[i]} for ${exact}`);
    });
  });
}

test('an empty window has no quantiles, and old values leave it', () => {
  const quantiles = new WindowedQuantiles();
  assert.deepEqual(quantiles.read([0.5], 0), [Number.NaN]);
  quantiles.add(100, 0);
  assert.ok(Math.abs(quantiles.read([0.5], QUANTILE_WINDOW_MS / 2)[0]! - 100) <= 1);
  assert.deepEqual(quantiles.read([0.5], QUANTILE_WINDOW_MS), [Number.NaN]);
  quantiles.add(7, QUANTILE_WINDOW_MS);
  assert.ok(Math.abs(quantiles.read([0.999], QUANTILE_WINDOW_MS)[0]! - 7) <= 0.1);
});

test('zero, negative, tiny and huge values are counted', () => {
  const quantiles = new WindowedQuantiles();
  for (const value of [-5, 0, 0.2, 1e300]) quantiles.add(value, 1);
  const [low, middle, high] = quantiles.read([0, 0.75, 1], 1);
  assert.equal(low, 0);
  assert.equal(middle, 1);
  assert.ok(high! > 1e10);
});
