// Series by labels: sharing, removal, buckets, windows.
// Time is simulated.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedClock } from '../../lib/clock.ts';
import { MetricsRegistry } from './metrics-registry.ts';

test('the same labels share a series, which goes with its last holder', () => {
  const registry = new MetricsRegistry(new SimulatedClock());
  const first = registry.counter('c', 'help', { version: '1', model: 'm' });
  const second = registry.counter('c', 'help', { model: 'm', version: '1' });
  first.series.inc();
  second.series.inc(2);
  const labels = [
    ['model', 'm'],
    ['version', '1'],
  ];
  assert.deepEqual(registry.collect(), [
    { type: 'counter', name: 'c', help: 'help', samples: [{ labels, value: 3 }] },
  ]);
  first.release();
  first.release();
  assert.equal(registry.collect().length, 1);
  second.release();
  assert.deepEqual(registry.collect(), []);
  // a new holder starts anew
  assert.equal(registry.counter('c', 'help', { model: 'm', version: '1' }).series.value, 0);
});

test('values that contain separators are different labels', () => {
  const registry = new MetricsRegistry(new SimulatedClock());
  registry.gauge('g', '', { a: '1","b":"2' }).series.set(1);
  registry.gauge('g', '', { a: '1', b: '2' }).series.set(2);
  const [family] = registry.collect();
  assert.equal(family!.samples.length, 2);
});

test('a value on a bound belongs to that bucket, one above all to +Inf', () => {
  const registry = new MetricsRegistry(new SimulatedClock());
  const { series } = registry.histogram('h', '', {}, [5, 1, 2]);
  for (const value of [0, 1, 1.5, 2, 5, 6]) series.observe(value);
  const [family] = registry.collect();
  assert.deepEqual(family!.samples, [
    {
      labels: [],
      buckets: [
        { bound: 1, count: 2 },
        { bound: 2, count: 4 },
        { bound: 5, count: 5 },
        { bound: Number.POSITIVE_INFINITY, count: 6 },
      ],
      sum: 15.5,
      count: 6,
    },
  ]);
});

test('a summary reads the last minute, its count the whole life', () => {
  const clock = new SimulatedClock();
  const registry = new MetricsRegistry(clock);
  const { series } = registry.summary('s', '', {}, [0.5]);
  for (let i = 0; i < 100; i++) series.observe(200);
  assert.ok(Math.abs(series.read()[0]!.value - 200) < 2);
  clock.advance(120_000);
  assert.ok(Number.isNaN(series.read()[0]!.value));
  assert.equal(series.count, 100);
  assert.equal(series.sum, 20_000);
});

test('collectors run at each collection until they are removed', () => {
  const registry = new MetricsRegistry(new SimulatedClock());
  const { series } = registry.gauge('g', '');
  const remove = registry.addCollector(() => series.inc());
  registry.collect();
  registry.collect();
  remove();
  registry.collect();
  assert.equal(series.value, 2);
});

test('a family keeps its type, and names are checked', () => {
  const registry = new MetricsRegistry(new SimulatedClock());
  registry.counter('x', '');
  assert.throws(() => registry.gauge('x', ''), TypeError);
  assert.throws(() => registry.gauge('no name', ''), TypeError);
  assert.throws(() => registry.gauge('y', '', { 'no-label': '' }), TypeError);
});
