// What the server tells of a request: parameters and priority, with doubles that JSON does not have.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequestInfo } from './request-info.ts';

test('parameters and priority, or their defaults', () => {
  assert.deepEqual(parseRequestInfo(undefined), { parameters: {}, priority: 0 });
  assert.deepEqual(parseRequestInfo(Buffer.from('{"id":"x"}')), { parameters: {}, priority: 0 });
  const info = Buffer.from('{"parameters":{"top_k":3,"s":"a,NaN}"},"priority":2}');
  assert.deepEqual(parseRequestInfo(info), { parameters: { top_k: 3, s: 'a,NaN}' }, priority: 2 });
});

test('numbers that JSON does not have do no harm', () => {
  const info = Buffer.from('{"parameters":{"a":NaN,"b":-Infinity},"priority":1}');
  assert.deepEqual(parseRequestInfo(info), { parameters: { a: null, b: null }, priority: 1 });
});
