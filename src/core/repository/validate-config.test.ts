// Every rule that a config can break, with the text that Triton gives for it.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { ModelConfig } from '../../domain/model-config.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { validateInstanceGroups, validateIoConfig, validateModelConfig } from './validate-config.ts';

type Case = [text: string, message: string];

function expectMessages(validate: (config: ModelConfig) => void, cases: readonly Case[]): void {
  for (const [text, message] of cases) {
    const config = parseModelConfig(`name: "m" ${text}`);
    assert.throws(() => validate(config), { code: 'INVALID_ARG', message }, text);
    assert.deepEqual(config, parseModelConfig(`name: "m" ${text}`), 'the argument must stay as it was');
  }
}

const ONNX = 'backend: "onnxruntime" platform: "onnxruntime_onnx" max_batch_size: 8';

test('name, backend and batch size', () => {
  assert.throws(() => validateModelConfig(parseModelConfig('')), {
    message: "model configuration must specify 'name'",
  });
  expectMessages(validateModelConfig, [
    ['platform: "odd"', "unexpected platform type 'odd' for m"],
    [
      'platform: "ensemble" backend: "python"',
      "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ],
    [
      'platform: "tensorrt_plan" backend: "onnxruntime"',
      "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
    ],
    ['backend: "tensorflow"', "unexpected 'platform' and 'backend' pair, got:, tensorflow"],
    ['backend: "python" max_batch_size: -1', "'max_batch_size' must be non-negative value for m"],
  ]);
  validateModelConfig(parseModelConfig(`name: "m" ${ONNX}`));
  validateModelConfig(parseModelConfig('name: "m" backend: "mine" platform: "mine too"'));
});

test('dynamic batching', () => {
  const batching = (fields: string) => `${ONNX} dynamic_batching { ${fields} }`;
  const delay = '{ timeout_action: DELAY default_timeout_microseconds: 1 }';
  const noDelay = "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m";
  expectMessages(validateModelConfig, [
    [batching('preferred_batch_size: 0'), 'dynamic batching preferred size must be positive for m'],
    [
      batching('preferred_batch_size: [ 8, 9 ]'),
      'dynamic batching preferred size must be <= max batch size for m',
    ],
    [batching('priority_levels: 2'), 'default priority level must be in range [1, 2] for m'],
    [
      batching('priority_levels: 2 default_priority_level: 3'),
      'default priority level must be in range [1, 2] for m',
    ],
    [
      batching('priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 }'),
      'priority queue policy must have priority level in range [1, 2] for m',
    ],
    [
      batching('priority_levels: 2 default_priority_level: 1 preserve_ordering: true'),
      "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ],
    [batching(`preserve_ordering: true default_queue_policy ${delay}`), noDelay],
    [
      batching(
        `preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value ${delay} }`,
      ),
      noDelay,
    ],
  ]);
});

test('response cache', () => {
  const cache = 'response_cache { enable: true }';
  expectMessages(validateModelConfig, [
    [
      `${ONNX} ${cache} sequence_batching { }`,
      'Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache.',
    ],
    [
      `${ONNX} ${cache} model_transaction_policy { decoupled: true }`,
      "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
    ],
  ]);
  validateModelConfig(parseModelConfig(`name: "m" ${ONNX} response_cache { } sequence_batching { }`));
});

test('metrics', () => {
  const control = (fields: string) => `${ONNX} model_metrics { metric_control { ${fields} } }`;
  expectMessages(validateModelConfig, [
    [control(''), "metric control must specify 'metric_identifier'"],
    [control('metric_identifier { }'), "metric identifier must specify non-empty 'family'"],
    [control('metric_identifier { family: "f" }'), "metric control must specify 'histogram_options'"],
    [
      control('metric_identifier { family: "f" } histogram_options { }'),
      "histogram options must specify non-empty 'buckets'",
    ],
  ]);
});

test('sequence batching', () => {
  const sequence = (fields: string) => `${ONNX} sequence_batching { ${fields} }`;
  const control = (fields: string) => sequence(`control_input { name: "C" control { ${fields} } }`);
  const start = 'for CONTROL_SEQUENCE_START for m';
  const three = "'int32_false_true', 'fp32_false_true'";
  expectMessages(validateModelConfig, [
    [sequence('control_input { }'), 'sequence batching control tensor must have a name for m'],
    [
      sequence('control_input { name: "C" } control_input { name: "C" }'),
      "sequence batching control tensor 'C' is specified for multiple control kinds for m",
    ],
    [
      sequence('control_input { name: "C" control [ { kind: 2 }, { kind: 2 } ] }'),
      'sequence batching specifies multiple CONTROL_SEQUENCE_END tensors for m',
    ],
    [control(''), `sequence batching must specify either ${three} or 'bool_false_true' ${start}`],
    [
      control('int32_false_true: [ 0, 1 ] bool_false_true: [ false, true ]'),
      `sequence batching specifies more than one from ${three} and 'bool_false_true' ${start}`,
    ],
    [
      control('fp32_false_true: [ 0 ]'),
      `sequence batching control 'fp32_false_true' must have exactly 2 entries ${start}`,
    ],
    [
      control('kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ]'),
      `sequence batching must not specify either ${three} or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m`,
    ],
    [
      control('kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32'),
      'unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING',
    ],
    [
      sequence('oldest { preferred_batch_size: 0 }'),
      'sequence batching preferred batch size must be positive for m',
    ],
    [
      sequence('oldest { preferred_batch_size: 9 }'),
      'sequence batching preferred batch size must be <= max batch size for m',
    ],
    [
      sequence('direct { minimum_slot_utilization: 1.5 }'),
      'sequence batching minimum slot utilization must be in range (0.0, 1.0] for m',
    ],
  ]);
  validateModelConfig(
    parseModelConfig(
      `name: "m" ${sequence('direct { } control_input { name: "R" control { kind: 1 fp32_false_true: [ 0, 1 ] } }')}`,
    ),
  );
});

test('ensembles', () => {
  const step = (from: string, to: string) =>
    `step { model_name: "a" input_map { key: "I" value: "${from}" } output_map { key: "O" value: "${to}" } }`;
  const ensemble = (steps: string, rest = '') =>
    `platform: "ensemble" input { name: "IN" } output { name: "OUT" } ensemble_scheduling { ${steps} } ${rest}`;
  const good = `${step('IN', 'MID')} ${step('MID', 'OUT')}`;
  validateModelConfig(parseModelConfig(`name: "m" ${ensemble(good)}`));
  expectMessages(validateModelConfig, [
    [
      `${ONNX} ensemble_scheduling { }`,
      "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble",
    ],
    ['platform: "ensemble"', 'ensemble scheduling must be set for ensemble m whose platform is ensemble'],
    [ensemble(good, 'instance_group { }'), "instance group should not be specified for ensemble 'm'"],
    [ensemble(good, 'optimization { }'), "optimization should not be specified for ensemble 'm'"],
    [ensemble(good, 'model_warmup { }'), "model_warmup can not be specified for ensemble 'm'"],
    [ensemble(''), "must specify 'step' for ensemble 'm'"],
    [ensemble('step { }'), "must specify 'model_name' in step 0 of ensemble 'm'"],
    [ensemble('step { model_name: "a" }'), "must specify 'input_map' in step 0 of ensemble 'm'"],
    [
      ensemble(`${good} step { model_name: "a" input_map { key: "I" value: "IN" } }`),
      "must specify 'output_map' in step 2 of ensemble 'm'",
    ],
    [
      ensemble(`${step('IN', 'OUT')} ${step('IN', 'OUT')}`),
      "ensemble tensor 'OUT' can appear in an output map only once for ensemble 'm' step 1",
    ],
    [ensemble(step('X', 'OUT')), "ensemble input 'IN' for ensemble m' is not used"],
    [ensemble(step('IN', 'X')), "output 'OUT' for ensemble 'm' is not written"],
    [
      ensemble(`${step('IN', 'MID')} ${step('X', 'OUT')}`),
      "output 'OUT' for ensemble 'm' is not written: at least one of its depending tensors, 'X', is not connected",
    ],
    [
      ensemble(`${step('IN', 'OUT')} ${step('IN', 'SPARE')}`),
      "ensemble tensor 'SPARE' is unused in ensemble 'm'",
    ],
  ]);
});

test('inputs and outputs', () => {
  const dims = 'dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m';
  const input = (fields: string) => `max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 ${fields} }`;
  const reshape = (from: string, to: string) => input(`dims: [ ${from} ] reshape { shape: [ ${to} ] }`);
  expectMessages(validateIoConfig, [
    ['input { }', "model input must specify 'name' for m"],
    ['output { }', "model output must specify 'name' for m"],
    ['input { name: "X" dims: 1 }', "model input 'X' must specify 'data_type' for m"],
    [input(''), "model input 'X' must specify 'dims' for m"],
    [input('dims: 0'), `model input 'X' ${dims}`],
    ['output { name: "Y" data_type: TYPE_FP32 dims: -2 }', `model output 'Y' ${dims}`],
    [
      'input { name: "X" data_type: TYPE_FP32 dims: 1 reshape { } }',
      "model input 'X' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
    ],
    [
      reshape('2', '0'),
      "model input 'X' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ],
    [reshape('2', '3'), "model input 'X' has different size for dims and reshape for m"],
    [reshape('2', ''), "model input 'X' has different size for dims and reshape for m"],
    [reshape('2', '-1'), "model input 'X' has different size for dims and reshape for m"],
    [
      reshape('-1, -1', '-1'),
      "model input 'X' has different number of variable-size dimensions for dims and reshape for m",
    ],
    [reshape('2, -1, 3', '3, -1, 2'), "model input 'X' has different size for dims and reshape for m"],
    [input('dims: [ 3, 4 ] format: FORMAT_NHWC'), 'model input NHWC/NCHW require 3 dims for m'],
    [input('dims: 1 is_shape_tensor: true'), 'shape tensors are only supported for TensorRT platform for m'],
  ]);
  for (const good of [reshape('1', ''), reshape('2, 4, -1, 6', '8, -1, 1, 6'), reshape('4', '2, 2')]) {
    validateIoConfig(parseModelConfig(`name: "m" ${good}`));
  }
});

test('batch inputs and outputs', () => {
  const io =
    'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }';
  expectMessages(validateIoConfig, [
    [`${io} batch_input { }`, "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for m"],
    [
      `${io} batch_input { source_input: "X" }`,
      'batch input data type must be TYPE_INT32 or TYPE_FP32 for m',
    ],
    [`${io} batch_input { source_input: "Z" data_type: TYPE_INT32 }`, "unknown source input name 'Z' for m"],
    [`${io} batch_output { source_input: "X" target_name: "Z" }`, "unknown target output name 'Z' for m"],
    [
      `${io} batch_output { source_input: "X" target_name: [ "Y", "Y" ] }`,
      "target output name 'Y' can only be specified once for m",
    ],
  ]);
});

test('instance groups', () => {
  const group = (fields: string) => `${ONNX} instance_group { name: "g" ${fields} }`;
  const cpuOnly = (config: ModelConfig) => validateInstanceGroups(config, { gpuIds: [] });
  const oneGpu = (config: ModelConfig) => validateInstanceGroups(config, { gpuIds: [0] });
  expectMessages(cpuOnly, [
    [ONNX, "must specify one or more 'instance group's for m"],
    [
      group('kind: KIND_CPU gpus: 0'),
      'instance group g of model m has kind KIND_CPU but specifies one or more GPUs',
    ],
    [
      group('kind: KIND_MODEL gpus: 0'),
      'instance group g of model m has kind KIND_MODEL but specifies one or more GPUs',
    ],
    [group('kind: KIND_GPU'), 'instance group g of model m has kind KIND_GPU but no GPUs are available'],
    [
      group('kind: KIND_CPU profile: "p"'),
      'instance group g of model m specifies profile field which is only supported for TensorRT models',
    ],
  ]);
  expectMessages(oneGpu, [
    [
      group('kind: KIND_GPU gpus: 3'),
      'instance group g of model m specifies invalid or unsupported gpu id 3. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0',
    ],
  ]);
  oneGpu(parseModelConfig(`name: "m" ${group('kind: KIND_GPU gpus: 0')}`));
});
