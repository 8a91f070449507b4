// Shares, stickiness, and how little moves when a weight changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../lib/prng.ts';
import { chooseByChance, chooseByKey, seedOf, uniformOf } from './choose-target.ts';

const NAMES = ['stable', 'canary', 'third'];
const SEEDS = NAMES.map(seedOf);
const KEY_COUNT = 100_000;
const KEYS = Array.from({ length: KEY_COUNT }, (_, i) => `user-${i}`);

function sharesOf(choices: readonly number[]): number[] {
  return NAMES.map((_, i) => choices.filter((choice) => choice === i).length / choices.length);
}

function assertShares(choices: readonly number[], weights: readonly number[]): void {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  for (const [i, share] of sharesOf(choices).entries()) {
    assert.ok(
      Math.abs(share - weights[i]! / total) < 0.01,
      `${NAMES[i]} has ${share} for ${weights.join(', ')}`,
    );
  }
}

for (const weights of [
  [90, 10, 0],
  [1, 1, 1],
  [700, 250, 50],
]) {
  test(`chance and keys split 100,000 requests by ${weights.join(':')} within one percent`, () => {
    const prng = createPrng(1);
    assertShares(
      KEYS.map(() => chooseByChance(weights, prng.float())),
      weights,
    );
    assertShares(
      KEYS.map((key) => chooseByKey(weights, SEEDS, key)),
      weights,
    );
  });
}

test('every number from 0 up to 1 chooses a target with a weight', () => {
  for (const random of [0, 0.5, 0.999999, 1 - 2 ** -53]) {
    assert.equal(chooseByChance([0, 3, 0], random), 1);
  }
  assert.equal(chooseByChance([1, 1], 0), 0);
  assert.equal(chooseByChance([1, 1], 0.5), 1);
});

test('without any weight nothing is chosen', () => {
  assert.equal(chooseByChance([0, 0], 0.3), -1);
  assert.equal(chooseByKey([0, 0], SEEDS, 'user'), -1);
  assert.equal(chooseByChance([], 0.3), -1);
});

test('a weight that grows takes keys over and moves no other', () => {
  const before = KEYS.map((key) => chooseByKey([80, 10, 10], SEEDS, key));
  const after = KEYS.map((key) => chooseByKey([80, 40, 10], SEEDS, key));
  let moved = 0;
  for (let i = 0; i < KEY_COUNT; i++) {
    if (before[i] === after[i]) continue;
    moved++;
    assert.equal(after[i], 1);
  }
  // From 10 of 100 to 40 of 130.
  assert.ok(Math.abs(moved / KEY_COUNT - (40 / 130 - 10 / 100)) < 0.01, String(moved));
});

test('a target that drops out loses its own keys alone', () => {
  for (const key of KEYS.slice(0, 10_000)) {
    const before = chooseByKey([60, 30, 10], SEEDS, key);
    const after = chooseByKey([60, 0, 10], SEEDS, key);
    if (before !== 1) assert.equal(after, before);
    else assert.notEqual(after, 1);
  }
});

/** Pinned: a change of these numbers moves users between targets. */
const HASHES = ['0.370693256952', '0.726648776328', '0.858574156882', '0.353049511692'];

test('the hash is the one that earlier versions had', () => {
  const rounded = (text: string, seed: number) => uniformOf(text, seed).toFixed(12);
  assert.deepEqual(
    [rounded('', 0), rounded('user-1', 0), rounded('user-1', seedOf('canary')), rounded('größe 漢', 7)],
    HASHES,
  );
});
