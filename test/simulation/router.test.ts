// A million events through the real router under twenty seeds. Invariants:
// an accepted request goes to exactly one target and is answered exactly once, a refused one never; a sequence stays on
// its target through reloads and rollbacks; nothing but a header or a sequence leads to a target without weight; copies
// are bounded; after an unload nothing is open. A failing seed is in the message: NEREID_SEED=<n> runs that one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RouterSimulationResult, simulateRouter } from './router-simulation.ts';

const SEED_COUNT = 20;
const EVENTS_PER_SEED = 50_000;
const only = process.env.NEREID_SEED;

test('the invariants of the router hold over a million events', async () => {
  const seeds = only === undefined ? Array.from({ length: SEED_COUNT }, (_, i) => i + 1) : [Number(only)];
  const results: RouterSimulationResult[] = [];
  for (const seed of seeds) results.push(await simulateRouter(seed, EVENTS_PER_SEED));
  if (only !== undefined) return;
  // A simulation in which something never happens proves nothing about it.
  const total = (what: keyof RouterSimulationResult) =>
    results.reduce((sum, result) => sum + result[what], 0);
  assert.ok(total('accepted') > 500_000, String(total('accepted')));
  for (const what of ['refused', 'failed', 'cancelled', 'forced', 'faithful', 'copies', 'reloads'] as const) {
    assert.ok(total(what) > 1_000, `${what}: ${total(what)}`);
  }
  assert.ok(total('rollbacks') > 100, String(total('rollbacks')));
});

test('the same seed gives the same run', async () => {
  assert.deepEqual(await simulateRouter(7, 2_000), await simulateRouter(7, 2_000));
});
