// Which tokens the penalties still see.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenWindow } from './token-window.ts';

function countsOf(length: number, tokens: readonly number[]): Record<number, number> {
  const window = new TokenWindow(length);
  for (const token of tokens) window.add(token);
  return Object.fromEntries(window.counts);
}

test('a window counts its last tokens, all of them, or none', () => {
  const tokens = [5, 5, 7, 5, 9];
  assert.deepEqual(countsOf(-1, tokens), { 5: 3, 7: 1, 9: 1 });
  assert.deepEqual(countsOf(3, tokens), { 5: 1, 7: 1, 9: 1 });
  assert.deepEqual(countsOf(2, tokens), { 5: 1, 9: 1 });
  assert.deepEqual(countsOf(0, tokens), {});
});
