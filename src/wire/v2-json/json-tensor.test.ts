// Unit tests of JSON `data`, through the decoder; values and texts are those of a recorded Triton 2.51.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelView } from '../../domain/model-view.ts';
import { contiguous } from '../../domain/tensor.ts';
import { decodeInferRequest } from './decode-infer-request.ts';

const NOBATCH: ModelView = {
  name: 'nobatch',
  version: 1,
  maxBatchSize: 0,
  inputs: [{ name: 'X', datatype: 'FP32', dims: [2, 3], optional: false }],
  outputs: [],
  isDecoupled: false,
  labelsOf: () => undefined,
};

function withData(datatype: string, shape: string, data: string): string {
  return `{"inputs":[{"name":"X","datatype":"${datatype}","shape":${shape},"data":${data}}]}`;
}

function dataOf(json: string): Buffer {
  const body = Buffer.from(json);
  const { request } = decodeInferRequest({
    body: [body],
    bodyLength: body.length,
    jsonLength: body.length,
    model: NOBATCH,
    inputBytesMax: 64 * 1024 * 1024,
  });
  return contiguous(request.inputs[0]!.data);
}

function assertRefused(json: string, code: string, message: string): void {
  assert.throws(() => dataOf(json), { code, message }, json);
}

test('JSON numbers become the bytes of each datatype, wrapping as a C cast does', () => {
  assert.deepEqual([...new Int8Array(dataOf(withData('INT8', '[3]', '[128, 300, -129]')))], [-128, 44, 127]);
  assert.deepEqual([...dataOf(withData('UINT8', '[2]', '[256,511]'))], [0, 255]);
  const int32 = dataOf(withData('INT32', '[3]', '[2147483648, 4294967297,-2147483648]'));
  assert.deepEqual(
    [int32.readInt32LE(0), int32.readInt32LE(4), int32.readInt32LE(8)],
    [-2147483648, 1, -2147483648],
  );
  const int64 = dataOf(
    withData('INT64', '[4]', '[-9223372036854775808,9223372036854775807,-1,9007199254740993]'),
  );
  assert.equal(int64.readBigInt64LE(0), -9223372036854775808n);
  assert.equal(int64.readBigInt64LE(8), 9223372036854775807n);
  assert.equal(int64.readBigInt64LE(16), -1n);
  assert.equal(int64.readBigInt64LE(24), 9007199254740993n);
  assert.equal(
    dataOf(withData('UINT64', '[1]', '[18446744073709551615]')).readBigUInt64LE(0),
    2n ** 64n - 1n,
  );
  assert.deepEqual([...dataOf(withData('BOOL', '[3]', '[true,false,true]'))], [1, 0, 1]);
});

test('JSON floats: special literals, integers, exponents and many digits', () => {
  const special = dataOf(withData('FP32', '[1,5]', '[NaN,Infinity,-Infinity,-0.0,1e39]'));
  assert.ok(Number.isNaN(special.readFloatLE(0)));
  assert.equal(special.readFloatLE(4), Number.POSITIVE_INFINITY);
  assert.equal(special.readFloatLE(8), Number.NEGATIVE_INFINITY);
  assert.ok(Object.is(special.readFloatLE(12), -0));
  assert.equal(special.readFloatLE(16), Number.POSITIVE_INFINITY);
  const texts = ['1E2', '1e21', '1e-7', '0.000001', '1.5', '-2.25', '0.1', '-7'];
  texts.push(
    '0.10000000149011612',
    '1234567890.12345',
    '4.9e-324',
    '1.7976931348623157e308',
    '0.30000000000000004',
  );
  const doubles = dataOf(withData('FP64', `[${texts.length}]`, `[${texts.join(' ,\n')}]`));
  texts.forEach((text, i) => {
    assert.equal(doubles.readDoubleLE(i * 8), Number(text), text);
  });
  assert.ok(Object.is(dataOf(withData('FP64', '[1]', '[-0]')).readDoubleLE(0), 0));
});

test('nesting is flattened up to the limit', () => {
  assert.equal(dataOf(withData('FP32', '[2,3]', '[[1,1,1],[1,1,1]]')).length, 24);
  const nested = (depth: number) => withData('FP32', '[1]', `${'['.repeat(depth)}1${']'.repeat(depth)}`);
  assert.equal(dataOf(nested(99)).length, 4);
  const text = 'JSON nesting depth exceeds maximum allowed limit (100)';
  assertRefused(nested(100), 'INVALID_ARG', `Unable to parse 'data': ${text}`);
  assertRefused(nested(100).replace('FP32', 'BYTES'), 'INVALID_ARG', text);
});

