// Unit tests of raw binary requests and of the header that announces them, from a recorded Triton 2.51.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import type { ModelView } from '../../domain/model-view.ts';
import { contiguous } from '../../domain/tensor.ts';
import { type DecodedInferRequest, decodeInferRequest } from './decode-infer-request.ts';
import { parseHeaderLength } from './header-length.ts';

function modelOf(options: {
  dims?: number[];
  datatype?: DataType;
  maxBatchSize?: number;
  inputs?: number;
}): ModelView {
  const spec = {
    name: 'X',
    datatype: options.datatype ?? 'FP32',
    dims: options.dims ?? [2, 3],
    optional: false,
  };
  return {
    name: 'nobatch',
    version: 1,
    maxBatchSize: options.maxBatchSize ?? 0,
    inputs: Array.from({ length: options.inputs ?? 1 }, () => spec),
    outputs: [],
    isDecoupled: false,
    labelsOf: () => undefined,
  };
}

const NOBATCH = modelOf({});

function decodeRaw(model: ModelView, body: Buffer): DecodedInferRequest {
  return decodeInferRequest({
    body: [body],
    bodyLength: body.length,
    jsonLength: 0,
    model,
    inputBytesMax: 100,
  });
}

test('a raw request deduces name and shape', () => {
  const batched = modelOf({ dims: [-1], maxBatchSize: 8 });
  assert.deepEqual(decodeRaw(batched, Buffer.alloc(16)).request.inputs[0]!.shape, [1, 4]);
  assert.deepEqual(decodeRaw(batched, Buffer.alloc(0)).request.inputs[0]!.shape, [1, 0]);
  assert.deepEqual(decodeRaw(batched, Buffer.alloc(5)).request.inputs[0]!.shape, [1, 1]);
  const fixed = decodeRaw(NOBATCH, Buffer.alloc(24));
  assert.deepEqual(fixed.request.inputs[0]!.shape, [2, 3]);
  assert.equal(fixed.request.isRaw, true);
  assert.equal(fixed.outputs.isBinaryDefault, true);
  const bytes = decodeRaw(modelOf({ dims: [1], datatype: 'BYTES' }), Buffer.from('hi')).request.inputs[0]!;
  assert.deepEqual(contiguous(bytes.data), Buffer.from([2, 0, 0, 0, 0x68, 0x69]));
  const prefix = '[request id: <id_unknown>] ';
  const refused = (model: ModelView, message: string) =>
    assert.throws(() => decodeRaw(model, Buffer.alloc(4)), {
      code: 'INVALID_ARG',
      message: `${prefix}${message}`,
    });
  refused(
    modelOf({ datatype: 'BYTES', dims: [-1] }),
    "For BYTE datatype raw input 'X', the model must have input shape [1]",
  );
  refused(
    modelOf({ dims: [-1, -1] }),
    "The shape of the raw input 'X' can not be deduced because there are more than one variable-sized dimension",
  );
  refused(
    modelOf({ inputs: 3 }),
    "Raw request must only have 1 input (found 1) to be deduced but got 3 inputs in 'nobatch' model configuration",
  );
  assert.throws(() => decodeRaw(NOBATCH, Buffer.alloc(101)), /Raw input has a byte_size \(101 bytes\)/);
});

test('the header length is read as C’s atol reads it', () => {
  assert.equal(parseHeaderLength(undefined, 92), 92);
  assert.equal(parseHeaderLength('abc', 92), 0);
  assert.equal(parseHeaderLength('0x5c', 92), 0);
  assert.equal(parseHeaderLength('92abc', 92), 92);
  for (const value of ['-1', '93', '99999999999']) {
    assert.throws(() => parseHeaderLength(value, 92), {
      code: 'INVALID_ARG',
      message: `inference header size should be in range (0, 92), got: ${value}`,
    });
  }
});
