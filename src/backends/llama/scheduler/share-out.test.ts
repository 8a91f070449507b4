import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shareOut } from './share-out.ts';

const decode = (proposals = 0) => ({ remaining: 1, proposals });
const prefill = (remaining: number) => ({ remaining, proposals: 0 });
const room = {
  ...{ rows: 16, prefillChunkMax: 4, isAnyDecoding: true },
  ...{ apartRowsMin: Number.POSITIVE_INFINITY, isPromptsTurn: false },
};
const countsOf = (...args: Parameters<typeof shareOut>) => shareOut(...args).counts;

test('decodes come first, and prompts fill the rest in chunks', () => {
  assert.deepEqual(countsOf([prefill(100), decode(), prefill(100), decode()], room), [4, 1, 4, 1]);
});

test('the senior prompt takes what is left before the junior', () => {
  assert.deepEqual(countsOf([prefill(100), prefill(100), decode()], { ...room, rows: 6 }), [4, 1, 1]);
});

test('where nobody decodes a prompt may use the whole step', () => {
  assert.deepEqual(countsOf([prefill(100), prefill(5)], { ...room, isAnyDecoding: false }), [16, 0]);
  assert.deepEqual(countsOf([prefill(10), prefill(100)], { ...room, isAnyDecoding: false }), [10, 6]);
});

test('a decode of another adapter counts as one', () => {
  assert.deepEqual(countsOf([prefill(100)], room), [4]);
});

test('proposals use free rows, but leave a quarter of the step to prompts', () => {
  assert.deepEqual(countsOf([decode(5), decode(5)], room), [6, 6]);
  assert.deepEqual(countsOf([decode(9), decode(9)], room), [10, 6]);
  assert.deepEqual(countsOf([decode(9), decode(9), prefill(100)], room), [10, 2, 4]);
  assert.deepEqual(countsOf([decode(9), decode(9)], { ...room, rows: 2 }), [1, 1]);
});

test('many rows of prompts and decodes take turns where they go apart', () => {
  const apart = { ...room, apartRowsMin: 8 };
  const both = [prefill(100), decode(2), prefill(100)];
  assert.deepEqual(shareOut(both, apart), { counts: [0, 3, 0], hasPutOff: true });
  assert.deepEqual(shareOut(both, { ...apart, isPromptsTurn: true }), {
    counts: [4, 0, 4],
    hasPutOff: false,
  });
});

test('few rows of prompts go with the decodes, whosever turn it is', () => {
  for (const isPromptsTurn of [true, false]) {
    const apart = { ...room, apartRowsMin: 8, isPromptsTurn };
    assert.deepEqual(shareOut([prefill(100), decode(), prefill(3)], apart), {
      ...{ counts: [4, 1, 3], hasPutOff: false },
    });
  }
});

test('prompts alone put nobody off', () => {
  const apart = { ...room, apartRowsMin: 8, isAnyDecoding: false };
  assert.deepEqual(shareOut([prefill(12)], apart), { counts: [12], hasPutOff: false });
});

test('more decodes than rows are a mistake of the caller', () => {
  assert.throws(() => shareOut([decode(), decode()], { ...room, rows: 1 }), /2 decodes in a step of 1 rows/);
});
