// Parsers of /proc on fixed texts, and one reading of the machine the test runs on.
// Where there is no /proc the os module answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedClock } from '../../lib/clock.ts';
import { MetricsRegistry } from './metrics-registry.ts';
import { addSystemMetrics, parseMemInfo, parseProcStat, utilizationBetween } from './system-metrics.ts';

test('processor times are read from /proc/stat', () => {
  const earlier = parseProcStat('cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 1 1 1\n');
  const later = parseProcStat('cpu  150 0 150 780 120 0 0 0 50 0\n');
  assert.deepEqual(earlier, { idle: 800, total: 1000 });
  assert.equal(utilizationBetween(earlier!, later!), 0.5);
  assert.equal(utilizationBetween(later!, later!), 0);
  assert.equal(parseProcStat('nothing'), undefined);
});

test('used memory is what is not available', () => {
  assert.deepEqual(parseMemInfo('MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n'), {
    totalBytes: 1_024_000,
    usedBytes: 614_400,
  });
  assert.equal(parseMemInfo('MemTotal: 5 kB\n'), undefined);
});

test('the gauges have plausible values and can be removed', () => {
  const clock = new SimulatedClock();
  const registry = new MetricsRegistry(clock);
  const remove = addSystemMetrics({
    registry,
    clock,
    intervalMs: 2000,
    isCpuMetrics: true,
    pinnedPoolBytes: 268_435_456,
  });
  const values = new Map(
    registry.collect().flatMap(({ name, samples }) => {
      const [sample] = samples;
      return sample !== undefined && 'value' in sample ? [[name, sample.value] as const] : [];
    }),
  );
  assert.equal(values.get('nv_pinned_memory_pool_total_bytes'), 268_435_456);
  assert.equal(values.get('nv_pinned_memory_pool_used_bytes'), 0);
  assert.ok(values.get('nv_cpu_memory_total_bytes')! > values.get('nv_cpu_memory_used_bytes')!);
  assert.ok(values.get('nv_cpu_memory_used_bytes')! > 0);
  const utilization = values.get('nv_cpu_utilization')!;
  assert.ok(utilization >= 0 && utilization <= 1);
  remove();
  assert.deepEqual(registry.collect(), []);
});
