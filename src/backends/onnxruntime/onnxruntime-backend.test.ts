import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadContext } from '../../backend/sdk.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { onnxruntimeBackend } from './onnxruntime-backend.ts';
import {
  makeConfig,
  makeContext,
  makeInput,
  makeOutput,
  startModel,
  withVersionDirectory,
} from './test-fixture.ts';

const X = makeInput('X', 'TYPE_FP32', 2);
const Y = makeOutput('Y', 'TYPE_FP32', 2);
const AFFINE: Partial<ModelConfig> = { max_batch_size: 4, input: [X], output: [Y] };

async function startError(config: Partial<ModelConfig>, context: Partial<LoadContext> = {}): Promise<string> {
  try {
    const { instance } = await startModel('AFFINE', { ...AFFINE, ...config }, context);
    instance.close();
    return 'no error';
  } catch (error) {
    return (error as { describe(): string }).describe();
  }
}

test('completes max_batch_size, dynamic batching and the tensors in the order that Triton shows', async () => {
  const { config, instance } = await startModel('AUTO_BATCH');
  instance.close();
  assert.equal(config.max_batch_size, 4);
  assert.deepEqual(config.dynamic_batching?.preferred_batch_size, []);
  assert.deepEqual(config.input, [
    makeInput('name_in', 'TYPE_STRING', -1),
    makeInput('a_in', 'TYPE_FP32', 3),
    makeInput('b_in', 'TYPE_FP32', 3),
  ]);
  assert.deepEqual(config.output, [
    makeOutput('name_out', 'TYPE_STRING', -1),
    makeOutput('sum', 'TYPE_FP32', 3),
  ]);
});

test('the backend setting decides the completed batch size', async () => {
  const settings = { backendConfig: { 'default-max-batch-size': '1' } };
  const { config, instance } = await startModel('AUTO_BATCH', {}, settings);
  instance.close();
  assert.equal(config.max_batch_size, 1);
  assert.equal(config.dynamic_batching, undefined);
});

test('a graph without a variable first dimension does not batch', async () => {
  const { config, instance } = await startModel('AUTO_NOBATCH');
  instance.close();
  assert.equal(config.max_batch_size, 0);
  assert.deepEqual(config.output, [makeOutput('C', 'TYPE_INT64', 2, 2)]);
  await assert.rejects(startModel('AUTO_NOBATCH', { max_batch_size: 2 }), {
    code: 'INVALID_ARG',
    message:
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
  });
});

test('a batched scalar becomes dims [1] with an empty reshape', async () => {
  const { config, instance } = await startModel('RESHAPE_SCALAR');
  instance.close();
  assert.deepEqual(config.input, [{ ...makeInput('INPUT0', 'TYPE_FP32', 1), reshape: { shape: [] } }]);
});

test('a complete config stays as it is, and so does any when completion is off', async () => {
  const { config, instance } = await startModel('AFFINE', AFFINE);
  instance.close();
  assert.equal(config.dynamic_batching, undefined);
  assert.equal(
    await startError({ input: [], output: [] }, { isAutoComplete: false }),
    "Invalid argument: unable to load model 'm', configuration expects 0 inputs, model provides 1",
  );
});

test('load checks speak in the words of Triton', async () => {
  const cases: [Partial<ModelConfig>, string][] = [
    [
      { input: [makeInput('X', 'TYPE_INT32', 2)] },
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'X', model provides TYPE_FP32",
    ],
    [{ input: [makeInput('XX', 'TYPE_FP32', 2)] }, "unexpected inference input 'XX', allowed inputs are: X"],
    [
      { output: [makeOutput('YY', 'TYPE_FP32', 2)] },
      "unexpected inference output 'YY', allowed outputs are: Y",
    ],
    [
      { input: [X, makeInput('Z', 'TYPE_FP32', 2)] },
      "unable to load model 'm', configuration expects 2 inputs, model provides 1",
    ],
    [
      { input: [makeInput('X', 'TYPE_FP32', 1, 2)] },
      "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies " +
        '3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor ' +
        'shape, making complete shape [-1,1,2])',
    ],
    [
      { max_batch_size: 0 },
      "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies " +
        '1 dimensions (shape [2])',
    ],
    [
      { input: [{ ...X, optional: true }] },
      "unable to load model 'm', configuration expects 0 inputs, model provides 1",
    ],
    [
      { parameters: { execution_mode: { string_value: '2' } } },
      'Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 2 .',
    ],
  ];
  for (const [config, message] of cases)
    assert.equal(await startError(config), `Invalid argument: ${message}`);
});

test('session parameters of a config are taken', async () => {
  const parameters = Object.fromEntries(
    Object.entries({
      intra_op_thread_count: '1',
      inter_op_thread_count: '1',
      execution_mode: '1',
      enable_mem_arena: '0',
      enable_mem_pattern: '0',
      'session.disable_prepacking': '1',
      'memory.enable_memory_arena_shrinkage': '',
    }).map(([key, value]) => [key, { string_value: value }]),
  );
  const optimization = {
    graph: { level: 2 },
    priority: 'PRIORITY_DEFAULT',
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
  };
  assert.equal(await startError({ parameters, optimization }), 'no error');
});

test('a missing model file and a broken one fail as in Triton', async () => {
  await withVersionDirectory(undefined, async (directory) => {
    await assert.rejects(onnxruntimeBackend.load(makeContext(directory)), {
      code: 'INTERNAL',
      message: `failed to stat file ${directory}/model.onnx`,
    });
  });
  const file = { name: 'model.onnx', bytes: Buffer.from('this is not a protobuf') };
  await withVersionDirectory(file, async (directory) => {
    await assert.rejects(onnxruntimeBackend.load(makeContext(directory)), {
      code: 'INTERNAL',
      message: `onnx runtime error 7: Load model from ${directory}/model.onnx failed:Protobuf parsing failed.`,
    });
  });
});

test('an output that is no tensor is refused', async () => {
  await assert.rejects(startModel('SEQUENCE_OUT'), {
    code: 'UNSUPPORTED',
    message: "Unsupported ONNX Type 'ONNX_TYPE_SEQUENCE' for I/O 'S', expected 'ONNX_TYPE_TENSOR'.",
  });
});

test('a library that is not there is named, with the way out', async () => {
  const context = makeContext('.', {
    config: makeConfig({}),
    backendConfig: { 'library-path': '/nowhere/libonnxruntime.so' },
  });
  await assert.rejects(onnxruntimeBackend.load(context), {
    code: 'UNAVAILABLE',
    message:
      'ONNX Runtime library not found at /nowhere/libonnxruntime.so; run npm install, or name one with ' +
      '--backend-config=onnxruntime,library-path=<file or directory>',
  });
});

test('a provider that the library lacks is named, with those that it has', async () => {
  const optimization = {
    execution_accelerators: {
      gpu_execution_accelerator: [],
      cpu_execution_accelerator: [{ name: 'openvino', parameters: {} }],
    },
    priority: 'PRIORITY_DEFAULT',
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
  };
  assert.match(
    await startError({ optimization }),
    /^Invalid argument: OpenVINOExecutionProvider is requested, but ONNX Runtime .* has only: .*CPUExecutionProvider/,
  );
});
