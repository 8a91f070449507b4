import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FloodGuard } from './flood-guard.ts';
import { ERROR_CODE } from './frames.ts';
import { Http2Error } from './http2-error.ts';
import { HTTP2_DEFAULTS } from './http2-types.ts';
import { PingPolicy } from './ping-policy.ts';

function isCalm(thrown: unknown): boolean {
  return thrown instanceof Http2Error && thrown.code === ERROR_CODE.enhanceYourCalm;
}

function repeat(count: number, action: () => void): void {
  for (let i = 0; i < count; i++) action();
}

test('counts start anew every second', () => {
  const guard = new FloodGuard(0);
  for (let second = 0; second < 5; second++) {
    guard.advance(second * 1000);
    repeat(1000, () => guard.countIdleFrame());
    repeat(2000, () => guard.countReset(guard.nowMs));
    repeat(10_000, () => guard.countRefused());
  }
  guard.advance(4999);
  assert.throws(() => guard.countIdleFrame(), isCalm);
  assert.throws(() => guard.countReset(4999), isCalm);
  assert.throws(() => guard.countRefused(), isCalm);
});

test('answered calls allow as many resets, and old calls may always be reset', () => {
  const guard = new FloodGuard(0);
  guard.advance(900);
  repeat(50, () => guard.countAnswer());
  repeat(5000, () => guard.countReset(600));
  repeat(2050, () => guard.countReset(800));
  assert.throws(() => guard.countReset(800), isCalm);
});

test('pings with answers of ours between them are never too many', () => {
  const pings = new PingPolicy({ ...HTTP2_DEFAULTS, pingStrikesMax: 1 }, 0);
  for (let i = 1; i < 5000; i++) pings.onPing(1, { streamCount: 0, sentCount: i });
  pings.onPing(2, { streamCount: 0, sentCount: 4999 });
  assert.throws(() => pings.onPing(3, { streamCount: 0, sentCount: 4999 }), isCalm);
});

test('pings in the allowed interval are no strikes', () => {
  const pings = new PingPolicy(
    { ...HTTP2_DEFAULTS, pingIntervalWithoutDataMsMin: 100, pingStrikesMax: 1 },
    0,
  );
  for (let i = 1; i < 50; i++) pings.onPing(i * 100, { streamCount: 0, sentCount: 0 });
  pings.onPing(4950, { streamCount: 0, sentCount: 0 });
  assert.throws(() => pings.onPing(4960, { streamCount: 0, sentCount: 0 }), isCalm);
});
