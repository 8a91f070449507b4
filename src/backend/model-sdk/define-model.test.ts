// What an author may write, checked by the compiler: every form of execute, and a datatype that is none.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineModel, ModelError, Tensor, type TensorSettings } from './index.ts';

test('defineModel gives back what it was given, whatever the form of execute', () => {
  const response = { outputs: [Tensor.from('Y', Float32Array.of(1))] };
  const models = [
    defineModel({ execute: (requests) => requests.map(() => response) }),
    defineModel({ execute: async (requests) => requests.map(() => new ModelError('UNAVAILABLE', 'no')) }),
    defineModel({ execute: (requests) => requests.map(async () => response) }),
    defineModel({
      async execute(requests) {
        for (const request of requests) await request.sender().send(response);
      },
    }),
    defineModel({
      execute: (requests) =>
        requests.map(async (request) => {
          await request.sender().send(response);
        }),
    }),
  ];
  for (const model of models) assert.equal(typeof model.execute, 'function');
  const definition = { execute: () => [] };
  assert.equal(defineModel(definition), definition);
});

test('the compiler refuses a datatype that is none', () => {
  // @ts-expect-error STRING is the name in a config.pbtxt; here it is BYTES.
  const input: TensorSettings = { name: 'X', datatype: 'STRING', dims: [1] };
  assert.ok(defineModel({ config: { inputs: [input] }, execute() {} }));
});
