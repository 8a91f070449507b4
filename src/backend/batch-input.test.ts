import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeBatchInput } from './batch-input.ts';

const SHAPES = [
  [1, 3],
  [2, 2],
  [1, 1],
];

function make(kind: string, dataType = 'TYPE_INT32'): { shape: readonly number[]; values: number[] } {
  const entry = { kind, target_name: ['T'], data_type: dataType, source_input: ['X'] };
  const { shape, data } = makeBatchInput(entry, SHAPES);
  return { shape, values: [...data] };
}

test('element counts, one per request', () => {
  assert.deepEqual(make('BATCH_ELEMENT_COUNT'), { shape: [3], values: [3, 4, 1] });
});

test('accumulated element counts, with and without the leading zero', () => {
  assert.deepEqual(make('BATCH_ACCUMULATED_ELEMENT_COUNT'), { shape: [3], values: [3, 7, 8] });
  assert.deepEqual(make('BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO'), { shape: [4], values: [0, 3, 7, 8] });
});

test('the largest element count becomes the shape', () => {
  assert.deepEqual(make('BATCH_MAX_ELEMENT_COUNT_AS_SHAPE').shape, [4]);
});

test('item shapes, one row per item of the batch', () => {
  assert.deepEqual(make('BATCH_ITEM_SHAPE'), { shape: [4, 1], values: [3, 2, 2, 1] });
  assert.deepEqual(make('BATCH_ITEM_SHAPE_FLATTEN'), { shape: [4], values: [3, 2, 2, 1] });
});

test('FP32 when the config asks for it', () => {
  const entry = {
    kind: 'BATCH_ELEMENT_COUNT',
    target_name: ['T'],
    data_type: 'TYPE_FP32',
    source_input: ['X'],
  };
  const tensor = makeBatchInput(entry, SHAPES);
  assert.equal(tensor.datatype, 'FP32');
  assert.ok(tensor.data instanceof Float32Array);
});

test('an unknown kind is refused', () => {
  assert.throws(() => make('BATCH_OTHER'), /unsupported batch input kind/);
});
