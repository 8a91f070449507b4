// The tensors that a llama model's config is given, and what it may not say.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import { completeConfig, INPUTS, OUTPUTS } from './complete-config.ts';

function makeConfig(fields: Partial<ModelConfig> = {}): ModelConfig {
  return { ...(createMessage('ModelConfig') as unknown as ModelConfig), name: 'smol', ...fields };
}

function makeInput(name: string, type: ModelInput['data_type']): ModelInput {
  return { ...createMessage('ModelInput'), name, data_type: type } as unknown as ModelInput;
}

describe('the config of a llama model', () => {
  test('an empty one gets all tensors, optional, and is decoupled', () => {
    const config = completeConfig(makeConfig());
    assert.deepEqual(
      config.input.map(({ name }) => name),
      INPUTS.map(({ name }) => name),
    );
    assert.deepEqual(
      config.output.map(({ name }) => name),
      OUTPUTS.map(({ name }) => name),
    );
    assert.ok(config.input.every(({ optional }) => optional));
    assert.deepEqual(config.model_transaction_policy, { decoupled: true });
    assert.deepEqual(config.input.find(({ name }) => name === 'prompt_token_ids')?.dims, [-1]);
  });

  test('what is there already stays, in its place, and only the rest is added', () => {
    const stream = makeInput('stream', 'TYPE_BOOL');
    const config = completeConfig(makeConfig({ input: [stream] }));
    assert.equal(config.input[0], stream);
    assert.equal(config.input.length, INPUTS.length);
    assert.deepEqual(completeConfig(config), config);
  });

  test('foreign tensors, wrong types, batches and a model that is not decoupled are refused', () => {
    const foreign = makeConfig({ input: [makeInput('INPUT0', 'TYPE_FP32')] });
    assert.throws(
      () => completeConfig(foreign),
      /model 'smol' has input 'INPUT0', which llama models do not have/,
    );
    const wrong = makeConfig({ input: [makeInput('text_input', 'TYPE_FP32')] });
    assert.throws(() => completeConfig(wrong), /input 'text_input': must be TYPE_STRING, not TYPE_FP32/);
    const output = {
      ...createMessage('ModelOutput'),
      name: 'x',
      data_type: 'TYPE_FP32',
    } as unknown as ModelOutput;
    assert.throws(() => completeConfig(makeConfig({ output: [output] })), /has output 'x'/);
    assert.throws(
      () => completeConfig(makeConfig({ max_batch_size: 8 })),
      /max_batch_size 8; a llama model batches by itself/,
    );
    const coupled = makeConfig({ model_transaction_policy: { decoupled: false } });
    assert.throws(() => completeConfig(coupled), /must be decoupled/);
  });
});
