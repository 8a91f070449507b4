// What one model counts, in its statistics and in its series at the same time.
// Numbers are small enough to be added by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetricFamily } from '../../domain/metric-family.ts';
import { DEFAULT_METRICS_CONFIG, type MetricsConfig } from '../../domain/metrics-config.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { MetricsRegistry } from './metrics-registry.ts';
import { ModelStats } from './model-stats.ts';

function makeStats(config: Partial<MetricsConfig> = {}, isCached = false) {
  const registry = new MetricsRegistry(new SimulatedClock());
  const stats = new ModelStats({
    registry,
    name: 'simple',
    version: 1,
    metricTags: { team: 'sea', 'odd-tag': 'x' },
    config: { ...DEFAULT_METRICS_CONFIG, ...config },
    isCached,
  });
  return { registry, stats };
}

function valueOfFamily(families: readonly MetricFamily[], name: string): number | undefined {
  const sample = families.find((family) => family.name === name)?.samples[0];
  return sample !== undefined && 'value' in sample ? sample.value : undefined;
}

test('executions, successes and failures are counted as Triton counts them', () => {
  const { stats, registry } = makeStats();
  // one batch of two requests (1 and 2 inferences), one batch of a single request
  stats.recordExecution(3, 100, 2_000, 300, 5_000.7);
  stats.recordSuccess(1, 4_999, 1_500, 100, 2_000, 300);
  stats.recordSuccess(2, 6_000, 2_500, 100, 2_000, 300);
  stats.recordExecution(1, 10, 20, 30, 6_000);
  stats.recordSuccess(1, 999, 1, 10, 20, 30);
  stats.recordFailure('BACKEND', 77);

  const snapshot = stats.snapshot();
  assert.equal(snapshot.lastInferenceMs, 6_000);
  assert.equal(snapshot.inferenceCount, 4);
  assert.equal(snapshot.executionCount, 2);
  assert.deepEqual(snapshot.success, { count: 3, ns: 11_998 });
  assert.deepEqual(snapshot.fail, { count: 1, ns: 77 });
  assert.deepEqual(snapshot.queue, { count: 3, ns: 4_001 });
  assert.deepEqual(snapshot.computeInfer, { count: 3, ns: 4_020 });
  assert.deepEqual(snapshot.cacheHit, { count: 0, ns: 0 });
  assert.deepEqual(snapshot.responseStats, {});
  assert.deepEqual(
    snapshot.batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer]),
    [
      [1, { count: 1, ns: 20 }],
      [3, { count: 1, ns: 2_000 }],
    ],
  );

  const families = registry.collect();
  assert.equal(valueOfFamily(families, 'nv_inference_request_success'), 3);
  assert.equal(valueOfFamily(families, 'nv_inference_count'), 4);
  assert.equal(valueOfFamily(families, 'nv_inference_exec_count'), 2);
  // each request is divided before it is added: 4 + 6 + 0
  assert.equal(valueOfFamily(families, 'nv_inference_request_duration_us'), 10);
});

test('all series exist from load on, with tags as labels, and go at unload', () => {
  const { stats, registry } = makeStats();
  const families = registry.collect();
  const failure = families.find((family) => family.name === 'nv_inference_request_failure')!;
  assert.deepEqual(
    failure.samples.map((sample) => Object.fromEntries(sample.labels)),
    ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'].map((reason) => ({
      _odd_tag: 'x',
      _team: 'sea',
      model: 'simple',
      reason,
      version: '1',
    })),
  );
  assert.equal(valueOfFamily(families, 'nv_inference_pending_request_count'), 0);
  assert.ok(families.some((family) => family.name === 'nereid_inference_request_duration_seconds'));
  assert.ok(!families.some((family) => family.name.startsWith('nv_cache')));
  assert.ok(!families.some((family) => family.type === 'summary'));
  stats.remove();
  assert.deepEqual(registry.collect(), []);
});

