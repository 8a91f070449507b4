// A million events through real ensembles of simulated models, under many seeds: every request has exactly one end,
// tensors of different passes never meet, limits hold, nothing is stuck and nothing is kept. NEREID_SEED=<n> runs one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type EnsembleResult, simulateEnsemble } from './ensemble-simulation.ts';

const SEED_COUNT = 420;
const ARRIVALS_PER_SEED = 500;
const EVENTS_MIN = 1_000_000;
const only = process.env.NEREID_SEED;

test('the invariants of ensembles hold over a million events', async () => {
  const seeds = only === undefined ? Array.from({ length: SEED_COUNT }, (_, i) => i + 1) : [Number(only)];
  const results: EnsembleResult[] = [];
  for (const seed of seeds) results.push(await simulateEnsemble(seed, ARRIVALS_PER_SEED));
  for (const { accepted, refused, finished, failed } of results) {
    assert.equal(accepted + refused, ARRIVALS_PER_SEED);
    assert.equal(finished + [...failed.values()].reduce((sum, count) => sum + count, 0), accepted);
  }
  if (only !== undefined) return;
  const total = (of: (result: EnsembleResult) => number) =>
    results.reduce((sum, result) => sum + of(result), 0);
  // A simulation in which something never happens proves nothing about it.
  assert.ok(total(({ events }) => events) >= EVENTS_MIN, `${total(({ events }) => events)} events`);
  assert.ok(total(({ finished }) => finished) > 10_000);
  assert.ok(total(({ refused }) => refused) > 100);
  assert.ok(total(({ pauses }) => pauses) > 1_000);
  assert.ok(total(({ waits }) => waits) > 1_000);
  for (const kind of ['Exceeds', 'deadlock', 'raised', 'failed', 'CANCELLED']) {
    assert.ok(total(({ failed }) => failed.get(kind) ?? 0) > 100, kind);
  }
});

test('the same seed gives the same run', async () => {
  assert.deepEqual(await simulateEnsemble(7, 200), await simulateEnsemble(7, 200));
});
