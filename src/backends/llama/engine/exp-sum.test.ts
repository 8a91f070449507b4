// The sum of the tables against Math.exp.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { sumExp } from './exp-sum.ts';

test('each power is right to 2e-7, down to where it is nothing', () => {
  const prng = createPrng(5);
  for (let i = 0; i < 20_000; i++) {
    const max = prng.float() * 60 - 30;
    const scale = 0.5 + prng.float() * 2;
    const logit = Math.fround(max - prng.float() * (20 / scale));
    const expected = Math.exp((logit - max) * scale);
    const found = sumExp(Float32Array.of(logit), max, scale);
    assert.ok(Math.abs(found / expected - 1) < 2e-7, `${logit - max} * ${scale}: ${found}, not ${expected}`);
  }
});

test('what is masked, far below or no number adds nothing', () => {
  const logits = Float32Array.of(4, Number.NEGATIVE_INFINITY, -1000, Number.NaN, 4);
  assert.equal(sumExp(logits, 4, 1), 2);
  assert.equal(sumExp(logits, 4, 1e9), 2);
});
