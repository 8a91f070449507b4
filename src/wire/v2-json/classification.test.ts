// Unit tests of the classification extension, from the recorded answers of a Triton 2.51.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import type { ModelView } from '../../domain/model-view.ts';
import { contiguous, type OutputTensor } from '../../domain/tensor.ts';
import { classify, fixedText } from './classification.ts';

const LABELS = ['apple', 'banana', 'cherry', 'dátil', 'elderberry'];

function modelOf(options: { maxBatchSize: number; labels?: readonly string[] }): ModelView {
  return {
    name: 'classifier',
    version: 1,
    maxBatchSize: options.maxBatchSize,
    inputs: [],
    outputs: [],
    isDecoupled: false,
    labelsOf: () => options.labels,
  };
}

const BATCHED = modelOf({ maxBatchSize: 8, labels: LABELS });

function tensor(datatype: DataType, shape: number[], values: ArrayBufferView): OutputTensor {
  const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return { name: 'SCORES', datatype, shape, data: [data], byteLength: data.length };
}

function stringsOf(output: OutputTensor): string[] {
  const data = contiguous(output.data);
  const strings: string[] = [];
  for (let at = 0; at < data.length; at += 4 + data.readUInt32LE(at)) {
    strings.push(data.toString('utf8', at + 4, at + 4 + data.readUInt32LE(at)));
  }
  return strings;
}

function classesOf(output: OutputTensor, classCount: number, model: ModelView) {
  const classified = classify({ output, classCount, model });
  assert.equal(classified.datatype, 'BYTES');
  return { shape: classified.shape, strings: stringsOf(classified) };
}

test('the best classes with labels, per item of the batch', () => {
  const scores = new Float32Array([0.125, 5.5, -1, 3.25, 9, 5, 4, 3, 2, 1]);
  assert.deepEqual(classesOf(tensor('FP32', [2, 5], scores), 2, BATCHED), {
    shape: [2, 2],
    strings: ['9.000000:4:elderberry', '5.500000:1:banana', '5.000000:0:apple', '4.000000:1:banana'],
  });
  assert.deepEqual(
    classesOf(tensor('FP32', [1, 5], scores.subarray(0, 5)), 9, modelOf({ maxBatchSize: 8 })),
    {
      shape: [1, 5],
      strings: ['9.000000:4', '5.500000:1', '3.250000:3', '0.125000:0', '-1.000000:2'],
    },
  );
});

test('integers are exact and models without batching have no batch dimension', () => {
  const unbatched = modelOf({ maxBatchSize: 0, labels: LABELS });
  assert.deepEqual(classesOf(tensor('INT32', [5], new Int32Array([5, 1, -4, 8, 2])), 3, unbatched), {
    shape: [3],
    strings: ['8:3:dátil', '5:0:apple', '2:4:elderberry'],
  });
  const int64 = tensor('INT64', [1, 3], new BigInt64Array([7n, 9007199254740993n, -5n]));
  assert.deepEqual(classesOf(int64, 3, modelOf({ maxBatchSize: 8 })).strings, [
    '9007199254740993:1',
    '7:0',
    '-5:2',
  ]);
});

test('many classes are sorted as few are', () => {
  const scores = Float32Array.from({ length: 500 }, (_, i) => (i * 7919) % 500);
  const model = modelOf({ maxBatchSize: 0 });
  const many = classesOf(tensor('FP32', [500], scores), 200, model).strings;
  const few = classesOf(tensor('FP32', [500], scores), 64, model).strings;
  assert.deepEqual(many.slice(0, 64), few);
  assert.equal(many.length, 200);
  assert.ok(many[0]!.startsWith('499.000000:'));
});

test('what has no classes: types, zero sizes and too many elements', () => {
  const refused = (datatype: DataType, values: ArrayBufferView) =>
    assert.throws(() => classesOf(tensor(datatype, [1, 2], values), 1, BATCHED), {
      code: 'INVALID_ARG',
      message: `class result not available for output due to unsupported type '${datatype}'`,
    });
  refused('BOOL', new Uint8Array(2));
  refused('FP16', new Uint8Array(4));
  refused('BYTES', new Uint8Array(8));
  assert.deepEqual(classesOf(tensor('FP32', [1, 0], new Float32Array(0)), 2, BATCHED), {
    shape: [1, 0],
    strings: [],
  });
  assert.throws(() => classesOf(tensor('UINT8', [1, 1_000_001], new Uint8Array(1_000_001)), 1, BATCHED), {
    message: 'classification output tensor too large',
  });
});

test('floats have six decimals, as %f prints them', () => {
  const cases: [number, string][] = [
    [9, '9.000000'],
    [-0, '-0.000000'],
    [-0.125, '-0.125000'],
    [0.0078125, '0.007812'],
    [0.0234375, '0.023438'],
    [-0.0078125, '-0.007812'],
    [1e22, '10000000000000000000000.000000'],
    [Number.NaN, 'nan'],
    [Number.NEGATIVE_INFINITY, '-inf'],
    [0.1, '0.100000'],
  ];
  for (const [value, text] of cases) assert.equal(fixedText(value), text);
});
