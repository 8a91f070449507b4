// What a canary rule sees and decides, without a clock.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../lib/prng.ts';
import { type CanaryRule, CanaryWindow, findBreach } from './canary-window.ts';

const RULE: CanaryRule = { errorRateMax: 0.05, p99MsMax: 100, windowMs: 30_000, requestsMin: 20 };

test('too few requests decide nothing', () => {
  assert.equal(findBreach({ requestCount: 19, errorCount: 19, slowCount: 19 }, RULE), undefined);
  assert.equal(
    findBreach({ requestCount: 0, errorCount: 0, slowCount: 0 }, { ...RULE, requestsMin: 0 }),
    undefined,
  );
});

test('the bound itself is allowed, more is not, and the reason has the numbers', () => {
  assert.equal(findBreach({ requestCount: 100, errorCount: 5, slowCount: 0 }, RULE), undefined);
  assert.equal(
    findBreach({ requestCount: 100, errorCount: 6, slowCount: 0 }, RULE),
    '6 of 100 requests in 30 s failed (6 %), more than 5 %',
  );
  assert.equal(findBreach({ requestCount: 200, errorCount: 0, slowCount: 2 }, RULE), undefined);
  assert.equal(
    findBreach({ requestCount: 200, errorCount: 0, slowCount: 3 }, RULE),
    '3 of 200 requests in 30 s took longer than 100 ms, so p99 is above it',
  );
});

test('a bound that is not given is not looked at', () => {
  const counts = { requestCount: 100, errorCount: 100, slowCount: 100 };
  assert.match(findBreach(counts, { ...RULE, p99MsMax: undefined })!, /failed/);
  assert.match(findBreach(counts, { ...RULE, errorRateMax: undefined })!, /longer/);
  assert.equal(findBreach(counts, { ...RULE, errorRateMax: undefined, p99MsMax: undefined }), undefined);
});

test('slow requests are too many exactly when the 99th percentile is above the bound', () => {
  const prng = createPrng(3);
  for (let round = 0; round < 2_000; round++) {
    const times = Array.from({ length: prng.integer(20, 400) }, () => prng.exponential(22));
    // Nearest rank: the smallest time that at least 99 of 100 requests do not exceed.
    const p99 = times.sort((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1]!;
    const slowCount = times.filter((time) => time > 100).length;
    const breach = findBreach({ requestCount: times.length, errorCount: 0, slowCount }, RULE);
    assert.equal(breach !== undefined, p99 > 100, `${times.length} requests, p99 ${p99}`);
  }
});

test('the window holds what happened in its length, give or take a step, and forgets the rest', () => {
  const window = new CanaryWindow(20_000);
  window.add(500, { isError: true, isSlow: false });
  window.add(10_000, { isError: false, isSlow: true });
  assert.deepEqual(window.counts(19_999), { requestCount: 2, errorCount: 1, slowCount: 1 });
  assert.deepEqual(window.counts(20_500), { requestCount: 1, errorCount: 0, slowCount: 1 });
  assert.deepEqual(window.counts(30_000), { requestCount: 0, errorCount: 0, slowCount: 0 });
  window.add(1e9, { isError: true, isSlow: true });
  assert.deepEqual(window.counts(1e9), { requestCount: 1, errorCount: 1, slowCount: 1 });
});

test('over random times the window equals a list that is filtered', () => {
  const prng = createPrng(5);
  const window = new CanaryWindow(20_000);
  const all: number[] = [];
  let nowMs = 0;
  for (let i = 0; i < 20_000; i++) {
    nowMs += prng.exponential(prng.boolean(0.01) ? 5_000 : 20);
    window.add(nowMs, { isError: false, isSlow: false });
    all.push(nowMs);
    const firstSlice = Math.floor(nowMs / 1_000) - 19;
    while (Math.floor(all[0]! / 1_000) < firstSlice) all.shift();
    assert.equal(window.counts(nowMs).requestCount, all.length);
  }
});
