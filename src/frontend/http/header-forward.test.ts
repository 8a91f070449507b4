import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Parameters } from '../../domain/request.ts';
import { forwardHeaders } from './header-forward.ts';

function forward(rawHeaders: string[], pattern: RegExp, given?: Parameters): Parameters | undefined {
  return forwardHeaders(rawHeaders, pattern, given);
}

test('headers that match become parameters, in the case in which they were written', () => {
  const forwarded = forward(['X-Tenant', 'a', 'Host', 'h', 'x-trace', 'b'], /^x-/i);
  assert.deepEqual(
    [...(forwarded ?? [])],
    [
      ['X-Tenant', 'a'],
      ['x-trace', 'b'],
    ],
  );
});

test('a header wins over a parameter of its name; the others stay, and the request is not changed', () => {
  const given = new Map([
    ['X-A', 'parameter'],
    ['other', 'kept'],
  ]);
  const forwarded = forward(['X-A', 'header'], /^X-/, given);
  assert.deepEqual(
    [...(forwarded ?? [])],
    [
      ['X-A', 'header'],
      ['other', 'kept'],
    ],
  );
  assert.equal(given.get('X-A'), 'parameter');
});

test('nothing that matches leaves the parameters as they are', () => {
  const given = new Map([['a', 'b']]);
  assert.equal(forward(['Host', 'h'], /^x-/, given), given);
  assert.equal(forward([], /.*/), undefined);
});

for (const name of ['sequence_id', 'priority', 'timeout', 'headers', 'binary_data_output', 'triton_x']) {
  test(`${name} may not be forwarded`, () => {
    assert.throws(() => forward([name, '1'], /.*/), {
      code: 'INVALID_ARG',
      message: `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
    });
  });
}
