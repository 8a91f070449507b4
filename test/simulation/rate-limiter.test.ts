// The rate limiter with real batchers under a hundred seeds; what is checked stands in rate-limiter-simulation.ts. A
// failing seed is in the message: NEREID_SEED=<n> runs that one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RateLimiterResult, RateLimiterSimulation } from './rate-limiter-simulation.ts';

const SEED_COUNT = 100;
const ARRIVALS_PER_SEED = 5_000;
const only = process.env.NEREID_SEED;

test('pools hold, nobody starves, nothing stands still, everything is given back', async () => {
  const seeds = only === undefined ? Array.from({ length: SEED_COUNT }, (_, i) => i + 1) : [Number(only)];
  const results: RateLimiterResult[] = [];
  for (const seed of seeds) {
    try {
      const simulation = new RateLimiterSimulation(seed);
      simulation.run(ARRIVALS_PER_SEED);
      results.push(await simulation.end());
    } catch (thrown) {
      throw new Error(`seed ${seed}: ${thrown instanceof Error ? thrown.message : thrown}`, {
        cause: thrown,
      });
    }
  }
  const sum = (field: keyof RateLimiterResult) => results.reduce((total, result) => total + result[field], 0);
  assert.equal(sum('answered'), seeds.length * ARRIVALS_PER_SEED);
  if (only !== undefined) return;
  // A simulation in which something never happens proves nothing about it.
  assert.ok(sum('refusals') > 50_000 && sum('deaths') > 1_000 && sum('executions') > 100_000);
});
