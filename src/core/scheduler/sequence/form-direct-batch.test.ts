// The pure decision of the direct strategy: how wide, led by whom, and how long to wait for more.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formDirectBatch, type SlotFront } from './form-direct-batch.ts';

const EAGER = { queueDelayMs: 0, slotUtilizationMin: 0, slotCount: 4 };
const PATIENT = { queueDelayMs: 10, slotUtilizationMin: 0.5, slotCount: 4 };

/** A slot per letter: `.` has nothing to do, others have a request with that batch key that came at 0. */
function fronts(text: string): (SlotFront | undefined)[] {
  return [...text].map((letter) => (letter === '.' ? undefined : { batchKey: letter, queueStartMs: 0 }));
}

test('nothing to do is no batch and no reason to look again', () => {
  assert.deepEqual(formDirectBatch(fronts('....'), EAGER, 5), {
    width: 0,
    lead: -1,
    waitUntilMs: Number.POSITIVE_INFINITY,
  });
});

test('a batch reaches up to the highest slot that has something to do', () => {
  const widths = ['a...', '.a..', 'a.a.', '...a', 'aaaa'].map(
    (text) => formDirectBatch(fronts(text), EAGER, 0).width,
  );
  assert.deepEqual(widths, [1, 2, 3, 4, 4]);
});

test('the lowest slot gives the shapes; another shape widens the batch all the same', () => {
  assert.equal(formDirectBatch(fronts('.ab.'), EAGER, 0).lead, 1);
  assert.equal(formDirectBatch(fronts('.ab.'), EAGER, 0).width, 3);
});

test('too few slots wait until the oldest has waited for the delay', () => {
  const slots = fronts('.a..');
  assert.deepEqual(formDirectBatch(slots, PATIENT, 3), { width: 0, lead: -1, waitUntilMs: 10 });
  assert.equal(formDirectBatch(slots, PATIENT, 10).width, 2);
  assert.equal(formDirectBatch(fronts('.a.a'), PATIENT, 3).width, 4);
});

test('a delay without a utilization, or the other way round, waits for nobody', () => {
  assert.equal(formDirectBatch(fronts('a...'), { ...PATIENT, slotUtilizationMin: 0 }, 0).width, 1);
  assert.equal(formDirectBatch(fronts('a...'), { ...PATIENT, queueDelayMs: 0 }, 0).width, 1);
});
