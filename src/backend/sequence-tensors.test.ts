import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelConfig, SequenceControl } from '../domain/model-config.ts';
import { sequenceInputs } from './sequence-tensors.ts';

function control(name: string, fields: Partial<SequenceControl>) {
  const none = { int32_false_true: [], fp32_false_true: [], bool_false_true: [], data_type: 'TYPE_INVALID' };
  return { name, control: [{ kind: 'CONTROL_SEQUENCE_READY', ...none, ...fields }] };
}

test('controls come first, then states, each with the datatype in which it is fed', () => {
  const sequence_batching = {
    control_input: [
      control('I', { int32_false_true: [0, 1] }),
      control('F', { fp32_false_true: [0, 1] }),
      control('B', { bool_false_true: [false, true] }),
      control('ID', { kind: 'CONTROL_SEQUENCE_CORRID', data_type: 'TYPE_UINT64' }),
    ],
    state: [{ input_name: 'S', data_type: 'TYPE_FP16' }],
  };
  assert.deepEqual(
    sequenceInputs({ sequence_batching } as unknown as ModelConfig).map(({ name, dataType }) => [
      name,
      dataType,
    ]),
    [
      ['I', 'TYPE_INT32'],
      ['F', 'TYPE_FP32'],
      ['B', 'TYPE_BOOL'],
      ['ID', 'TYPE_UINT64'],
      ['S', 'TYPE_FP16'],
    ],
  );
});

test('a model without sequences has none', () => {
  assert.deepEqual(sequenceInputs({} as ModelConfig), []);
});
