// Tensors as models make and read them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, type TensorData } from './tensor.ts';

test('the datatype follows from the array, the shape from its length', () => {
  const cases: readonly (readonly [TensorData, string])[] = [
    [Uint8Array.of(1), 'UINT8'],
    [Buffer.of(1), 'UINT8'],
    [Int8Array.of(1), 'INT8'],
    [Uint16Array.of(1), 'UINT16'],
    [Int16Array.of(1), 'INT16'],
    [Uint32Array.of(1), 'UINT32'],
    [Int32Array.of(1), 'INT32'],
    [BigUint64Array.of(1n), 'UINT64'],
    [BigInt64Array.of(1n), 'INT64'],
    [Float32Array.of(1), 'FP32'],
    [Float64Array.of(1), 'FP64'],
  ];
  for (const [data, datatype] of cases) {
    const tensor = Tensor.from('T', data);
    assert.equal(tensor.datatype, datatype);
    assert.deepEqual(tensor.shape, [1]);
    assert.equal(Number(tensor.data[0]), 1);
  }
});

test('a view on the bytes, without a copy', () => {
  const values = Float32Array.of(0, 1, 2, 3);
  const tensor = Tensor.from('T', values.subarray(1, 3), [1, 2]);
  assert.equal(tensor.bytes.buffer, values.buffer);
  assert.equal(tensor.data.buffer, values.buffer);
  assert.deepEqual([...tensor.dataAs('FP32')], [1, 2]);
  assert.equal(tensor.data, tensor.data);
});

test('bytes at an odd place are read all the same', () => {
  const bytes = new Uint8Array(9);
  bytes.set(new Uint8Array(Float32Array.of(1.5, -2).buffer), 1);
  const tensor = new Tensor('T', 'FP32', [2], bytes.subarray(1));
  assert.deepEqual([...tensor.dataAs('FP32')], [1.5, -2]);
});

test('half floats and booleans are named', () => {
  assert.equal(Tensor.from('T', Uint16Array.of(0x3c00), [1], 'FP16').datatype, 'FP16');
  assert.equal(Tensor.from('T', Uint16Array.of(0x3f80), [1], 'BF16').dataAs('BF16')[0], 0x3f80);
  assert.equal(Tensor.from('T', Uint8Array.of(1, 0), [2], 'BOOL').datatype, 'BOOL');
  assert.throws(() => Tensor.from('T', Uint8Array.of(1), [1], 'FP16'), /needs elements of 2 bytes, not of 1/);
});

test('texts and other elements of BYTES come back as they were', () => {
  const texts = ['', 'a', 'é漢😀', 'x'.repeat(1000)];
  const tensor = Tensor.fromStrings('T', texts, [2, 2]);
  assert.deepEqual(tensor.strings(), texts);
  assert.deepEqual(tensor.shape, [2, 2]);
  const elements = [Buffer.of(255, 0), Buffer.alloc(0)];
  const binary = Tensor.fromElements('T', elements);
  assert.deepEqual(binary.elements(), elements);
  assert.deepEqual([...binary.bytes], [2, 0, 0, 0, 255, 0, 0, 0, 0, 0]);
});

test('what does not fit is refused', () => {
  assert.throws(
    () => Tensor.from('T', Float32Array.of(1), [1, 2]),
    new RangeError("Tensor 'T' of shape [1,2] needs 2 elements and has 1"),
  );
  assert.throws(() => Tensor.fromStrings('T', ['a'], [2]), RangeError);
  assert.throws(() => Tensor.from('T', [1, 2] as unknown as TensorData), /needs a typed array, not Array/);
  assert.throws(() => Tensor.from('T', Float32Array.of(1)).dataAs('INT32'), /is of FP32, not INT32/);
  assert.throws(() => Tensor.from('T', Float32Array.of(1)).strings(), /is of FP32, not BYTES/);
});

test('another name and another shape share the bytes', () => {
  const tensor = Tensor.from('T', Float32Array.of(1, 2, 3, 4), [1, 4]);
  const other = tensor.rename('U').reshape([2, 2]);
  assert.deepEqual([other.name, other.shape, tensor.name], ['U', [2, 2], 'T']);
  assert.equal(other.bytes, tensor.bytes);
  assert.throws(() => tensor.reshape([3]), RangeError);
});
