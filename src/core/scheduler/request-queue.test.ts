// Order, bounds and deadlines of the waiting requests of one model.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QUEUE_BYTES_MAX, QUEUE_REQUESTS_MAX } from '../../domain/limits.ts';
import type { Entry } from './entry.ts';
import { type QueuePolicy, RequestQueue, toQueuePolicy } from './request-queue.ts';
import { makeEntry, makeRequest } from './test-entry.ts';

const NEVER = Number.POSITIVE_INFINITY;

function policy(fields: Partial<QueuePolicy> = {}): QueuePolicy {
  return { isDelayAction: false, timeoutMs: 0, isOverrideAllowed: false, requestsMax: 100, ...fields };
}

function queueOf(policies: QueuePolicy[], ...entries: Entry[]): RequestQueue {
  const queue = new RequestQueue(policies);
  for (const entry of entries) queue.push(entry, 0);
  return queue;
}

function orderOf(queue: RequestQueue): Entry[] {
  return Array.from({ length: queue.length }, (_, i) => queue.at(i));
}

test('a config without a queue policy has no timeout and the bound of the server', () => {
  assert.deepEqual(toQueuePolicy(undefined), policy({ requestsMax: QUEUE_REQUESTS_MAX }));
});

test('a queue policy of the config is read in milliseconds; a size of 0 is no bound of its own', () => {
  const config = {
    timeout_action: 'DELAY',
    default_timeout_microseconds: 1500,
    allow_timeout_override: true,
    max_queue_size: 0,
  };
  const expected = { isDelayAction: true, timeoutMs: 1.5, isOverrideAllowed: true };
  assert.deepEqual(toQueuePolicy(config), { ...expected, requestsMax: QUEUE_REQUESTS_MAX });
  assert.equal(toQueuePolicy({ ...config, max_queue_size: 3 }).requestsMax, 3);
});

test('requests stand in the order of their level, then of their arrival', () => {
  const low = [makeEntry({ level: 1 }), makeEntry({ level: 1 })];
  const high = [makeEntry(), makeEntry()];
  const queue = queueOf([policy(), policy()], low[0]!, high[0]!, low[1]!, high[1]!);
  assert.deepEqual(orderOf(queue), [...high, ...low]);
  assert.deepEqual(queue.take(3), [...high, low[0]]);
  assert.equal(queue.length, 1);
  assert.throws(() => queue.at(1), RangeError);
});

test('a level is full at its bound, the others are not', () => {
  const queue = queueOf([policy({ requestsMax: 1 }), policy()], makeEntry());
  assert.equal(queue.refusalOf(makeEntry()) === undefined, false);
  assert.equal(queue.refusalOf(makeEntry({ level: 1 })) === undefined, true);
  queue.take(1);
  assert.equal(queue.refusalOf(makeEntry()) === undefined, true);
});

test('bytes are bounded over all levels, and given back when a request leaves', () => {
  const half = makeEntry({ byteLength: QUEUE_BYTES_MAX / 2 });
  const queue = queueOf([policy(), policy()], half, makeEntry({ level: 1, byteLength: QUEUE_BYTES_MAX / 2 }));
  assert.equal(queue.refusalOf(makeEntry()) === undefined, false);
  assert.equal(queue.refusalOf(makeEntry({ byteLength: 0 })) === undefined, true);
  half.isAnswered = true;
  queue.forget(half);
  assert.equal(queue.refusalOf(makeEntry({ byteLength: QUEUE_BYTES_MAX / 2 })) === undefined, true);
});

test('a forgotten request is not taken and counts no more', () => {
  const entries = [makeEntry(), makeEntry(), makeEntry()];
  const queue = queueOf([policy()], ...entries);
  entries[1]!.isAnswered = true;
  queue.forget(entries[1]!);
  assert.equal(queue.waitingCount, 2);
  assert.deepEqual(queue.take(3), [entries[0], entries[2]]);
  assert.equal(queue.length, 0);
});

test('forgotten requests do not pile up while nothing is taken', () => {
  const first = makeEntry();
  const queue = queueOf([policy()], first);
  for (let i = 0; i < 10_000; i++) {
    const entry = makeEntry();
    queue.push(entry, 0);
    entry.isAnswered = true;
    queue.forget(entry);
  }
  assert.ok(queue.length < 100, `${queue.length} places`);
  assert.deepEqual(queue.take(queue.length), [first]);
});

test('the deadline is the timeout of the level; an override counts if allowed, shorter and not 0', () => {
  const deadline = (fields: Partial<QueuePolicy>, timeoutUs: number) => {
    const entry = makeEntry({ request: makeRequest({ timeoutUs }) });
    const queue = new RequestQueue([policy(fields)]);
    queue.push(entry, 1000);
    assert.equal(queue.nextDeadlineMs(), entry.deadlineMs);
    return entry.deadlineMs;
  };
  const allowed = { timeoutMs: 10, isOverrideAllowed: true };
  assert.equal(deadline({}, 0), NEVER);
  assert.equal(deadline({ isOverrideAllowed: true }, 5_000), NEVER, 'no default, no override');
  assert.equal(deadline({ timeoutMs: 10 }, 5_000), 1010, 'not allowed');
  assert.equal(deadline(allowed, 5_000), 1005);
  assert.equal(deadline(allowed, 50_000), 1010, 'longer');
  assert.equal(deadline(allowed, 0), 1010, 'none');
});

test('REJECT returns the expired ones, at their deadline and not before', () => {
  const short = makeEntry({ request: makeRequest({ timeoutUs: 2_000 }) });
  const long = makeEntry();
  const queue = queueOf([policy({ timeoutMs: 10, isOverrideAllowed: true })], long, short);
  assert.equal(queue.nextDeadlineMs(), 2);
  assert.deepEqual(queue.expire(1.999), []);
  assert.deepEqual(queue.expire(2), [short]);
  assert.equal(queue.waitingCount, 1);
  assert.equal(queue.nextDeadlineMs(), 10);
  assert.deepEqual(orderOf(queue), [long]);
});

test('DELAY moves the expired ones behind the fresh ones of their level, and never expires them again', () => {
  const entries = Array.from({ length: 3 }, () => makeEntry({ request: makeRequest({ timeoutUs: 1_000 }) }));
  const fresh = makeEntry();
  const low = makeEntry({ level: 1 });
  const delaying = policy({ timeoutMs: 10, isOverrideAllowed: true, isDelayAction: true });
  const queue = queueOf([delaying, policy()], ...entries, fresh, low);
  assert.deepEqual(queue.expire(5), []);
  assert.deepEqual(orderOf(queue), [fresh, ...entries, low]);
  assert.equal(queue.nextDeadlineMs(), 10);
  assert.deepEqual(queue.expire(20), []);
  assert.deepEqual(orderOf(queue), [...entries, fresh, low]);
  assert.equal(queue.nextDeadlineMs(), NEVER);
  assert.equal(queue.waitingCount, 5);
});

test('delayed requests still count for the bound of their level', () => {
  const delaying = policy({ timeoutMs: 1, isDelayAction: true, requestsMax: 1 });
  const queue = queueOf([delaying], makeEntry());
  queue.expire(5);
  assert.equal(queue.refusalOf(makeEntry()) === undefined, false);
});
