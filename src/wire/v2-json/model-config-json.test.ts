// The configuration document as recorded from a real server, and the JSON that a load request may carry.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createMessage } from '../../domain/message-value.ts';
import { randomModelConfig } from '../../domain/random-model-config.ts';
import { StatusError } from '../../domain/status.ts';
import { createPrng } from '../../lib/prng.ts';
import { parseModelConfig } from '../pbtxt/parse-model-config.ts';
import { modelConfigFromJson, modelConfigToJson } from './model-config-json.ts';

const EMPTY =
  '{"name":"","platform":"","backend":"","runtime":"","max_batch_size":0,"input":[],"output":[],"batch_input":[],' +
  '"batch_output":[],"instance_group":[],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},' +
  '"parameters":{},"model_warmup":[]}';

test('primitives are printed at their defaults, messages that are not set are left out', () => {
  assert.equal(modelConfigToJson(parseModelConfig('')), EMPTY);
});

test('a tensor has its members in the order of the proto', () => {
  const json = modelConfigToJson(
    parseModelConfig('input { name: "X" data_type: TYPE_FP32 dims: [ 2, -1 ] }'),
  );
  const input =
    '{"name":"X","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[2,-1],"is_shape_tensor":false,' +
    '"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}';
  assert.ok(json.includes(`"input":[${input}]`), json);
});

test('64-bit integers are numbers, but for three fields that Triton leaves as text', () => {
  const config = parseModelConfig(`
    sequence_batching { max_sequence_idle_microseconds: 5000000
      state { dims: [ 2 ] initial_state { data_type: TYPE_FP32 dims: [ 2 ] data_file: "sum0" name: "n" } } }
    instance_group { secondary_devices { device_id: 7 } }
    optimization { cuda { graph_spec { input { key: "X" value { dim: [ 4 ] } }
      graph_lower_bound { input { key: "X" value { dim: [ 1 ] } } } } } }
  `);
  const json = modelConfigToJson(config);
  for (const part of [
    '"max_sequence_idle_microseconds":5000000',
    // A scalar of a oneof comes last, whatever its place in the proto.
    '"initial_state":[{"data_type":"TYPE_FP32","dims":["2"],"name":"n","data_file":"sum0"}]',
    '"dims":[2],"initial_state"',
    '"secondary_devices":[{"kind":"KIND_NVDLA","device_id":"7"}]',
    '"input":{"X":{"dim":["4"]}},"graph_lower_bound":{"batch_size":0,"input":{"X":{"dim":["1"]}}}',
  ]) {
    assert.ok(json.includes(part), `${part}\n${json}`);
  }
  assert.deepEqual(modelConfigFromJson(json), config);
});

test('maps are sorted by key, numbers as numbers', () => {
  const config = parseModelConfig(`
    parameters { key: "note" value { string_value: "hello" } } parameters { key: "B" value { } }
    dynamic_batching { priority_queue_policy { key: 10 value { } } priority_queue_policy { key: 9 value { } } }
  `);
  const json = modelConfigToJson(config);
  assert.ok(json.includes('"parameters":{"B":{"string_value":""},"note":{"string_value":"hello"}}'), json);
  assert.match(json, /"priority_queue_policy":\{"9":\{.*\},"10":\{/);
});

test('floats look as rapidjson writes them', () => {
  const config = parseModelConfig(
    'sequence_batching { control_input { control { fp32_false_true: [ 0, 1, 0.5, 0.1, nan, -inf ] } } }',
  );
  assert.ok(modelConfigToJson(config).includes('"fp32_false_true":[0.0,1.0,0.5,0.1,"NaN","-Infinity"]'));
});

test('an ensemble without a cap on requests in flight shows none, as the recorded server does', () => {
  const step = 'step { model_name: "a" model_version: -1 input_map { key: "IN" value: "RAW" } }';
  assert.ok(!modelConfigToJson(parseModelConfig(`ensemble_scheduling { ${step} }`)).includes('max_inflight'));
  const capped = parseModelConfig(`ensemble_scheduling { ${step} max_inflight_requests: 3 }`);
  assert.ok(modelConfigToJson(capped).includes('"model_namespace":""}],"max_inflight_requests":3}'));
});

test('any config survives the way to JSON and back', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const config = randomModelConfig(createPrng(seed));
    const json = modelConfigToJson(config);
    JSON.parse(json);
    assert.deepEqual(modelConfigFromJson(json), config, `seed ${seed}`);
  }
});

test('JSON may use camelCase, enums in any case or by number, integers as text, null', () => {
  const config = modelConfigFromJson(`{"maxBatchSize": "8", "name": null, "versionPolicy": null, "input": [
    {"name": "X", "dataType": "type_fp32", "dims": ["2", -1, 3.0], "format": 1}], "metricTags": {"a": "b"},
    "dynamicBatching": {"priority_queue_policy": {"2": {"timeoutAction": "DELAY"}}}}`);
  assert.equal(config.max_batch_size, 8);
  assert.equal(config.name, '');
  assert.equal(config.version_policy, undefined);
  assert.deepEqual(config.input[0]?.dims, [2, -1, 3]);
  assert.deepEqual([config.input[0]?.data_type, config.input[0]?.format], ['TYPE_FP32', 'FORMAT_NHWC']);
  assert.equal(config.dynamic_batching?.priority_queue_policy['2']?.timeout_action, 'DELAY');
  assert.deepEqual(modelConfigFromJson('{}'), createMessage('ModelConfig'));
});

