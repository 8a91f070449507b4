// Which W3C contexts are taken.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTraceContext } from './trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c12666c';
const SPAN = 'b7ad6b7169242424';

test('a valid traceparent is taken apart', () => {
  assert.deepEqual(parseTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1' }), {
    traceId: TRACE,
    spanId: SPAN,
    flags: 1,
    state: 'a=1',
  });
  const later = parseTraceContext({ traceparent: `01-${TRACE}-${SPAN}-00-more`, tracestate: undefined });
  assert.equal(later?.flags, 0);
  assert.equal(later?.state, '');
});

test('any other is none', () => {
  for (const traceparent of [
    undefined,
    '',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
  ]) {
    assert.equal(parseTraceContext({ traceparent, tracestate: 'a=1' }), undefined, traceparent);
  }
});
