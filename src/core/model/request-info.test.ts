// What a host is told of a request: JSON that keeps int64 apart from double.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ParameterValue } from '../../domain/request.ts';
import { makeRequest } from '../scheduler/test-entry.ts';
import { encodeRequestInfo } from './request-info.ts';

function textOf(parameters: readonly (readonly [string, ParameterValue])[]): string {
  const text = encodeRequestInfo(makeRequest({ parameters: new Map(parameters) })).toString();
  return /"parameters":\{(.*)\}\}$/s.exec(text)?.[1] ?? text;
}

test('a request without anything', () => {
  assert.equal(
    encodeRequestInfo(makeRequest()).toString(),
    '{"id":"","correlationId":0,"flags":0,"priority":0,"timeoutUs":0,"parameters":{}}',
  );
});

test('a request that is traced further', () => {
  assert.equal(
    encodeRequestInfo(makeRequest(), '00-aa-bb-01').toString(),
    '{"id":"","correlationId":0,"flags":0,"priority":0,"timeoutUs":0,"parameters":{},"traceparent":"00-aa-bb-01"}',
  );
});

test('every field, numbers beyond 2^53 included', () => {
  const request = makeRequest({
    id: 'r"1\n漢',
    correlationId: 2n ** 64n - 1n,
    sequenceFlags: 3,
    priority: 5,
    timeoutUs: 2n ** 63n,
  });
  assert.equal(
    encodeRequestInfo(request).toString(),
    '{"id":"r\\"1\\n漢","correlationId":18446744073709551615,"flags":3,"priority":5,"timeoutUs":9223372036854775808,"parameters":{}}',
  );
  assert.match(
    encodeRequestInfo(makeRequest({ correlationId: 'user-1' })).toString(),
    /"correlationId":"user-1",/,
  );
});

test('an int64 has no point, a double always has one or an exponent', () => {
  assert.equal(textOf([['n', -(2n ** 63n)]]), '"n":-9223372036854775808');
  assert.equal(textOf([['n', 1n]]), '"n":1');
  const doubles: readonly [number, string][] = [
    [1, '1.0'],
    [0.1, '0.1'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    [2 ** 53, '9007199254740992.0'],
    [5e-324, '5e-324'],
    [Number.MAX_VALUE, '1.7976931348623157e+308'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
  ];
  for (const [value, text] of doubles) assert.equal(textOf([['d', value]]), `"d":${text}`);
});

test('minus zero keeps its sign', () => {
  assert.equal(textOf([['d', -0]]), '"d":-0.0');
});

test('strings and names are quoted as JSON wants it', () => {
  const texts = [
    '',
    'quo"te',
    'back\\slash',
    'tab\tnew\nline',
    '\u0000\u001f',
    'é漢😀',
    '__proto__',
    '\ud800',
  ];
  for (const text of texts) {
    const info = encodeRequestInfo(makeRequest({ id: text, parameters: new Map([[text, text]]) }));
    const read = JSON.parse(info.toString()) as { id: string; parameters: Record<string, string> };
    assert.equal(read.id, text);
    assert.deepEqual(Object.entries(read.parameters), [[text, text]]);
  }
});

test('parameters keep their order', () => {
  assert.equal(
    textOf([
      ['b', true],
      ['a', 'x'],
      ['c', false],
    ]),
    '"b":true,"a":"x","c":false',
  );
});
