// Which backend a model gets from its config, its files and its name.

import assert from 'node:assert/strict';
import test from 'node:test';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { completeBackend, type VersionEntry } from './complete-backend.ts';

const file = (name: string): VersionEntry => ({ name, isDirectory: false });
const directory = (name: string): VersionEntry => ({ name, isDirectory: true });

function complete(text: string, versionEntries?: VersionEntry[], modelName = 'm'): string[] {
  const before = parseModelConfig(text);
  const copy = structuredClone(before);
  const config = completeBackend(before, { modelName, versionEntries });
  assert.deepEqual(before, copy, 'the argument must stay as it was');
  return [config.name, config.backend, config.platform, config.default_model_filename];
}

test('a backend fills its platform and file name', () => {
  assert.deepEqual(complete('backend: "onnxruntime"'), [
    'm',
    'onnxruntime',
    'onnxruntime_onnx',
    'model.onnx',
  ]);
  assert.deepEqual(complete('backend: "python"'), ['m', 'python', '', 'model.py']);
  assert.deepEqual(complete('backend: "openvino"'), ['m', 'openvino', '', 'model.xml']);
  assert.deepEqual(complete('backend: "tensorrt"'), ['m', 'tensorrt', 'tensorrt_plan', 'model.plan']);
  assert.deepEqual(complete('backend: "pytorch"'), ['m', 'pytorch', 'pytorch_libtorch', 'model.pt']);
  assert.deepEqual(complete('backend: "vllm"', [file('model.json')]), ['m', 'vllm', '', '']);
});

test('what the config gives is kept', () => {
  assert.deepEqual(complete('name: "n" backend: "onnxruntime" default_model_filename: "other.onnx"'), [
    'n',
    'onnxruntime',
    'onnxruntime_onnx',
    'other.onnx',
  ]);
});

test('a platform or a file name tells the backend', () => {
  assert.deepEqual(complete('platform: "onnxruntime_onnx"')[1], 'onnxruntime');
  assert.deepEqual(complete('platform: "tensorflow_graphdef"'), [
    'm',
    'tensorflow',
    'tensorflow_graphdef',
    'model.graphdef',
  ]);
  assert.deepEqual(complete('platform: "libtorch"'), ['m', 'pytorch', 'libtorch', 'model.pt']);
  assert.deepEqual(complete('platform: "torch_aoti"'), ['m', 'pytorch', 'torch_aoti', 'model.pt2']);
  assert.deepEqual(complete('default_model_filename: "model.py"')[1], 'python');
});

test('the version directory tells the backend, in the order of Triton', () => {
  assert.deepEqual(complete('', [file('model.py'), file('model.onnx')])[1], 'onnxruntime');
  assert.deepEqual(complete('', [directory('model.onnx')])[1], 'onnxruntime');
  assert.deepEqual(complete('', [directory('model.savedmodel'), file('model.onnx')])[1], 'tensorflow');
  assert.deepEqual(complete('backend: "pytorch"', [file('model.pt2')])[2], 'torch_aoti');
  assert.deepEqual(complete('', [directory('model.plan'), file('model.py')])[1], 'python');
});

test('a file in JavaScript or TypeScript is a model of the node backend, compiled ones first', () => {
  assert.deepEqual(complete('backend: "node"'), ['m', 'node', '', 'model.js']);
  assert.deepEqual(complete('backend: "node"', [file('model.mjs')])[3], 'model.mjs');
  for (const name of ['model.js', 'model.mjs', 'model.cjs', 'model.ts'])
    assert.deepEqual(complete('', [file(name)]), ['m', 'node', '', name]);
  assert.deepEqual(complete('', [file('model.ts'), file('model.js')])[3], 'model.js');
  assert.deepEqual(complete('', [file('model.js'), file('model.py')])[1], 'python');
  assert.deepEqual(complete('default_model_filename: "model.ts"')[1], 'node');
});

test('an ensemble has no backend', () => {
  assert.deepEqual(complete('platform: "ensemble"', []), ['m', '', 'ensemble', '']);
});

test('without any hint the model name must carry the backend', () => {
  assert.deepEqual(complete('', [], 'copy.identity'), ['copy.identity', 'identity', '', 'model.identity']);
  assert.throws(() => complete('max_batch_size: 1'), {
    code: 'INVALID_ARG',
    message:
      "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. " +
      "Expected model name of the form 'model.<backend_name>'.",
  });
});
