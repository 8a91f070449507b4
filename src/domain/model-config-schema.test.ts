// The schema against the types of model-config.ts and the numbers of model_config.proto.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createPrng } from '../lib/prng.ts';
import { createMessage, type MessageValue } from './message-value.ts';
import type { ModelConfig } from './model-config.ts';
import { enumNameOf, enumNumberOf, MODEL_CONFIG_ENUMS } from './model-config-enums.ts';
import { MODEL_CONFIG_MESSAGES, messageSchemaOf } from './model-config-schema.ts';
import { randomModelConfig } from './random-model-config.ts';

type Field<T, K extends keyof T> = NonNullable<T[K]>;
type Element<T> = T extends (infer E)[] ? E : never;
type Value<T> = T extends Record<string, infer V> ? V : never;
type Keys<T> = Record<keyof T, true>;
type Optimization = Field<ModelConfig, 'optimization'>;
type Cuda = Field<Optimization, 'cuda'>;
type GraphSpec = Element<Cuda['graph_spec']>;
type Sequence = Field<ModelConfig, 'sequence_batching'>;
type State = Element<Sequence['state']>;
type Group = Element<ModelConfig['instance_group']>;
type Router = Field<ModelConfig, 'router'>;
type Metrics = Element<Field<ModelConfig, 'model_metrics'>['metric_control']>;

/** The compiler demands every key of the types here; the test demands every field of the schema. */
const TYPED_KEYS: Record<string, Record<string, true>> = {
  ModelConfig: {
    name: true,
    platform: true,
    backend: true,
    runtime: true,
    version_policy: true,
    max_batch_size: true,
    input: true,
    output: true,
    batch_input: true,
    batch_output: true,
    optimization: true,
    dynamic_batching: true,
    sequence_batching: true,
    ensemble_scheduling: true,
    instance_group: true,
    default_model_filename: true,
    cc_model_filenames: true,
    metric_tags: true,
    parameters: true,
    model_warmup: true,
    model_operations: true,
    model_transaction_policy: true,
    model_repository_agents: true,
    response_cache: true,
    model_metrics: true,
    router: true,
    version_labels: true,
  } satisfies Keys<ModelConfig>,
  ModelInput: {
    name: true,
    data_type: true,
    format: true,
    dims: true,
    reshape: true,
    is_shape_tensor: true,
    allow_ragged_batch: true,
    optional: true,
    is_non_linear_format_io: true,
  } satisfies Keys<Element<ModelConfig['input']>>,
  ModelOutput: {
    name: true,
    data_type: true,
    dims: true,
    reshape: true,
    label_filename: true,
    is_shape_tensor: true,
    is_non_linear_format_io: true,
  } satisfies Keys<Element<ModelConfig['output']>>,
  ModelInstanceGroup: {
    name: true,
    kind: true,
    count: true,
    rate_limiter: true,
    gpus: true,
    secondary_devices: true,
    profile: true,
    passive: true,
    host_policy: true,
  } satisfies Keys<Group>,
  ModelOptimizationPolicy: {
    graph: true,
    priority: true,
    cuda: true,
    execution_accelerators: true,
    input_pinned_memory: true,
    output_pinned_memory: true,
    gather_kernel_buffer_threshold: true,
    eager_batching: true,
  } satisfies Keys<Optimization>,
  'ModelOptimizationPolicy.Cuda': {
    graphs: true,
    busy_wait_events: true,
    graph_spec: true,
    output_copy_stream: true,
  } satisfies Keys<Cuda>,
  'ModelOptimizationPolicy.Cuda.GraphSpec': {
    batch_size: true,
    input: true,
    graph_lower_bound: true,
  } satisfies Keys<GraphSpec>,
  ModelDynamicBatching: {
    preferred_batch_size: true,
    max_queue_delay_microseconds: true,
    preserve_ordering: true,
    priority_levels: true,
    default_priority_level: true,
    default_queue_policy: true,
    priority_queue_policy: true,
  } satisfies Keys<Field<ModelConfig, 'dynamic_batching'>>,
  ModelSequenceBatching: {
    direct: true,
    oldest: true,
    max_sequence_idle_microseconds: true,
    control_input: true,
    state: true,
    iterative_sequence: true,
  } satisfies Keys<Sequence>,
  'ModelSequenceBatching.State': {
    input_name: true,
    output_name: true,
    data_type: true,
    dims: true,
    initial_state: true,
    use_same_buffer_for_input_output: true,
    use_growable_memory: true,
  } satisfies Keys<State>,
  'ModelSequenceBatching.InitialState': {
    data_type: true,
    dims: true,
    zero_data: true,
    data_file: true,
    name: true,
  } satisfies Keys<Element<State['initial_state']>>,
  'ModelSequenceBatching.Control': {
    kind: true,
    int32_false_true: true,
    fp32_false_true: true,
    bool_false_true: true,
    data_type: true,
  } satisfies Keys<Element<Element<Sequence['control_input']>['control']>>,
  'ModelSequenceBatching.StrategyOldest': {
    max_candidate_sequences: true,
    preferred_batch_size: true,
    max_queue_delay_microseconds: true,
    preserve_ordering: true,
  } satisfies Keys<Field<Sequence, 'oldest'>>,
  'ModelEnsembling.Step': {
    model_name: true,
    model_version: true,
    input_map: true,
    output_map: true,
    model_namespace: true,
  } satisfies Keys<Element<Field<ModelConfig, 'ensemble_scheduling'>['step']>>,
  ModelQueuePolicy: {
    timeout_action: true,
    default_timeout_microseconds: true,
    allow_timeout_override: true,
    max_queue_size: true,
  } satisfies Keys<Value<Field<ModelConfig, 'dynamic_batching'>['priority_queue_policy']>>,
  ModelWarmup: { name: true, batch_size: true, inputs: true, count: true } satisfies Keys<
    Element<ModelConfig['model_warmup']>
  >,
  'ModelWarmup.Input': {
    data_type: true,
    dims: true,
    zero_data: true,
    random_data: true,
    input_data_file: true,
  } satisfies Keys<Value<Element<ModelConfig['model_warmup']>['inputs']>>,
  ModelRouter: {
    target: true,
    sticky: true,
    force_header: true,
    shadow: true,
    canary: true,
    report_target: true,
  } satisfies Keys<Router>,
  'ModelRouter.Target': {
    name: true,
    model: true,
    version: true,
    weight: true,
    rolled_back: true,
  } satisfies Keys<Element<Router['target']>>,
  'ModelRouter.Sticky': { header: true, parameter: true, correlation_id: true } satisfies Keys<
    Field<Router, 'sticky'>
  >,
  'ModelRouter.Shadow': {
    name: true,
    model: true,
    version: true,
    percent: true,
    max_inflight_requests: true,
    max_inflight_bytes: true,
  } satisfies Keys<Element<Router['shadow']>>,
  'ModelRouter.Canary': {
    target: true,
    stable: true,
    max_error_rate: true,
    max_p99_ms: true,
    window_seconds: true,
    min_requests: true,
  } satisfies Keys<Element<Router['canary']>>,
  'ModelMetrics.MetricControl': { metric_identifier: true, histogram_options: true } satisfies Keys<Metrics>,
};

