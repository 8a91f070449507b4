// Unit tests of the rapidjson imitation; texts and offsets are those of a recorded Triton 2.51.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { itemsOf, parseJson } from './json-reader.ts';
import { asArray, asDouble, asSigned, asUnsigned, findMember, type JsonValue } from './json-value.ts';

const INPUT = '{"name":"X","datatype":"FP32","shape":[2,3],"data":';

function parse(text: string | Buffer): JsonValue {
  return parseJson(typeof text === 'string' ? Buffer.from(text) : text);
}

function assertParseError(text: string | Buffer, reason: string): void {
  assert.throws(() => parse(text), {
    code: 'INTERNAL',
    message: `failed to parse the request JSON buffer: ${reason}`,
  });
}

test('the recorded parse errors, text and offset', () => {
  const cases: [string, string][] = [
    ['hello', 'Invalid value. at 0'],
    ['', 'The document is empty. at 0'],
    ['  ', 'The document is empty. at 2'],
    ['\0\0\0', 'The document is empty. at 0'],
    [']', 'The document is empty. at 0'],
    ['{', 'Missing a name for object member. at 1'],
    ["{'inputs':[]}", 'Missing a name for object member. at 1'],
    ['{/* c */"inputs":[]}', 'Missing a name for object member. at 1'],
    ['{"inputs":', 'Invalid value. at 10'],
    ['{"inputs":"\\x"}', 'Invalid escape character in string. at 11'],
    ['{"inputs":"\u0001"}', 'Invalid escape character in string. at 11'],
    ['{"id":"\\ud800","inputs":[]}', 'The surrogate pair in string is invalid. at 7'],
    [`{"inputs":[${INPUT}[1,1,1,1,1,1]},]}`, 'Invalid value. at 77'],
    [
      `{"inputs":[${INPUT}[1,1,1,1,1,1]}]} x`,
      'The document root must not be followed by other values. at 79',
    ],
    [`{"inputs":[${INPUT}[+1,1]}]}`, 'Invalid value. at 63'],
    [`{"inputs":[${INPUT}[1.,1]}]}`, 'Miss fraction part in number. at 65'],
    [`{"inputs":[${INPUT}[1e999,1]}]}`, 'Number too big to be stored in double. at 63'],
  ];
  for (const [text, reason] of cases) assertParseError(text, reason);
});

test('other rapidjson errors', () => {
  assertParseError('{"a" 1}', 'Missing a colon after a name of object member. at 5');
  assertParseError('{"a":1', "Missing a comma or '}' after an object member. at 6");
  assertParseError('{"a":1,}', 'Missing a name for object member. at 7');
  assertParseError('[1 2]', "Missing a comma or ']' after an array element. at 3");
  assertParseError('[1', "Missing a comma or ']' after an array element. at 2");
  assertParseError('[01]', "Missing a comma or ']' after an array element. at 2");
  assertParseError('["a', 'Missing a closing quotation mark in string. at 3');
  assertParseError('["\\u12G4"]', 'Incorrect hex digit after \\u escape in string. at 2');
  assertParseError('[1e]', 'Miss exponent in number. at 3');
  assertParseError('[nul]', 'Invalid value. at 4');
  assertParseError('[Infinite]', 'Invalid value. at 8');
  assertParseError(`[${'9'.repeat(400)}]`, 'Number too big to be stored in double. at 1');
  assertParseError('[-]', 'Invalid value. at 2');
});

test('integers and doubles differ, and 64 bits are exact', () => {
  assert.equal(parse('1'), 1);
  assert.deepEqual(parse('1.0'), { kind: 'double', value: 1 });
  assert.ok(Object.is(parse('-0'), 0));
  assert.equal(parse('9007199254740993'), 9007199254740993n);
  assert.equal(asUnsigned(parse('18446744073709551615'), ''), 18446744073709551615n);
  assert.equal(asSigned(parse('-9223372036854775808'), ''), -9223372036854775808n);
  assert.throws(() => asSigned(parse('9223372036854775808'), ''), {
    message: 'attempt to access JSON non-signed-integer as signed-integer',
  });
  assert.throws(() => asUnsigned(parse('18446744073709551616'), ''), {
    message: 'attempt to access JSON non-unsigned-integer as unsigned-integer',
  });
  assert.equal(asDouble(parse('-Inf'), ''), Number.NEGATIVE_INFINITY);
  assert.equal(asDouble(parse('Infinity'), ''), Number.POSITIVE_INFINITY);
  assert.ok(Number.isNaN(asDouble(parse('NaN'), '')));
});

test('the first of duplicate members is found, a mark at the start skipped, a NUL ends the text', () => {
  assert.equal(findMember(parse('{"a":1,"a":2}'), 'a'), 1);
  assert.equal(findMember(parse('\ufeff{"a":1}'), 'a'), 1);
  assert.equal(findMember(parse('{"a":1}\0 trailing'), 'a'), 1);
});

test('strings: escapes, surrogate pairs, and bytes that are no UTF-8', () => {
  assert.equal(parse('"\\u0058\\ud83d\\ude00\\n\\/é"'), 'X\u{1f600}\n/é');
  const bytes = parse(Buffer.from([0x22, 0xff, 0xfe, 0x22]));
  assert.deepEqual(bytes, { kind: 'bytes', bytes: Buffer.from([0xff, 0xfe]) });
});

test('arrays give their items, objects of nested arrays left where they are', () => {
  const items = itemsOf(asArray(parse('[1, [2, {"x": 3}], {"y": 4}, "five", [], null]'), ''));
  assert.equal(items.length, 6);
  assert.equal(items[0], 1);
  assert.equal(findMember(itemsOf(asArray(items[1]!, ''))[1], 'x'), 3);
  assert.equal(findMember(items[2], 'y'), 4);
  assert.equal(items[3], 'five');
  assert.equal(itemsOf(asArray(items[4]!, '')).length, 0);
  assert.equal(items[5], null);
});

test('nesting never overflows the stack: arrays may go deep, objects are bounded', () => {
  const depth = 200_000;
  assert.doesNotThrow(() => parse('['.repeat(depth) + ']'.repeat(depth)));
  assert.throws(() => parse('{"a":'.repeat(depth)), {
    message: 'JSON nesting depth exceeds maximum allowed limit (100)',
  });
  assert.throws(() => parse('[{"a":'.repeat(depth)), { code: 'INVALID_ARG' });
});
