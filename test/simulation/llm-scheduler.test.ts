// Thousands of requests through the real step scheduler under each seed, against a model of libllama's KV cache. Invariants:
// every request ends exactly once; the cells of a sequence hold exactly the tokens of its request, computed behind the same
// tokens and under the same adapter; the scheduler counts the cells as the cache does, and none leaks; no decode lacks a
// cell; a step keeps its bounds and has one adapter; a decode has a row in each step of its adapter; the most
// senior request is never starved; a request that shared, speculated or was preempted says what it says alone.
// A failing seed is in the message: NEREID_SEED=<n> runs that one alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LlmSimulationResult, simulateLlmScheduler } from './llm-scheduler-simulation.ts';

const SEED_COUNT = 16;
const REQUESTS_PER_SEED = 2_000;
const only = process.env.NEREID_SEED;

test('the invariants of the LLM scheduler hold for thousands of requests', async () => {
  const seeds = only === undefined ? Array.from({ length: SEED_COUNT }, (_, i) => i + 1) : [Number(only)];
  const results: LlmSimulationResult[] = [];
  for (const seed of seeds) results.push(await simulateLlmScheduler(seed, REQUESTS_PER_SEED));
  if (only !== undefined) return;
  // A simulation in which something never happens proves nothing about it.
  const total = (value: (result: LlmSimulationResult) => number) =>
    results.reduce((sum, result) => sum + value(result), 0);
  assert.ok(total(({ finished }) => finished) > SEED_COUNT * REQUESTS_PER_SEED * 0.5);
  const events = {
    cancelled: total(({ cancelled }) => cancelled),
    failed: total(({ failed }) => failed),
    refused: total(({ refused }) => refused),
    resumed: total(({ resumed }) => resumed),
    held: total(({ held }) => held),
    apart: total(({ apart }) => apart),
    reused: total(({ stats }) => stats.promptTokensReused),
    evicted: total(({ stats }) => stats.cellsEvicted),
    shifted: total(({ stats }) => stats.contextShifts),
    accepted: total(({ stats }) => stats.tokensAccepted),
    rejected: total(({ stats }) => stats.tokensProposed - stats.tokensAccepted),
  };
  for (const [what, count] of Object.entries(events)) assert.ok(count > 200, `${what}: ${count}`);
  assert.ok(total(({ stuck }) => stuck) > 10, `stuck: ${total(({ stuck }) => stuck)}`);
});

test('the same seed gives the same run', async () => {
  assert.deepEqual(await simulateLlmScheduler(7, 300), await simulateLlmScheduler(7, 300));
});
