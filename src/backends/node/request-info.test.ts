// What a node model is told of a request: JSON with numbers beyond what JSON.parse keeps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequestInfo } from './request-info.ts';

const parse = (parameters: string, correlationId = '0', timeoutUs = '0') =>
  parseRequestInfo(
    Buffer.from(
      `{"id":"r","correlationId":${correlationId},"flags":1,"priority":2,"timeoutUs":${timeoutUs},"parameters":{${parameters}}}`,
    ),
  );

test('without info everything is empty', () => {
  assert.deepEqual(parseRequestInfo(undefined), {
    id: '',
    correlationId: 0,
    flags: 0,
    priority: 0,
    timeoutUs: 0,
    parameters: {},
  });
});

test('usual values are plain', () => {
  assert.deepEqual(parse('"n":-5,"d":1.0,"s":"x","b":true', '"user"'), {
    id: 'r',
    correlationId: 'user',
    flags: 1,
    priority: 2,
    timeoutUs: 0,
    parameters: { n: -5, d: 1, s: 'x', b: true },
  });
});

test('whole numbers that a double does not hold are bigints, others are not', () => {
  const info = parse(
    '"a":-9223372036854775808,"b":9007199254740991',
    '18446744073709551615',
    '9007199254740993',
  );
  assert.equal(info.correlationId, 18446744073709551615n);
  assert.equal(info.timeoutUs, 9007199254740993n);
  assert.deepEqual(info.parameters, { a: -9223372036854775808n, b: 9007199254740991 });
});

test('doubles of many digits stay doubles', () => {
  assert.deepEqual(parse('"a":9007199254740992.0,"b":0.1234567890123456789,"c":1e+21').parameters, {
    a: 2 ** 53,
    b: 0.12345678901234568,
    c: 1e21,
  });
});

test('doubles that JSON does not know', () => {
  assert.deepEqual(parse('"a":NaN,"b":Infinity,"c":-Infinity').parameters, {
    a: Number.NaN,
    b: Number.POSITIVE_INFINITY,
    c: Number.NEGATIVE_INFINITY,
  });
});

test('texts are never taken for numbers', () => {
  const texts = ['NaN', '12345678901234567890', 'a "quoted" NaN', 'back\\', '-Infinity'];
  for (const text of texts) {
    const info = parse(`${JSON.stringify(text)}:${JSON.stringify(text)},"n":NaN`);
    assert.equal(info.parameters[text], text);
    assert.ok(Number.isNaN(info.parameters.n));
  }
});
