import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RowLayout } from './row-layout.ts';

test('who leaves keeps a row, so that the step is the same again', () => {
  const layout = new RowLayout();
  assert.deepEqual(layout.arrange([4, 7, 2, 9]), [4, 7, 2, 9]);
  assert.equal(layout.isRepeated, false);
  assert.deepEqual(layout.arrange([4, 2, 9]), [4, 7, 2, 9]);
  assert.deepEqual(layout.arrange([9, 4]), [4, 7, 2, 9]);
  assert.equal(layout.isRepeated, true);
});

test('rows are given up when most of them are empty', () => {
  const layout = new RowLayout();
  layout.arrange([1, 2, 3, 4]);
  layout.arrange([1, 2]);
  assert.deepEqual(layout.arrange([2]), [2]);
  assert.equal(layout.isRepeated, false);
});

test('who joins changes the step, and so does a step with a prompt', () => {
  const layout = new RowLayout();
  layout.arrange([1, 2]);
  layout.arrange([1, 2]);
  layout.arrange([1, 2]);
  assert.equal(layout.isRepeated, true);
  assert.deepEqual(layout.arrange([1, 3]), [1, 3]);
  assert.equal(layout.isRepeated, false);
  layout.forget();
  assert.deepEqual(layout.arrange([3]), [3]);
});
