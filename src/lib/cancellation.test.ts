import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cancellation } from './cancellation.ts';

test('the listener is called once, however often it is cancelled', () => {
  const cancellation = new Cancellation();
  let calls = 0;
  cancellation.onCancel(() => calls++);
  assert.equal(cancellation.isCancelled, false);
  cancellation.cancel();
  cancellation.cancel();
  assert.equal(calls, 1);
  assert.equal(cancellation.isCancelled, true);
});

test('a listener that comes too late is called at once', () => {
  const cancellation = new Cancellation();
  cancellation.cancel();
  let calls = 0;
  cancellation.onCancel(() => calls++);
  assert.equal(calls, 1);
});

test('without a listener nothing happens', () => {
  const cancellation = new Cancellation();
  cancellation.cancel();
  assert.equal(cancellation.isCancelled, true);
});
