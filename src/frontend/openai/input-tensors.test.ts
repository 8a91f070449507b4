import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import { ApiError } from './api-error.ts';
import { packStrings, tensorOf, unpackBytes, unpackIntegers } from './input-tensors.ts';

const spec = (datatype: DataType, dims: number[]): TensorSpec => ({
  name: 'x',
  datatype,
  dims,
  optional: true,
});
const PLAIN = { maxBatchSize: 0 };
const BATCHED = { maxBatchSize: 8 };

describe('an input tensor', () => {
  test('has the shape that the model declares', () => {
    const shape = (model: typeof PLAIN, dims: number[], count: number) =>
      tensorOf(model, spec('INT32', dims), { values: Array(count).fill(1), param: 'p' }).shape;
    assert.deepEqual(shape(PLAIN, [1], 1), [1]);
    assert.deepEqual(shape(BATCHED, [1], 1), [1, 1]);
    assert.deepEqual(shape(BATCHED, [-1], 3), [1, 3]);
    assert.deepEqual(shape(PLAIN, [-1, -1], 3), [1, 3]);
    assert.deepEqual(shape(PLAIN, [1, -1], 0), [1, 0]);
    assert.deepEqual(shape(PLAIN, [], 1), []);
    assert.throws(
      () => shape(PLAIN, [1], 2),
      (error) => error instanceof ApiError && error.detail.param === 'p',
    );
  });

  test('has the datatype that the model declares', () => {
    const hex = (datatype: DataType, value: number | bigint | string | boolean) =>
      tensorOf(PLAIN, spec(datatype, [1]), { values: [value], param: 'p' }).data[0]!.toString('hex');
    assert.equal(hex('BOOL', true), '01');
    assert.equal(hex('BOOL', false), '00');
    assert.equal(hex('INT32', -2), 'feffffff');
    assert.equal(hex('UINT64', -1n), 'ffffffffffffffff');
    assert.equal(hex('INT64', 5), '0500000000000000');
    assert.equal(hex('FP32', 0.5), '0000003f');
    assert.equal(hex('FP64', 1), '000000000000f03f');
    assert.equal(hex('UINT16', 258), '0201');
    assert.equal(hex('BYTES', 'é'), '02000000c3a9');
    assert.equal(hex('BYTES', 5), '0100000035');
    assert.throws(() => hex('FP16', 1), /datatype FP16/);
  });
});

describe('an output tensor', () => {
  const output = (datatype: DataType, data: Buffer) => ({
    name: 'y',
    datatype,
    shape: [],
    // In two pieces, as it may arrive.
    data: [data.subarray(0, 3), data.subarray(3)],
    byteLength: data.length,
  });

  test('of texts', () => {
    const texts = ['', 'a', 'wörld'];
    assert.deepEqual(unpackBytes(output('BYTES', packStrings(texts))).map(String), texts);
    assert.throws(() => unpackBytes(output('BYTES', packStrings(['abc']).subarray(0, 6))), /cut off/);
  });

  test('of integers', () => {
    assert.deepEqual(unpackIntegers(output('INT32', Buffer.from('01000000ffffffff', 'hex'))), [1, -1]);
    assert.deepEqual(unpackIntegers(output('UINT32', Buffer.from('ffffffff', 'hex'))), [4294967295]);
    assert.deepEqual(unpackIntegers(output('INT64', Buffer.from('ffffffffffffffff', 'hex'))), [-1]);
    assert.deepEqual(unpackIntegers(output('UINT64', Buffer.from('0700000000000000', 'hex'))), [7]);
    assert.deepEqual(unpackIntegers(output('FP32', Buffer.alloc(4))), []);
  });
});