test('BYTES keep their bytes, escapes resolved', () => {
  const bytes = dataOf(withData('BYTES', '[1,4]', '["a",["b\\u00e9\\/"],"","\\ud83d\\ude00"]'));
  const expected = ['a', 'bé/', '', '\u{1f600}'].map((text) => {
    const content = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(content.length);
    return Buffer.concat([length, content]);
  });
  assert.deepEqual(bytes, Buffer.concat(expected));
  const text = 'Unable to parse JSON bytes array: attempt to access JSON non-string as string';
  assertRefused(withData('BYTES', '[1]', '[1]'), 'INTERNAL', text);
  assertRefused(withData('BYTES', '[1]', '[null]'), 'INTERNAL', text);
  assert.equal(dataOf(withData('BYTES', '[9]', `[${'"",'.repeat(8)}""]`)).length, 36);
});

test('wrong types, counts and datatypes are named as Triton names them', () => {
  const data = "Unable to parse 'data': ";
  const shape = `${data}Shape does not match true shape of 'data' field`;
  assertRefused(withData('FP32', '[2,3]', '[1,1,1]'), 'INTERNAL', shape);
  assertRefused(withData('FP32', '[2,3]', '[]'), 'INTERNAL', shape);
  assertRefused(withData('FP32', '[2]', '[1,1,1]'), 'INTERNAL', shape);
  assertRefused(
    withData('FP32', '[2]', '[1,"x"]'),
    'INTERNAL',
    `${data}attempt to access JSON non-number as double`,
  );
  assertRefused(
    withData('FP32', '[2]', '[1,{"a":1}]'),
    'INTERNAL',
    `${data}attempt to access JSON non-number as double`,
  );
  assertRefused(withData('FP32', '[2]', '5'), 'INTERNAL', `${data}attempt to access JSON non-array as array`);
  assertRefused(
    withData('FP32', '[2]', '{"b":1}'),
    'INTERNAL',
    `${data}attempt to access JSON non-array as array`,
  );
  const signed = `${data}attempt to access JSON non-signed-integer as signed-integer`;
  assertRefused(withData('INT32', '[1,2]', '[1.0,2]'), 'INTERNAL', signed);
  assertRefused(withData('INT64', '[1]', '[9223372036854775808]'), 'INTERNAL', signed);
  const unsigned = `${data}attempt to access JSON non-unsigned-integer as unsigned-integer`;
  assertRefused(withData('UINT8', '[1]', '[-1]'), 'INTERNAL', unsigned);
  assertRefused(withData('UINT64', '[1]', '[18446744073709551616]'), 'INTERNAL', unsigned);
  assertRefused(
    withData('BOOL', '[1]', '[1]'),
    'INTERNAL',
    `${data}attempt to access JSON non-boolean as boolean`,
  );
  assertRefused(withData('fp32', '[1]', '[1]'), 'INVALID_ARG', 'invalid datatype for input X');
  assertRefused(
    withData('FP16', '[1]', '[1]'),
    'INVALID_ARG',
    'receiving FP16 data via JSON is not supported. Please use the binary data format for input X',
  );
});

test('shapes: types, zero sizes and overflow (ours instead of the backend’s own failure)', () => {
  const shape = "Unable to parse 'shape': attempt to access ";
  assertRefused(
    withData('FP32', '[1,16.0]', '[1]'),
    'INTERNAL',
    `${shape}JSON non-unsigned-integer as unsigned-integer`,
  );
  assertRefused(withData('FP32', '6', '[1]'), 'INTERNAL', `${shape}JSON non-array as array`);
  assert.equal(dataOf(withData('FP32', '[1,0]', '[1,2]')).length, 0);
  assertRefused(
    withData('FP32', '[4,4294967296,4294967296]', '[1]'),
    'INVALID_ARG',
    "invalid shape for input 'X': shape [4,4294967296,4294967296] causes total element count to exceed maximum size of 9223372036854775807",
  );
  assertRefused(
    withData('FP32', '[4611686018427387904]', '[1]'),
    'INVALID_ARG',
    "byte size overflow for input 'X': element count (4611686018427387904) * data type size (4) exceeds maximum allowed size (9223372036854775807)",
  );
  assertRefused(
    withData('FP32', '[1000000000]', '[1]'),
    'INVALID_ARG',
    "JSON input 'X' has a byte_size (4000000000 bytes) that exceeds the maximum allowed value of 67108864 bytes. Use --http-max-input-size to increase the limit.",
  );
});
