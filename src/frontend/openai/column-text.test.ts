import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColumnText } from './column-text.ts';

test('lists that come in pieces are one object in the end', () => {
  const text = new ColumnText();
  text.add({ tokens: [], top: null });
  assert.deepEqual(JSON.parse(text.text), { tokens: [], top: null });
  text.add({ tokens: ['a"', 'b'], top: null });
  text.add({ tokens: [], top: null });
  text.add({ tokens: [{ c: [1] }], top: null });
  assert.deepEqual(JSON.parse(text.text), { tokens: ['a"', 'b', { c: [1] }], top: null });
});