test('bad JSON is refused with the path of the member', () => {
  const cases: [json: string, message: RegExp][] = [
    ['{', /^model config is not valid JSON: /],
    ['[]', /^model config: document: expected an object, got \[\]$/],
    [
      '{"shoe_size":43}',
      /^model config: shoe_size: message type "inference\.ModelConfig" has no field named "shoe_size"$/,
    ],
    ['{"__proto__":1}', /has no field named "__proto__"/],
    ['{"input":[{"dims":[1,"x"]}]}', /^model config: input\[0\]\.dims\[1\]: expected an int64, got "x"$/],
    ['{"input":[null]}', /^model config: input\[0\]: expected an object, got null$/],
    ['{"input":{}}', /^model config: input: expected an array, got \{\}$/],
    ['{"max_batch_size":2147483648}', /2147483648 is out of range for int32$/],
    ['{"max_batch_size":1.5}', /expected an int32, got 1\.5$/],
    ['{"name":5}', /^model config: name: expected a string, got 5$/],
    ['{"input":[{"optional":1}]}', /expected true or false, got 1$/],
    ['{"input":[{"data_type":"FP32"}]}', /expected one of TYPE_INVALID, TYPE_BOOL, .*, got "FP32"$/],
    [
      '{"dynamic_batching":{},"sequence_batching":{}}',
      /oneof "scheduling_choice" is already set by "dynamic_batching"$/,
    ],
    ['{"parameters":{"a":null}}', /^model config: parameters\["a"\]: expected an object, got null$/],
  ];
  for (const [json, message] of cases) {
    assert.throws(
      () => modelConfigFromJson(json),
      (error) => error instanceof StatusError && error.code === 'INVALID_ARG' && message.test(error.message),
      json,
    );
  }
});

/** Recorded from a real server; the config below is what it had after completion. */
const RECORDED =
  '{"name":"priority","platform":"onnxruntime_onnx","backend":"onnxruntime","runtime":"","version_p' +
  'olicy":{"latest":{"num_versions":1}},"max_batch_size":4,"input":[{"name":"X","data_type":"TYPE_F' +
  'P32","format":"FORMAT_NONE","dims":[2],"is_shape_tensor":false,"allow_ragged_batch":false,"optio' +
  'nal":false,"is_non_linear_format_io":false}],"output":[{"name":"Y","data_type":"TYPE_FP32","dims' +
  '":[2],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input' +
  '":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"ena' +
  'ble":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batc' +
  'hing":false},"dynamic_batching":{"preferred_batch_size":[4],"max_queue_delay_microseconds":0,"pr' +
  'eserve_ordering":false,"priority_levels":3,"default_priority_level":2,"default_queue_policy":{"t' +
  'imeout_action":"REJECT","default_timeout_microseconds":5000000,"allow_timeout_override":true,"ma' +
  'x_queue_size":16},"priority_queue_policy":{"1":{"timeout_action":"DELAY","default_timeout_micros' +
  'econds":4000000,"allow_timeout_override":false,"max_queue_size":0},"3":{"timeout_action":"REJECT' +
  '","default_timeout_microseconds":0,"allow_timeout_override":false,"max_queue_size":2}}},"instanc' +
  'e_group":[{"name":"priority_0","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"pro' +
  'file":[],"passive":false,"host_policy":""}],"default_model_filename":"model.onnx","cc_model_file' +
  'names":{},"metric_tags":{},"parameters":{},"model_warmup":[]}';

test('a completed config is the recorded document, byte for byte', () => {
  const config = parseModelConfig(`
    name: "priority" platform: "onnxruntime_onnx" backend: "onnxruntime" version_policy { latest { num_versions: 1 } }
    max_batch_size: 4
    input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
    output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
    optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: true } }
    dynamic_batching {
      preferred_batch_size: 4 priority_levels: 3 default_priority_level: 2
      default_queue_policy { default_timeout_microseconds: 5000000 allow_timeout_override: true max_queue_size: 16 }
      priority_queue_policy { key: 3 value: { max_queue_size: 2 } }
      priority_queue_policy { key: 1 value: { timeout_action: DELAY default_timeout_microseconds: 4000000 } }
    }
    instance_group { name: "priority_0" kind: KIND_CPU count: 1 }
    default_model_filename: "model.onnx"
  `);
  assert.equal(modelConfigToJson(config), RECORDED);
  assert.deepEqual(modelConfigFromJson(RECORDED), config);
});

test('our own fields are printed when they are set, and read back', () => {
  const text = `
    platform: "router"
    router { target { model: "a" version: "stable" weight: 9 } sticky { header: "x-user" } }
    version_labels { key: "stable" value: 3 }`;
  const config = parseModelConfig(text);
  const json = modelConfigToJson(config);
  assert.ok(json.includes('"sticky":{"header":"x-user"},"force_header":""'), json);
  assert.ok(json.endsWith(',"version_labels":{"stable":3}}'), json);
  assert.ok(json.includes('"target":[{"name":"","model":"a","version":"stable","weight":9}]'), json);
  assert.deepEqual(modelConfigFromJson(json), config);
});
