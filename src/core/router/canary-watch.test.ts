// How a canary rule hears of requests: those that end, those that hang, those that say nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CanaryWatch } from './canary-watch.ts';
import type { CanaryRule } from './canary-window.ts';

const RULE: CanaryRule = { errorRateMax: 0.1, p99MsMax: 100, windowMs: 10_000, requestsMin: 10 };

function request(startMs: number): { startMs: number; isLate: boolean } {
  return { startMs, isLate: false };
}

test('errors above the bound are told with the request that passes it', () => {
  const watch = new CanaryWatch(RULE);
  for (let i = 0; i < 9; i++) {
    const one = request(i);
    assert.equal(watch.onBegin(one, i), undefined);
    assert.equal(watch.onEnd(one, i + 1, i === 0), undefined);
  }
  const last = request(20);
  watch.onBegin(last, 20);
  assert.match(watch.onEnd(last, 21, true)!, /2 of 10 requests/);
});

test('a target that never answers is found out by the requests that come after', () => {
  const watch = new CanaryWatch(RULE);
  for (let i = 0; i < 9; i++) assert.equal(watch.onBegin(request(i), i), undefined);
  assert.equal(watch.onBegin(request(90), 90), undefined);
  assert.equal(watch.onBegin(request(150), 150), undefined);
  assert.match(watch.onBegin(request(200), 200)!, /10 of 10 requests in 10 s took longer than 100 ms/);
});

test('a request that was late and then answers counts once', () => {
  const watch = new CanaryWatch({ ...RULE, p99MsMax: 100, requestsMin: 2 });
  const slow = request(0);
  watch.onBegin(slow, 0);
  watch.onBegin(request(150), 150);
  // One request in the window, below the minimum, though it was heard of twice.
  assert.equal(watch.onEnd(slow, 160, false), undefined);
});

test('a request that was late and then fails is an error too', () => {
  const watch = new CanaryWatch({ ...RULE, p99MsMax: 100, errorRateMax: 0.5, requestsMin: 1 });
  const slow = request(0);
  watch.onBegin(slow, 0);
  watch.onBegin(request(150), 150);
  assert.match(watch.onEnd(slow, 160, true)!, /1 of 1 requests in 10 s failed/);
});

test('clients that go away and wrong requests say nothing about a target', () => {
  const watch = new CanaryWatch({ ...RULE, requestsMin: 1 });
  for (let i = 0; i < 50; i++) {
    const one = request(i);
    watch.onBegin(one, i);
    assert.equal(watch.onEnd(one, i, undefined), undefined);
  }
});
