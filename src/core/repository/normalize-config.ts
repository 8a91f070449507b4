// The defaults that Triton writes into every config at load, so that what is served, shown and validated is the
// same complete document. Pure: both functions return a new config.

import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelInstanceGroup,
  ModelOptimizationPolicy,
  ModelSequenceBatching,
} from '../../domain/model-config.ts';

/** Triton's default: a sequence that is silent for a second is over. */
const SEQUENCE_IDLE_US_DEFAULT = 1_000_000;

export function normalizeConfig(config: ModelConfig): ModelConfig {
  const normal: ModelConfig = {
    ...config,
    version_policy: config.version_policy ?? { latest: { num_versions: 1 } },
  };
  const { dynamic_batching: dynamic, sequence_batching: sequence } = config;
  if (dynamic !== undefined) normal.dynamic_batching = normalizeDynamic(dynamic, config.max_batch_size);
  if (sequence !== undefined) normal.sequence_batching = normalizeSequence(sequence, config.max_batch_size);
  if (config.ensemble_scheduling === undefined && config.router === undefined)
    normal.optimization = normalizeOptimization(config.optimization);
  return normal;
}

function normalizeDynamic(batching: ModelDynamicBatching, maxBatchSize: number): ModelDynamicBatching {
  return { ...batching, preferred_batch_size: preferredOr(batching.preferred_batch_size, maxBatchSize) };
}

function normalizeSequence(batching: ModelSequenceBatching, maxBatchSize: number): ModelSequenceBatching {
  const normal: ModelSequenceBatching = {
    ...batching,
    max_sequence_idle_microseconds: batching.max_sequence_idle_microseconds || SEQUENCE_IDLE_US_DEFAULT,
  };
  const { oldest } = batching;
  if (oldest !== undefined) {
    normal.oldest = {
      ...oldest,
      preferred_batch_size: preferredOr(oldest.preferred_batch_size, maxBatchSize),
    };
  }
  return normal;
}

function preferredOr(preferred: number[], maxBatchSize: number): number[] {
  if (preferred.length > 0) return [...preferred];
  return maxBatchSize > 0 ? [maxBatchSize] : [];
}

function normalizeOptimization(policy: ModelOptimizationPolicy | undefined): ModelOptimizationPolicy {
  const empty = { priority: 'PRIORITY_DEFAULT', gather_kernel_buffer_threshold: 0, eager_batching: false };
  return {
    ...(policy ?? empty),
    input_pinned_memory: policy?.input_pinned_memory ?? { enable: true },
    output_pinned_memory: policy?.output_pinned_memory ?? { enable: true },
  };
}

/** What a backend prefers for a model whose config says nothing. */
export interface BackendInstanceDefaults {
  readonly kind?: 'KIND_CPU' | 'KIND_GPU' | 'KIND_MODEL';
  readonly count?: number;
}

export interface InstanceGroupContext {
  readonly gpuCount: number;
  /** KIND_AUTO without `gpus` means the GPUs: only where the backend's library can use them. */
  readonly isAutoGpu: boolean;
  readonly backendDefaults?: BackendInstanceDefaults;
}

/** Names, kinds and counts of all instance groups. Ensembles have none. */
export function normalizeInstanceGroups(config: ModelConfig, context: InstanceGroupContext): ModelConfig {
  if (config.ensemble_scheduling !== undefined) return config;
  const isGiven = config.instance_group.length > 0;
  const groups = isGiven ? config.instance_group : [createGroup(config.name, context.backendDefaults)];
  const instance_group = groups.map((group, i) =>
    normalizeGroup(group, { ...context, backend: config.backend, defaultName: `${config.name}_${i}` }),
  );
  return { ...config, instance_group };
}

function createGroup(name: string, defaults: BackendInstanceDefaults | undefined): ModelInstanceGroup {
  return {
    name,
    kind: defaults?.kind ?? 'KIND_AUTO',
    count: 0,
    gpus: [],
    secondary_devices: [],
    profile: [],
    passive: false,
    host_policy: '',
  };
}

function normalizeGroup(
  group: ModelInstanceGroup,
  context: InstanceGroupContext & { backend: string; defaultName: string },
): ModelInstanceGroup {
  const { gpuCount, backend } = context;
  const isGpuWanted = context.isAutoGpu || group.gpus.length > 0;
  const hasItsGpus = isGpuWanted && gpuCount > 0 && group.gpus.every((id) => id >= 0 && id < gpuCount);
  const kind = group.kind !== 'KIND_AUTO' ? group.kind : hasItsGpus ? 'KIND_GPU' : 'KIND_CPU';
  const takesAllGpus = kind === 'KIND_GPU' && group.gpus.length === 0;
  return {
    ...group,
    name: group.name || context.defaultName,
    kind,
    count: group.count >= 1 ? group.count : (context.backendDefaults?.count ?? defaultCount(kind, backend)),
    gpus: takesAllGpus ? Array.from({ length: gpuCount }, (_, id) => id) : group.gpus,
  };
}

/** Triton runs two copies of a model of these backends on a CPU: one prepares while the other computes. */
function defaultCount(kind: string, backend: string): number {
  return kind === 'KIND_CPU' && (backend === 'onnxruntime' || backend === 'tensorflow') ? 2 : 1;
}
