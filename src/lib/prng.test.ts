// Repeatability first, then plain statistics with wide margins.
// The seeds are fixed, so a failure is never chance.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from './prng.ts';

test('the same seed gives the same numbers, another seed others', () => {
  const take = (seed: number) => {
    const random = createPrng(seed);
    return Array.from({ length: 8 }, () => random.uint32());
  };
  assert.deepEqual(take(7), take(7));
  assert.notDeepEqual(take(7), take(8));
  assert.notDeepEqual(take(0), new Array(8).fill(0));
});

test('numbers stay in their range and have the right mean', () => {
  const random = createPrng(42);
  let sum = 0;
  let gaps = 0;
  const faces = new Array<number>(6).fill(0);
  for (let i = 0; i < 20_000; i++) {
    const x = random.float();
    assert.ok(x >= 0 && x < 1);
    sum += x;
    gaps += random.exponential(3);
    const face = random.integer(1, 6);
    faces[face - 1] = faces[face - 1]! + 1;
  }
  assert.ok(Math.abs(sum / 20_000 - 0.5) < 0.01);
  assert.ok(Math.abs(gaps / 20_000 - 3) < 0.1);
  for (const count of faces) assert.ok(Math.abs(count - 20_000 / 6) < 250);
});

test('shuffle keeps the items, pick takes one of them', () => {
  const random = createPrng(3);
  const items = Array.from({ length: 50 }, (_, i) => i);
  const shuffled = random.shuffle([...items]);
  assert.notDeepEqual(shuffled, items);
  assert.deepEqual(
    shuffled.toSorted((a, b) => a - b),
    items,
  );
  assert.ok(items.includes(random.pick(items)));
  assert.throws(() => random.pick([]), RangeError);
});
