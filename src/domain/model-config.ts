// ModelConfig as plain data, field names as in model_config.proto. 64-bit integers are numbers here: every
// value Triton gives a meaning to is far below 2^53. Enum values are their names.
// The schema that drives parsing and printing is model-config-schema.ts; the two must agree.

export interface ModelInput {
  name: string;
  data_type: string;
  format: string;
  dims: number[];
  reshape?: { shape: number[] };
  is_shape_tensor: boolean;
  allow_ragged_batch: boolean;
  optional: boolean;
  is_non_linear_format_io: boolean;
}

export interface ModelOutput {
  name: string;
  data_type: string;
  dims: number[];
  reshape?: { shape: number[] };
  label_filename: string;
  is_shape_tensor: boolean;
  is_non_linear_format_io: boolean;
}

export interface BatchInput {
  kind: string;
  target_name: string[];
  data_type: string;
  source_input: string[];
}

export interface BatchOutput {
  target_name: string[];
  kind: string;
  source_input: string[];
}

export interface ModelVersionPolicy {
  latest?: { num_versions: number };
  all?: Record<string, never>;
  specific?: { versions: number[] };
}

export interface Accelerator {
  name: string;
  parameters: Record<string, string>;
}

export interface CudaGraphShape {
  dim: number[];
}

export interface ModelOptimizationPolicy {
  graph?: { level: number };
  priority: string;
  cuda?: {
    graphs: boolean;
    busy_wait_events: boolean;
    graph_spec: {
      batch_size: number;
      input: Record<string, CudaGraphShape>;
      graph_lower_bound?: { batch_size: number; input: Record<string, CudaGraphShape> };
    }[];
    output_copy_stream: boolean;
  };
  execution_accelerators?: {
    gpu_execution_accelerator: Accelerator[];
    cpu_execution_accelerator: Accelerator[];
  };
  input_pinned_memory?: { enable: boolean };
  output_pinned_memory?: { enable: boolean };
  gather_kernel_buffer_threshold: number;
  eager_batching: boolean;
}

export interface ModelQueuePolicy {
  timeout_action: string;
  default_timeout_microseconds: number;
  allow_timeout_override: boolean;
  max_queue_size: number;
}

export interface ModelDynamicBatching {
  preferred_batch_size: number[];
  max_queue_delay_microseconds: number;
  preserve_ordering: boolean;
  priority_levels: number;
  default_priority_level: number;
  default_queue_policy?: ModelQueuePolicy;
  priority_queue_policy: Record<string, ModelQueuePolicy>;
}

export interface SequenceControl {
  kind: string;
  int32_false_true: number[];
  fp32_false_true: number[];
  bool_false_true: boolean[];
  data_type: string;
}

export interface SequenceState {
  input_name: string;
  output_name: string;
  data_type: string;
  dims: number[];
  initial_state: {
    data_type: string;
    dims: number[];
    zero_data?: boolean;
    data_file?: string;
    name: string;
  }[];
  use_same_buffer_for_input_output: boolean;
  use_growable_memory: boolean;
}

export interface ModelSequenceBatching {
  direct?: { max_queue_delay_microseconds: number; minimum_slot_utilization: number };
  oldest?: {
    max_candidate_sequences: number;
    preferred_batch_size: number[];
    max_queue_delay_microseconds: number;
    preserve_ordering: boolean;
  };
  max_sequence_idle_microseconds: number;
  control_input: { name: string; control: SequenceControl[] }[];
  state: SequenceState[];
  iterative_sequence: boolean;
}

export interface EnsembleStep {
  model_name: string;
  model_version: number;
  input_map: Record<string, string>;
  output_map: Record<string, string>;
  model_namespace: string;
}

export interface ModelInstanceGroup {
  name: string;
  kind: string;
  count: number;
  rate_limiter?: { resources: { name: string; global: boolean; count: number }[]; priority: number };
  gpus: number[];
  secondary_devices: { kind: string; device_id: number }[];
  profile: string[];
  passive: boolean;
  host_policy: string;
}

export interface WarmupInput {
  data_type: string;
  dims: number[];
  zero_data?: boolean;
  random_data?: boolean;
  input_data_file?: string;
}

export interface ModelWarmup {
  name: string;
  batch_size: number;
  inputs: Record<string, WarmupInput>;
  count: number;
}

/** Nereid's own: what `platform: "router"` sends where. 0 and '' mean the default; see docs/router.md. */
export interface ModelRouter {
  target: RouterTarget[];
  sticky?: { header?: string; parameter?: string; correlation_id?: boolean };
  force_header: string;
  shadow: RouterShadow[];
  canary: RouterCanary[];
  report_target: boolean;
}

export interface RouterTarget {
  name: string;
  model: string;
  /** A number, a label, or empty for the newest. */
  version: string;
  weight: number;
  /** Written by the server into what it shows: why a canary rule took the weight away. */
  rolled_back: string;
}

export interface RouterShadow {
  name: string;
  model: string;
  version: string;
  percent: number;
  max_inflight_requests: number;
  max_inflight_bytes: number;
}

export interface RouterCanary {
  target: string;
  stable: string;
  max_error_rate: number;
  max_p99_ms: number;
  window_seconds: number;
  min_requests: number;
}

export interface ModelConfig {
  name: string;
  platform: string;
  backend: string;
  runtime: string;
  version_policy?: ModelVersionPolicy;
  max_batch_size: number;
  input: ModelInput[];
  output: ModelOutput[];
  batch_input: BatchInput[];
  batch_output: BatchOutput[];
  optimization?: ModelOptimizationPolicy;
  dynamic_batching?: ModelDynamicBatching;
  sequence_batching?: ModelSequenceBatching;
  ensemble_scheduling?: { step: EnsembleStep[]; max_inflight_requests: number };
  instance_group: ModelInstanceGroup[];
  default_model_filename: string;
  cc_model_filenames: Record<string, string>;
  metric_tags: Record<string, string>;
  parameters: Record<string, { string_value: string }>;
  model_warmup: ModelWarmup[];
  model_operations?: { op_library_filename: string[] };
  model_transaction_policy?: { decoupled: boolean };
  model_repository_agents?: { agents: { name: string; parameters: Record<string, string> }[] };
  response_cache?: { enable: boolean };
  model_metrics?: {
    metric_control: {
      metric_identifier?: { family: string };
      histogram_options?: { buckets: number[] };
    }[];
  };
  router?: ModelRouter;
  /** Nereid's own: names that may stand where a version is expected. */
  version_labels: Record<string, number>;
}
