// What the metrics of an LLM tell the server: two names for each, gathered, and never a gauge that has not changed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServerCalls, ServerMetricCall } from '../../backend/server-calls.ts';
import { EngineMetrics } from './engine-metrics.ts';
import type { SchedulerStats } from './scheduler/step-plan.ts';

const STATS: SchedulerStats = {
  ...{ running: 0, waiting: 0, held: 0, cellsUsed: 0, cellsCached: 0, sequencesUsed: 0, sequencesKept: 0 },
  ...{
    preemptions: 0,
    contextShifts: 0,
    promptTokensReused: 0,
    promptTokensComputed: 0,
    tokensRecomputed: 0,
    cellsEvicted: 0,
  },
  ...{ tokensProposed: 0, tokensAccepted: 0 },
};

function setUp() {
  const calls: ServerMetricCall[] = [];
  const noteMetrics = (more: readonly ServerMetricCall[]) => void calls.push(...more);
  const metrics = new EngineMetrics({ noteMetrics } as Partial<ServerCalls> as ServerCalls, {
    ...{ name: 'smol', version: 3, contextLength: 100 },
  });
  /** What has been told since the last call; closing sends what is gathered. */
  const take = () => {
    metrics.close();
    return calls.splice(0);
  };
  const created = calls.splice(0);
  return { metrics, take, created };
}

const valuesOf = (calls: readonly ServerMetricCall[], name: string) =>
  calls.filter(({ family }) => family.name === name).map(({ value }) => value);

describe('metrics of an LLM', () => {
  test('all are there from the start, under both names, with the labels of the model', () => {
    const { created } = setUp();
    const names = created.map(({ family }) => family.name);
    assert.equal(new Set(names).size, names.length);
    for (const name of [
      'nv_llm_generation_tokens_total',
      'vllm:generation_tokens_total',
      'nv_llm_kv_cells_used',
    ]) {
      assert.ok(names.includes(name), name);
    }
    assert.ok(created.every(({ action, value }) => action === 'create' && value === 0));
    assert.deepEqual(created[0]!.labels, { model: 'smol', version: '3', model_name: 'smol' });
    const lengths = created.find(({ family }) => family.name === 'vllm:request_prompt_tokens')!;
    assert.deepEqual(lengths.buckets, [1, 2, 5, 10, 20, 50, 100]);
  });

  test('counters are gathered into one call for each name', () => {
    const { metrics, take } = setUp();
    metrics.count('generatedTokens', 3);
    metrics.count('generatedTokens', 4);
    metrics.count('preemptions', 0);
    const calls = take();
    assert.deepEqual(valuesOf(calls, 'nv_llm_generation_tokens_total'), [7]);
    assert.deepEqual(valuesOf(calls, 'vllm:generation_tokens_total'), [7]);
    assert.deepEqual(valuesOf(calls, 'nv_llm_preemptions_total'), []);
    assert.deepEqual(valuesOf(take(), 'nv_llm_generation_tokens_total'), []);
  });

  test('observations of one bucket come as their mean and their number', () => {
    const { metrics, take } = setUp();
    metrics.observe('request', 1.5);
    metrics.observe('request', 2.5);
    metrics.observe('request', 100, 2);
    const told = take().filter(({ family }) => family.name === 'nv_llm_request_seconds');
    assert.deepEqual(
      told.map(({ action, value, count }) => [action, value, count]),
      [
        ['observe', 2, 2],
        ['observe', 100, 2],
      ],
    );
  });

  test('the stats of the scheduler are differences and gauges', () => {
    const { metrics, take } = setUp();
    const before = { ...STATS, tokensProposed: 10, tokensAccepted: 8 };
    const stats = {
      ...STATS,
      running: 2,
      cellsUsed: 60,
      cellsCached: 20,
      tokensProposed: 20,
      tokensAccepted: 15,
    };
    metrics.takeStats(stats, before, 100);
    const calls = take();
    assert.deepEqual(valuesOf(calls, 'nv_llm_draft_tokens_total'), [10]);
    assert.deepEqual(valuesOf(calls, 'nv_llm_draft_accepted_tokens_total'), [7]);
    assert.deepEqual(valuesOf(calls, 'nv_llm_requests_running'), [2]);
    assert.deepEqual(valuesOf(calls, 'vllm:kv_cache_usage_perc'), [0.4]);
    assert.deepEqual(valuesOf(calls, 'nv_llm_draft_acceptance_ratio'), [0.75]);
    metrics.takeStats({ ...stats, running: 1 }, stats, 100);
    const later = take();
    assert.deepEqual(valuesOf(later, 'nv_llm_requests_running'), [1]);
    assert.deepEqual(valuesOf(later, 'nv_llm_kv_cells_used'), [], 'it has not changed');
  });

  test('finished requests are counted by reason, each made before its first', () => {
    const { metrics, take } = setUp();
    metrics.countFinished('stop');
    metrics.countFinished('stop');
    metrics.countFinished('length');
    const told = take().filter(({ family }) => family.name === 'vllm:request_success_total');
    assert.deepEqual(
      told.map(({ action, value, labels }) => [action, value, labels.finished_reason]),
      [
        ['create', 0, 'stop'],
        ['increment', 2, 'stop'],
        ['create', 0, 'length'],
        ['increment', 1, 'length'],
      ],
    );
  });

  test('without a server nothing is told, and nothing breaks', () => {
    const metrics = new EngineMetrics(undefined, { name: 'smol', version: 1, contextLength: 10 });
    metrics.count('drafted', 1);
    metrics.close();
  });
});
