// The formation rules of the dynamic batcher, one by one, in the numbering of Triton's behaviour that
// form-batch.ts follows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BatchPolicy, formBatch, type QueueView, type Waiting } from './form-batch.ts';

interface Sketch {
  size?: number;
  key?: string;
  sinceMs?: number;
  isAnswered?: boolean;
}

const NEVER = Number.POSITIVE_INFINITY;

function queueOf(...sketches: Sketch[]): QueueView {
  const places: Waiting[] = sketches.map((sketch) => ({
    batchSize: sketch.size ?? 1,
    batchKey: sketch.key ?? '',
    queueStartMs: sketch.sinceMs ?? 0,
    isAnswered: sketch.isAnswered ?? false,
  }));
  return { length: places.length, at: (index) => places[index]! };
}

function ones(count: number): Sketch[] {
  return Array.from({ length: count }, () => ({}));
}

function policy(fields: {
  max?: number;
  preferred?: number[];
  delayMs?: number;
  isBatching?: boolean;
}): BatchPolicy {
  const { max = 8, preferred = [], delayMs = 0, isBatching = true } = fields;
  return {
    isBatching,
    batchSizeMax: max,
    preferredSizes: new Set(preferred),
    preferredSizeMax: preferred.length === 0 ? max : Math.max(...preferred),
    queueDelayMs: delayMs,
  };
}

function take(queue: QueueView, rules: BatchPolicy, nowMs = 0): number {
  return formBatch(queue, rules, nowMs).take;
}

test('an empty queue, or one of answered requests only, waits for nothing', () => {
  const nothing = { take: 0, waitUntilMs: NEVER };
  assert.deepEqual(formBatch(queueOf(), policy({}), 5), nothing);
  assert.deepEqual(formBatch(queueOf({ isAnswered: true }), policy({ delayMs: 5 }), 5), nothing);
});

test('without batching every request goes alone, whatever waits', () => {
  assert.equal(take(queueOf(...ones(3)), policy({ isBatching: false })), 1);
  assert.equal(take(queueOf({ isAnswered: true }, {}, {}), policy({ isBatching: false })), 2);
  assert.equal(take(queueOf({ size: 8 }), policy({ isBatching: false, max: 1 })), 1);
});

test('rule 1: answered requests take a place and no row', () => {
  const queue = queueOf(
    { isAnswered: true, size: 8 },
    { size: 4 },
    { isAnswered: true, key: 'x' },
    { size: 4 },
  );
  assert.equal(take(queue, policy({ delayMs: 10 })), 4);
});

test('rule 2: what would exceed max_batch_size stays, and the rest goes without waiting', () => {
  assert.equal(take(queueOf({ size: 5 }, { size: 4 }), policy({ delayMs: 10 })), 1);
  assert.equal(take(queueOf({ size: 4 }, { size: 4 }, { size: 1 }), policy({ delayMs: 10 })), 2);
});

test('rule 2: a smaller request further back does not overtake', () => {
  assert.equal(take(queueOf({ size: 5 }, { size: 4 }, { size: 1 }), policy({})), 1);
});

test('rule 3: an incompatible request ends the batch, and the rest goes without waiting', () => {
  assert.equal(
    take(queueOf({ key: 'a' }, { key: 'a' }, { key: 'b' }, { key: 'a' }), policy({ delayMs: 10 })),
    2,
  );
});

test('rule 4: the largest prefix of a preferred size is remembered', () => {
  assert.equal(take(queueOf(...ones(7)), policy({ preferred: [2, 4] })), 4);
  assert.equal(take(queueOf(...ones(3)), policy({ preferred: [2, 4] })), 2);
});

test('rule 4: a prefix is remembered when the next request would exceed the largest preferred size', () => {
  assert.equal(take(queueOf({ size: 3 }, { size: 3 }), policy({ preferred: [4], delayMs: 10 })), 1);
  // A preferred size reached later is better than the remembered prefix.
  assert.equal(take(queueOf({ size: 3 }, { size: 3 }, { size: 2 }), policy({ preferred: [4, 8] })), 3);
});

test('rule 5: a preferred prefix goes out at once, before the delay has passed', () => {
  assert.equal(take(queueOf(...ones(5)), policy({ preferred: [4], delayMs: 10 }), 3), 4);
});

test('rule 5 and 7: once the delay has passed everything pending goes, not only the preferred prefix', () => {
  assert.equal(take(queueOf(...ones(5)), policy({ preferred: [4], delayMs: 10 }), 10), 5);
});

test('rule 6: a batch of the largest preferred size does not wait', () => {
  assert.equal(take(queueOf(...ones(8)), policy({ delayMs: 10 })), 8);
});

test('rule 7: without a delay whatever waits goes out', () => {
  assert.equal(take(queueOf(...ones(3)), policy({})), 3);
  assert.equal(take(queueOf(...ones(3)), policy({ preferred: [4] })), 3);
});

test('rule 7: the oldest request decides about the delay, also when it is not the head', () => {
  const queue = queueOf({ sinceMs: 9 }, { sinceMs: 0 });
  assert.equal(take(queue, policy({ delayMs: 10 }), 10), 2);
  assert.deepEqual(formBatch(queue, policy({ delayMs: 10 }), 9), { take: 0, waitUntilMs: 10 });
});

test('rule 8: otherwise it waits until the delay of the oldest ends, and then it goes', () => {
  const rules = policy({ delayMs: 0.1 });
  const queue = queueOf({ sinceMs: 0.2397232334867899 }, { sinceMs: 0.3 });
  const { take: none, waitUntilMs } = formBatch(queue, rules, 0.3);
  assert.equal(none, 0);
  // To the last bit: a timer at that moment must not find that it is a rounding error too early.
  assert.equal(take(queue, rules, waitUntilMs), 2);
});
