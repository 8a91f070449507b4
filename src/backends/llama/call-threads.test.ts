// From how many threads libllama is called.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelConfig } from '../../domain/model-config.ts';
import { callThreadCount } from './call-threads.ts';

function count(parameters: Readonly<Record<string, string>>, kind = 'KIND_CPU'): number {
  const values = Object.entries(parameters).map(([name, string_value]) => [name, { string_value }]);
  return callThreadCount({
    parameters: Object.fromEntries(values),
    instance_group: [{ kind }],
  } as unknown as ModelConfig);
}

test('a CPU is called from one thread, a GPU with all layers from as many as it may have contexts', () => {
  assert.equal(count({}), 1);
  assert.equal(count({}, 'KIND_GPU'), 8);
  assert.equal(count({}, 'KIND_MODEL'), 8);
  assert.equal(count({ gpu_layers: '-1' }), 8);
  assert.equal(count({ gpu_layers: '99' }), 8);
  assert.equal(count({ gpu_layers: '12' }, 'KIND_GPU'), 1, 'the CPU computes the other layers');
  assert.equal(count({ gpu_layers: '0' }, 'KIND_GPU'), 1);
});

test('with a number of contexts it is that', () => {
  assert.equal(count({ contexts: '3' }), 3);
  assert.equal(count({ contexts: '1' }, 'KIND_GPU'), 1);
  assert.equal(count({ contexts: '5000' }), 8, 'the model says what is wrong with it');
  assert.equal(count({ contexts: 'many' }), 1);
});
