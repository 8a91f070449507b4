import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutForShift } from './context-shift.ts';

test('a short prompt stays, and the newer half of what came after it', () => {
  assert.deepEqual(cutForShift(100, { promptLength: 10, contextLength: 100 }), { begin: 10, end: 55 });
});

test('of a long prompt the beginning stays', () => {
  assert.deepEqual(cutForShift(100, { promptLength: 90, contextLength: 100 }), { begin: 25, end: 63 });
});

test('a text whose prompt is forgotten has no beginning to keep', () => {
  assert.deepEqual(cutForShift(16, { promptLength: -4, contextLength: 16 }), { begin: 0, end: 8 });
});
