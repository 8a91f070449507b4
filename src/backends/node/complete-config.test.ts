// What a model's own definition adds to its config, and what it leaves alone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelSettings } from '../../backend/model-sdk/define-model.ts';
import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { completeConfig } from './complete-config.ts';

const BARE: ModelConfig = { ...(createMessage('ModelConfig') as unknown as ModelConfig), name: 'm' };
const SETTINGS: ModelSettings = {
  maxBatchSize: 8,
  inputs: [{ name: 'TEXT', datatype: 'BYTES', dims: [1], optional: true }],
  outputs: [{ name: 'Y', datatype: 'FP32', dims: [-1, 2] }],
  dynamicBatching: true,
  decoupled: true,
};

test('a bare config gets everything', () => {
  const config = completeConfig(BARE, SETTINGS);
  assert.equal(config.max_batch_size, 8);
  const { name, data_type, dims, optional } = config.input[0]!;
  assert.deepEqual([name, data_type, dims, optional], ['TEXT', 'TYPE_STRING', [1], true]);
  assert.deepEqual([config.output[0]?.data_type, config.output[0]?.dims], ['TYPE_FP32', [-1, 2]]);
  assert.deepEqual(config.dynamic_batching?.preferred_batch_size, []);
  assert.deepEqual(config.model_transaction_policy, { decoupled: true });
  assert.equal(BARE.input.length, 0);
});

test('what the config says stays', () => {
  const given = {
    ...completeConfig(BARE, { ...SETTINGS, decoupled: false, dynamicBatching: { maxQueueDelayUs: 5 } }),
    max_batch_size: 0,
  };
  assert.equal(given.dynamic_batching?.max_queue_delay_microseconds, 5);
  assert.deepEqual(completeConfig(given, SETTINGS), given);
});

test('no batcher without batches', () => {
  assert.equal(completeConfig(BARE, { dynamicBatching: true }).dynamic_batching, undefined);
});

test('settings that mean nothing are refused', () => {
  const withInput = (input: object) => ({ inputs: [input] }) as ModelSettings;
  const wrong: readonly (readonly [ModelSettings, RegExp])[] = [
    [withInput({ name: 'X', datatype: 'STRING', dims: [1] }), /tensor 'X' .* has datatype 'STRING'/],
    [withInput({ name: 'X', datatype: 'FP32' }), /must have dims/],
    [withInput({ name: 'X', datatype: 'FP32', dims: ['a'] }), /must have dims/],
    [{ maxBatchSize: -1 }, /has maxBatchSize -1/],
  ];
  for (const [settings, message] of wrong) {
    assert.throws(() => completeConfig(BARE, settings), { code: 'INVALID_ARG', message });
  }
});
