import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedClock } from '../lib/clock.ts';
import { ExecuteWatch } from './execute-watch.ts';

function createWatch(msMax: number) {
  const clock = new SimulatedClock();
  const lateAtMs: number[] = [];
  const watch = new ExecuteWatch({ msMax, clock, onLate: () => lateAtMs.push(clock.nowMs()) });
  return { clock, lateAtMs, watch };
}

test('an execution that does not end is late once, at its limit', () => {
  const { clock, lateAtMs, watch } = createWatch(1000);
  watch.begin();
  clock.advance(999);
  assert.deepEqual(lateAtMs, []);
  clock.advance(5000);
  assert.deepEqual(lateAtMs, [1000]);
});

test('the time of each batch counts from the answer before it', () => {
  const { clock, lateAtMs, watch } = createWatch(1000);
  watch.begin();
  watch.begin();
  clock.advance(900);
  watch.end();
  clock.advance(900);
  watch.end();
  clock.advance(5000);
  assert.deepEqual(lateAtMs, []);
  watch.begin();
  clock.advance(5000);
  assert.deepEqual(lateAtMs, [7800]);
});

test('batches one after another are never late together', () => {
  const { clock, lateAtMs, watch } = createWatch(1000);
  for (let i = 0; i < 100; i++) {
    watch.begin();
    clock.advance(70);
    watch.end();
  }
  assert.deepEqual(lateAtMs, []);
});

test('after a reset nothing is open', () => {
  const { clock, lateAtMs, watch } = createWatch(1000);
  watch.begin();
  clock.advance(500);
  watch.reset();
  clock.advance(5000);
  assert.deepEqual(lateAtMs, []);
  watch.begin();
  clock.advance(1000);
  assert.deepEqual(lateAtMs, [6500]);
});