test('pending and load time are gauges', () => {
  const { stats, registry } = makeStats();
  stats.pendingInc();
  stats.pendingInc();
  stats.pendingDec();
  stats.setLoadDurationSecs(1.25);
  const families = registry.collect();
  assert.equal(valueOfFamily(families, 'nv_inference_pending_request_count'), 1);
  assert.equal(valueOfFamily(families, 'nv_model_load_duration_secs'), 1.25);
});

test('the metrics config chooses counters, histogram and summaries', () => {
  const { stats, registry } = makeStats({
    isCounterLatencies: false,
    isHistogramLatencies: true,
    isSummaryLatencies: true,
  });
  stats.recordSuccess(1, 4_000_000, 1_000, 1_000, 2_000_000, 1_000);
  stats.recordFirstResponse(150e6);
  const families = registry.collect();
  const names = families.map((family) => family.name);
  assert.ok(!names.includes('nv_inference_request_duration_us'));
  assert.equal(valueOfFamily(families, 'nv_inference_request_success'), 1);
  const first = families.find((family) => family.name === 'nv_inference_first_response_histogram_ms')!;
  assert.equal(first.type, 'histogram');
  if (first.type === 'histogram') {
    assert.deepEqual(
      first.samples[0]!.buckets.map(({ count }) => count),
      [0, 1, 1, 1, 1],
    );
  }
  const summary = families.find((family) => family.name === 'nv_inference_request_summary_us')!;
  assert.ok(summary.type === 'summary' && Math.abs(summary.samples[0]!.quantiles[0]!.value - 4000) < 40);
});

test('cache hits are successes without execution, misses lengthen the request', () => {
  const { stats, registry } = makeStats({ isSummaryLatencies: true }, true);
  stats.recordCacheHit(5_000, 1_000, 2_000);
  stats.recordSuccess(1, 10_000, 1_000, 1_000, 1_000, 1_000);
  stats.recordCacheMiss(3_000);
  const snapshot = stats.snapshot();
  assert.equal(snapshot.inferenceCount, 1);
  assert.deepEqual(snapshot.success, { count: 2, ns: 18_000 });
  assert.deepEqual(snapshot.computeInfer, { count: 1, ns: 1_000 });
  assert.deepEqual(snapshot.cacheHit, { count: 1, ns: 2_000 });
  assert.deepEqual(snapshot.cacheMiss, { count: 1, ns: 3_000 });
  const families = registry.collect();
  assert.equal(valueOfFamily(families, 'nv_cache_num_hits_per_model'), 1);
  assert.equal(valueOfFamily(families, 'nv_cache_miss_duration_per_model'), 3);
  assert.ok(!families.some((family) => family.name === 'nv_inference_request_summary_us'));
});

test('responses are counted by their index, up to a bound', () => {
  const { stats } = makeStats();
  stats.recordResponse(0, 'success', 10, 5);
  stats.recordResponse(1, 'emptyResponse', 7, 0);
  stats.recordResponse(1_000_000, 'cancel', 1, 0);
  const { responseStats } = stats.snapshot();
  assert.equal(Object.keys(responseStats).length, 1024);
  assert.deepEqual(responseStats['0']!.success, { count: 1, ns: 15 });
  assert.deepEqual(responseStats['1']!.emptyResponse, { count: 1, ns: 7 });
  assert.deepEqual(responseStats['1']!.computeOutput, { count: 0, ns: 0 });
});

test('two loads of one version share their series while both live', () => {
  const { stats, registry } = makeStats();
  const reloaded = new ModelStats({
    registry,
    name: 'simple',
    version: 1,
    metricTags: { team: 'sea', 'odd-tag': 'x' },
    config: DEFAULT_METRICS_CONFIG,
    isCached: false,
  });
  stats.recordFailure('OTHER', 1);
  reloaded.recordSuccess(1, 1, 1, 1, 1, 1);
  stats.remove();
  const success = registry.collect().find((family) => family.name === 'nv_inference_request_success')!;
  assert.equal(success.samples.length, 1);
  assert.equal(reloaded.snapshot().fail.count, 0);
});
