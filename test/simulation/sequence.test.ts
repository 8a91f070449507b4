// A million events in the real sequence batcher under a hundred seeds; the invariants are listed in
// sequence-invariants.ts. A failing seed is in the message: NEREID_SEED=<n> runs that one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SequenceResult, simulateSequences } from './sequence-simulation.ts';

const SEED_COUNT = 100;
const ARRIVALS_PER_SEED = 8_000;
const only = process.env.NEREID_SEED;

test('the invariants of the sequence batcher hold over a million events', async () => {
  const seeds = only === undefined ? Array.from({ length: SEED_COUNT }, (_, i) => i + 1) : [Number(only)];
  const results: SequenceResult[] = [];
  for (const seed of seeds) results.push(await simulateSequences(seed, ARRIVALS_PER_SEED));
  for (const result of results) {
    const failed = [...result.failed.values()].reduce((sum, count) => sum + count, 0);
    assert.equal(result.succeeded + result.finished + failed, result.accepted);
  }
  if (only !== undefined) return;
  // A simulation in which something never happens proves nothing about it.
  const total = (of: (result: SequenceResult) => number) =>
    results.reduce((sum, result) => sum + of(result), 0);
  assert.ok(total((result) => result.events) > 1_000_000);
  for (const reason of ['REJECTED', 'CANCELED', 'BACKEND']) {
    assert.ok(total((result) => result.failed.get(reason) ?? 0) > 1_000, reason);
  }
  assert.ok(total((result) => result.seatedFromBacklog) > 10_000);
  assert.ok(total((result) => result.filledPlaces) > 10_000);
  assert.ok(total((result) => result.idleEnds) > 1_000);
  assert.ok(total((result) => result.rescheduled) > 10_000);
  assert.ok(total((result) => result.finished) > 10_000);
  assert.ok(total((result) => result.refused.get('[request ') ?? 0) > 1_000);
  assert.ok(total((result) => result.refused.get('inference') ?? 0) > 1_000);
});

test('the same seed gives the same run', async () => {
  assert.deepEqual(await simulateSequences(7, 2_000), await simulateSequences(7, 2_000));
});
