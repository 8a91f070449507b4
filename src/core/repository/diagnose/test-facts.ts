// What the tests of this folder share: facts about a model, and an error on its way to a person.

import assert from 'node:assert/strict';
import { StatusError } from '../../../domain/status.ts';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import { diagnose } from './diagnose.ts';
import type { FileSignature, ModelFacts } from './explanation.ts';

export const NOTHING = 'the model cannot be loaded';
export const IO = `input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]`;

export function factsOf(configText: string, given: Partial<ModelFacts> = {}): ModelFacts {
  return {
    name: 'm',
    path: 'models/m',
    config: parseModelConfig(configText),
    versions: [1],
    ignored: [],
    modelEntries: ['config.pbtxt', '1'],
    version: 1,
    versionEntries: ['model.onnx'],
    isLfsPointer: false,
    file: undefined,
    backends: ['onnxruntime', 'identity'],
    gpuIds: [],
    ...given,
  };
}

export function signature(given: Partial<FileSignature> = {}): FileSignature {
  return {
    inputs: [{ name: 'X', data_type: 'TYPE_FP32', shape: [-1, 2] }],
    outputs: [{ name: 'Y', data_type: 'TYPE_FP32', shape: [-1, 2] }],
    canBatch: true,
    ...given,
  };
}

export function thrownBy(task: () => unknown): StatusError {
  try {
    task();
  } catch (thrown) {
    return StatusError.from(thrown);
  }
  throw new Error('nothing was thrown');
}

export function read(error: StatusError, facts: ModelFacts): string {
  const { what, why, fix } = diagnose(error, facts);
  assert.notEqual(what, NOTHING, error.message);
  assert.ok(fix.length > 0);
  return [what, why, ...fix].join('\n');
}