test('the schema has the fields of the types, in their order', () => {
  for (const [message, keys] of Object.entries(TYPED_KEYS)) {
    const names = messageSchemaOf(message).fields.map((field) => field.name);
    assert.deepEqual(names, Object.keys(keys), message);
  }
});

test('every message and enum that a field names exists, and numbers are unique', () => {
  for (const message of MODEL_CONFIG_MESSAGES.values()) {
    const numbers = message.fields.map((field) => field.number);
    assert.equal(new Set(numbers).size, numbers.length, message.name);
    for (const field of message.fields) {
      const value = field.map?.value ?? field;
      if (value.type === 'message') assert.ok(MODEL_CONFIG_MESSAGES.has(value.typeName), value.typeName);
      if (value.type === 'enum') assert.ok(value.typeName in MODEL_CONFIG_ENUMS, value.typeName);
    }
  }
});

test('numbers are those of model_config.proto, not positions', () => {
  const config = messageSchemaOf('ModelConfig').fieldByName;
  assert.equal(config.get('backend')?.number, 17);
  assert.equal(config.get('dynamic_batching')?.number, 11);
  assert.equal(config.get('sequence_batching')?.oneof, 'scheduling_choice');
  assert.equal(messageSchemaOf('ModelOutput').fieldByName.get('label_filename')?.number, 4);
  assert.equal(messageSchemaOf('ModelInstanceGroup').fieldByName.get('kind')?.number, 4);
});

test('enums map both ways', () => {
  assert.equal(enumNumberOf('DataType', 'TYPE_BF16'), 14);
  assert.equal(enumNameOf('DataType', 13), 'TYPE_STRING');
  assert.equal(enumNameOf('DataType', 99), undefined);
  assert.equal(enumNumberOf('DataType', 'toString'), undefined);
});

test('an empty message has defaults for scalars and lists, and nothing for messages and choices', () => {
  assert.deepEqual(createMessage('ModelSequenceBatching.InitialState'), {
    data_type: 'TYPE_INVALID',
    dims: [],
    name: '',
  });
  assert.deepEqual(createMessage('ModelQueuePolicy'), {
    timeout_action: 'REJECT',
    default_timeout_microseconds: 0,
    allow_timeout_override: false,
    max_queue_size: 0,
  });
});

test('random configs reach every top-level field', () => {
  const prng = createPrng(1);
  const seen = new Set<string>();
  for (let i = 0; i < 50; i++) {
    const config = randomModelConfig(prng) as unknown as MessageValue;
    for (const name of Object.keys(config)) seen.add(name);
  }
  assert.equal(seen.size, messageSchemaOf('ModelConfig').fields.length);
});
