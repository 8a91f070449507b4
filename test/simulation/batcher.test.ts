// A million arrivals through the real batcher under fifty seeds; the invariants are listed in
// batcher-invariants.ts. A failing seed is in the message: NEREID_SEED=<n> runs that one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SimulationResult, simulateBatcher } from './batcher-simulation.ts';

const SEED_COUNT = 50;
const ARRIVALS_PER_SEED = 20_000;
const only = process.env.NEREID_SEED;

test('the invariants of the batcher hold over a million arrivals', async () => {
  const seeds = only === undefined ? Array.from({ length: SEED_COUNT }, (_, i) => i + 1) : [Number(only)];
  const results: SimulationResult[] = [];
  for (const seed of seeds) results.push(await simulateBatcher(seed, ARRIVALS_PER_SEED));
  for (const result of results) {
    const failed = [...result.failed.values()].reduce((sum, count) => sum + count, 0);
    assert.equal(result.accepted + result.refused, ARRIVALS_PER_SEED);
    assert.equal(result.succeeded + result.finished + failed, result.accepted);
  }
  if (only !== undefined) return;
  // A simulation in which something never happens proves nothing about it.
  const total = (reason: string) =>
    results.reduce((sum, result) => sum + (result.failed.get(reason) ?? 0), 0);
  for (const reason of ['REJECTED', 'CANCELED', 'BACKEND']) assert.ok(total(reason) > 1_000, reason);
  assert.ok(results.some((result) => result.refused > 0));
  assert.ok(results.some((result) => result.responses > 10_000 && result.finished > 5_000));
  assert.ok(results.some((result) => result.batches > 0 && result.succeeded / result.batches > 2));
});

test('the same seed gives the same run', async () => {
  assert.deepEqual(await simulateBatcher(7, 2_000), await simulateBatcher(7, 2_000));
});
