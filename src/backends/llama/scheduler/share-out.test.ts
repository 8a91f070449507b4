import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shareOut } from './share-out.ts';

const decode = (proposals = 0) => ({ remaining: 1, proposals });
const prefill = (remaining: number) => ({ remaining, proposals: 0 });
const room = { rows: 16, prefillChunkMax: 4, isAnyDecoding: true };

test('decodes come first, and prompts fill the rest in chunks', () => {
  assert.deepEqual(shareOut([prefill(100), decode(), prefill(100), decode()], room), [4, 1, 4, 1]);
});

test('the senior prompt takes what is left before the junior', () => {
  assert.deepEqual(shareOut([prefill(100), prefill(100), decode()], { ...room, rows: 6 }), [4, 1, 1]);
});

test('where nobody decodes a prompt may use the whole step', () => {
  assert.deepEqual(shareOut([prefill(100), prefill(5)], { ...room, isAnyDecoding: false }), [16, 0]);
  assert.deepEqual(shareOut([prefill(10), prefill(100)], { ...room, isAnyDecoding: false }), [10, 6]);
});

test('a decode of another adapter counts as one', () => {
  assert.deepEqual(shareOut([prefill(100)], room), [4]);
});

test('proposals use free rows, but leave a quarter of the step to prompts', () => {
  assert.deepEqual(shareOut([decode(5), decode(5)], room), [6, 6]);
  assert.deepEqual(shareOut([decode(9), decode(9)], room), [10, 6]);
  assert.deepEqual(shareOut([decode(9), decode(9), prefill(100)], room), [10, 2, 4]);
  assert.deepEqual(shareOut([decode(9), decode(9)], { ...room, rows: 2 }), [1, 1]);
});

test('more decodes than rows are a mistake of the caller', () => {
  assert.throws(() => shareOut([decode(), decode()], { ...room, rows: 1 }), /2 decodes in a step of 1 rows/);
});
