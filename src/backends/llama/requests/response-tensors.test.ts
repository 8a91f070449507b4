// The bytes of output tensors, and which of them are left out.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseTensors } from './response-tensors.ts';

const INDEXES = new Map([
  ['text_output', 0],
  ['num_output_tokens', 2],
  ['cumulative_logprob', 3],
]);

test('texts, counts and floats in the layout of the protocol', () => {
  const { outputs } = new ResponseTensors(INDEXES, [])
    .texts('text_output', ['é', ''])
    .uint32s('num_output_tokens', [1, 4_000_000_000])
    .floats('cumulative_logprob', [-1.5]);
  assert.deepEqual(
    outputs.map(({ index, shape }) => ({ index, shape })),
    [
      { index: 0, shape: [2] },
      { index: 2, shape: [2] },
      { index: 3, shape: [1] },
    ],
  );
  assert.deepEqual(outputs[0]!.data, Buffer.from([2, 0, 0, 0, 0xc3, 0xa9, 0, 0, 0, 0]));
  assert.deepEqual([outputs[1]!.data.readUInt32LE(0), outputs[1]!.data.readUInt32LE(4)], [1, 4_000_000_000]);
  assert.equal(outputs[2]!.data.readFloatLE(0), -1.5);
});

test('what was not asked for, or is not in the config, is left out', () => {
  const { outputs } = new ResponseTensors(INDEXES, [2])
    .texts('text_output', ['x'])
    .texts('logprobs', ['x'])
    .uint32s('num_output_tokens', [3]);
  assert.deepEqual(
    outputs.map(({ index }) => index),
    [2],
  );
});
