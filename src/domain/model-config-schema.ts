// The message schema of model_config.proto as data: fields in declaration order with their protobuf numbers.
// It drives the text-format parser and printer, the JSON rendering and the gRPC codecs, and must agree
// with the types of model-config.ts (a test holds the two together).

import {
  choice,
  enumOf,
  type FieldSchema,
  type MessageSchema,
  map,
  messageOf,
  repeated,
  single,
} from './message-schema.ts';

export const PACKAGE = 'inference';

const FIELDS: Readonly<Record<string, readonly FieldSchema[]>> = {
  ModelRateLimiter: [
    repeated(1, 'resources', messageOf('ModelRateLimiter.Resource')),
    single(2, 'priority', 'uint32'),
  ],
  'ModelRateLimiter.Resource': [
    single(1, 'name', 'string'),
    single(2, 'global', 'bool'),
    single(3, 'count', 'uint32'),
  ],
  ModelInstanceGroup: [
    single(1, 'name', 'string'),
    single(4, 'kind', enumOf('ModelInstanceGroup.Kind')),
    single(2, 'count', 'int32'),
    single(6, 'rate_limiter', messageOf('ModelRateLimiter')),
    repeated(3, 'gpus', 'int32'),
    repeated(8, 'secondary_devices', messageOf('ModelInstanceGroup.SecondaryDevice')),
    repeated(5, 'profile', 'string'),
    single(7, 'passive', 'bool'),
    single(9, 'host_policy', 'string'),
  ],
  'ModelInstanceGroup.SecondaryDevice': [
    single(1, 'kind', enumOf('ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind')),
    single(2, 'device_id', 'int64'),
  ],
  ModelTensorReshape: [repeated(1, 'shape', 'int64')],
  ModelInput: [
    single(1, 'name', 'string'),
    single(2, 'data_type', enumOf('DataType')),
    single(3, 'format', enumOf('ModelInput.Format')),
    repeated(4, 'dims', 'int64'),
    single(5, 'reshape', messageOf('ModelTensorReshape')),
    single(6, 'is_shape_tensor', 'bool'),
    single(7, 'allow_ragged_batch', 'bool'),
    single(8, 'optional', 'bool'),
    single(9, 'is_non_linear_format_io', 'bool'),
  ],
  ModelOutput: [
    single(1, 'name', 'string'),
    single(2, 'data_type', enumOf('DataType')),
    repeated(3, 'dims', 'int64'),
    single(5, 'reshape', messageOf('ModelTensorReshape')),
    single(4, 'label_filename', 'string'),
    single(6, 'is_shape_tensor', 'bool'),
    single(7, 'is_non_linear_format_io', 'bool'),
  ],
  BatchInput: [
    single(1, 'kind', enumOf('BatchInput.Kind')),
    repeated(2, 'target_name', 'string'),
    single(3, 'data_type', enumOf('DataType')),
    repeated(4, 'source_input', 'string'),
  ],
  BatchOutput: [
    repeated(1, 'target_name', 'string'),
    single(2, 'kind', enumOf('BatchOutput.Kind')),
    repeated(3, 'source_input', 'string'),
  ],
  ModelVersionPolicy: [
    choice(1, 'latest', messageOf('ModelVersionPolicy.Latest'), 'policy_choice'),
    choice(2, 'all', messageOf('ModelVersionPolicy.All'), 'policy_choice'),
    choice(3, 'specific', messageOf('ModelVersionPolicy.Specific'), 'policy_choice'),
  ],
  'ModelVersionPolicy.Latest': [single(1, 'num_versions', 'uint32')],
  'ModelVersionPolicy.All': [],
  'ModelVersionPolicy.Specific': [repeated(1, 'versions', 'int64')],
  ModelOptimizationPolicy: [
    single(1, 'graph', messageOf('ModelOptimizationPolicy.Graph')),
    single(2, 'priority', enumOf('ModelOptimizationPolicy.ModelPriority')),
    single(3, 'cuda', messageOf('ModelOptimizationPolicy.Cuda')),
    single(4, 'execution_accelerators', messageOf('ModelOptimizationPolicy.ExecutionAccelerators')),
    single(5, 'input_pinned_memory', messageOf('ModelOptimizationPolicy.PinnedMemoryBuffer')),
    single(6, 'output_pinned_memory', messageOf('ModelOptimizationPolicy.PinnedMemoryBuffer')),
    single(7, 'gather_kernel_buffer_threshold', 'uint32'),
    single(8, 'eager_batching', 'bool'),
  ],
  'ModelOptimizationPolicy.Graph': [single(1, 'level', 'int32')],
  'ModelOptimizationPolicy.Cuda': [
    single(1, 'graphs', 'bool'),
    single(2, 'busy_wait_events', 'bool'),
    repeated(3, 'graph_spec', messageOf('ModelOptimizationPolicy.Cuda.GraphSpec')),
    single(4, 'output_copy_stream', 'bool'),
  ],
  'ModelOptimizationPolicy.Cuda.GraphSpec': [
    single(1, 'batch_size', 'int32'),
    map(2, 'input', 'string', messageOf('ModelOptimizationPolicy.Cuda.GraphSpec.Shape')),
    single(3, 'graph_lower_bound', messageOf('ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound')),
  ],
  'ModelOptimizationPolicy.Cuda.GraphSpec.Shape': [repeated(1, 'dim', 'int64')],
  'ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound': [
    single(1, 'batch_size', 'int32'),
    map(2, 'input', 'string', messageOf('ModelOptimizationPolicy.Cuda.GraphSpec.Shape')),
  ],
  'ModelOptimizationPolicy.ExecutionAccelerators': [
    repeated(
      1,
      'gpu_execution_accelerator',
      messageOf('ModelOptimizationPolicy.ExecutionAccelerators.Accelerator'),
    ),
    repeated(
      2,
      'cpu_execution_accelerator',
      messageOf('ModelOptimizationPolicy.ExecutionAccelerators.Accelerator'),
    ),
  ],
  'ModelOptimizationPolicy.ExecutionAccelerators.Accelerator': [
    single(1, 'name', 'string'),
    map(2, 'parameters', 'string', 'string'),
  ],
  'ModelOptimizationPolicy.PinnedMemoryBuffer': [single(1, 'enable', 'bool')],
  ModelQueuePolicy: [
    single(1, 'timeout_action', enumOf('ModelQueuePolicy.TimeoutAction')),
    single(2, 'default_timeout_microseconds', 'uint64'),
    single(3, 'allow_timeout_override', 'bool'),
    single(4, 'max_queue_size', 'uint32'),
  ],
  ModelDynamicBatching: [
    repeated(1, 'preferred_batch_size', 'int32'),
    single(2, 'max_queue_delay_microseconds', 'uint64'),
    single(3, 'preserve_ordering', 'bool'),
    single(4, 'priority_levels', 'uint64'),
    single(5, 'default_priority_level', 'uint64'),
    single(6, 'default_queue_policy', messageOf('ModelQueuePolicy')),
    map(7, 'priority_queue_policy', 'uint64', messageOf('ModelQueuePolicy')),
  ],
  ModelSequenceBatching: [
    choice(3, 'direct', messageOf('ModelSequenceBatching.StrategyDirect'), 'strategy_choice'),
    choice(4, 'oldest', messageOf('ModelSequenceBatching.StrategyOldest'), 'strategy_choice'),
    single(1, 'max_sequence_idle_microseconds', 'uint64'),
    repeated(2, 'control_input', messageOf('ModelSequenceBatching.ControlInput')),
    repeated(5, 'state', messageOf('ModelSequenceBatching.State')),
    single(6, 'iterative_sequence', 'bool'),
  ],
  'ModelSequenceBatching.Control': [
    single(1, 'kind', enumOf('ModelSequenceBatching.Control.Kind')),
    repeated(2, 'int32_false_true', 'int32'),
    repeated(3, 'fp32_false_true', 'float'),
    repeated(5, 'bool_false_true', 'bool'),
    single(4, 'data_type', enumOf('DataType')),
  ],
  'ModelSequenceBatching.ControlInput': [
    single(1, 'name', 'string'),
    repeated(2, 'control', messageOf('ModelSequenceBatching.Control')),
  ],
  'ModelSequenceBatching.InitialState': [
    single(1, 'data_type', enumOf('DataType')),
    repeated(2, 'dims', 'int64'),
    choice(3, 'zero_data', 'bool', 'state_data'),
    choice(4, 'data_file', 'string', 'state_data'),
    single(5, 'name', 'string'),
  ],
  'ModelSequenceBatching.State': [
    single(1, 'input_name', 'string'),
    single(2, 'output_name', 'string'),
    single(3, 'data_type', enumOf('DataType')),
    repeated(4, 'dims', 'int64'),
    repeated(5, 'initial_state', messageOf('ModelSequenceBatching.InitialState')),
    single(6, 'use_same_buffer_for_input_output', 'bool'),
    single(7, 'use_growable_memory', 'bool'),
  ],
  'ModelSequenceBatching.StrategyDirect': [
    single(1, 'max_queue_delay_microseconds', 'uint64'),
    single(2, 'minimum_slot_utilization', 'float'),
  ],
  'ModelSequenceBatching.StrategyOldest': [
    single(1, 'max_candidate_sequences', 'int32'),
    repeated(2, 'preferred_batch_size', 'int32'),
    single(3, 'max_queue_delay_microseconds', 'uint64'),
    single(4, 'preserve_ordering', 'bool'),
  ],
  ModelEnsembling: [
    repeated(1, 'step', messageOf('ModelEnsembling.Step')),
    single(2, 'max_inflight_requests', 'uint32'),
  ],
  'ModelEnsembling.Step': [
    single(1, 'model_name', 'string'),
    single(2, 'model_version', 'int64'),
    map(3, 'input_map', 'string', 'string'),
    map(4, 'output_map', 'string', 'string'),
    single(5, 'model_namespace', 'string'),
  ],
  ModelParameter: [single(1, 'string_value', 'string')],
  ModelWarmup: [
    single(1, 'name', 'string'),
    single(2, 'batch_size', 'uint32'),
    map(3, 'inputs', 'string', messageOf('ModelWarmup.Input')),
    single(4, 'count', 'uint32'),
  ],
  'ModelWarmup.Input': [
    single(1, 'data_type', enumOf('DataType')),
    repeated(2, 'dims', 'int64'),
    choice(3, 'zero_data', 'bool', 'input_data_type'),
    choice(4, 'random_data', 'bool', 'input_data_type'),
    choice(5, 'input_data_file', 'string', 'input_data_type'),
  ],
  ModelOperations: [repeated(1, 'op_library_filename', 'string')],
  ModelTransactionPolicy: [single(1, 'decoupled', 'bool')],
  ModelRepositoryAgents: [repeated(1, 'agents', messageOf('ModelRepositoryAgents.Agent'))],
  'ModelRepositoryAgents.Agent': [single(1, 'name', 'string'), map(2, 'parameters', 'string', 'string')],
  ModelResponseCache: [single(1, 'enable', 'bool')],
  ModelMetrics: [repeated(1, 'metric_control', messageOf('ModelMetrics.MetricControl'))],
  'ModelMetrics.MetricControl': [
    single(1, 'metric_identifier', messageOf('ModelMetrics.MetricControl.MetricIdentifier')),
    choice(
      2,
      'histogram_options',
      messageOf('ModelMetrics.MetricControl.HistogramOptions'),
      'metric_options',
    ),
  ],
  'ModelMetrics.MetricControl.MetricIdentifier': [single(1, 'family', 'string')],
  'ModelMetrics.MetricControl.HistogramOptions': [repeated(1, 'buckets', 'double')],
  ModelConfig: [
    single(1, 'name', 'string'),
    single(2, 'platform', 'string'),
    single(17, 'backend', 'string'),
    single(25, 'runtime', 'string'),
    single(3, 'version_policy', messageOf('ModelVersionPolicy')),
    single(4, 'max_batch_size', 'int32'),
    repeated(5, 'input', messageOf('ModelInput')),
    repeated(6, 'output', messageOf('ModelOutput')),
    repeated(20, 'batch_input', messageOf('BatchInput')),
    repeated(21, 'batch_output', messageOf('BatchOutput')),
    single(12, 'optimization', messageOf('ModelOptimizationPolicy')),
    choice(11, 'dynamic_batching', messageOf('ModelDynamicBatching'), 'scheduling_choice'),
    choice(13, 'sequence_batching', messageOf('ModelSequenceBatching'), 'scheduling_choice'),
    choice(15, 'ensemble_scheduling', messageOf('ModelEnsembling'), 'scheduling_choice'),
    repeated(7, 'instance_group', messageOf('ModelInstanceGroup')),
    single(8, 'default_model_filename', 'string'),
    map(9, 'cc_model_filenames', 'string', 'string'),
    map(10, 'metric_tags', 'string', 'string'),
    map(14, 'parameters', 'string', messageOf('ModelParameter')),
    repeated(16, 'model_warmup', messageOf('ModelWarmup')),
    single(18, 'model_operations', messageOf('ModelOperations')),
    single(19, 'model_transaction_policy', messageOf('ModelTransactionPolicy')),
    single(23, 'model_repository_agents', messageOf('ModelRepositoryAgents')),
    single(24, 'response_cache', messageOf('ModelResponseCache')),
    single(26, 'model_metrics', messageOf('ModelMetrics')),
  ],
};

export const MODEL_CONFIG_MESSAGES: ReadonlyMap<string, MessageSchema> = new Map(
  Object.entries(FIELDS).map(([name, fields]) => [
    name,
    {
      name,
      fullName: `${PACKAGE}.${name}`,
      fields,
      fieldByName: new Map(fields.map((field) => [field.name, field])),
    },
  ]),
);

export function messageSchemaOf(name: string): MessageSchema {
  const found = MODEL_CONFIG_MESSAGES.get(name);
  if (found === undefined) throw new Error(`no message ${name} in the ModelConfig schema`);
  return found;
}
