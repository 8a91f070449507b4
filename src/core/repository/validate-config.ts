// Validation A of the load pipeline: what must hold for a normalised config before its backend is loaded, and
// again after auto-completion. Throws INVALID_ARG with Triton's own texts; never changes the config.
// Tensors, instance groups, sequences and ensembles have a file each.

import type { ModelConfig, ModelDynamicBatching, ModelQueuePolicy } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { ENSEMBLE_PLATFORM, validateEnsembleScheduling } from './validate-ensemble-config.ts';
import { ROUTER_PLATFORM, validateRouterConfig } from './validate-router-config.ts';
import { validateSequenceBatching } from './validate-sequence-config.ts';

export { validateInstanceGroups } from './validate-instance-groups.ts';
export { validateIoConfig } from './validate-io-config.ts';

export function validateModelConfig(config: ModelConfig): void {
  if (config.name === '') throw invalidArgument("model configuration must specify 'name'");
  validateBackend(config);
  if (config.max_batch_size < 0) {
    throw invalidArgument(`'max_batch_size' must be non-negative value for ${config.name}`);
  }
  if (config.dynamic_batching !== undefined) validateDynamicBatching(config, config.dynamic_batching);
  if (config.sequence_batching !== undefined) validateSequenceBatching(config, config.sequence_batching);
  validateEnsemble(config);
  validateResponseCache(config);
  validateMetrics(config);
  validateRouterConfig(config);
}

/** Platforms that belong to one backend. Any other platform or backend is the user's own. */
const BACKEND_OF_PLATFORM: ReadonlyMap<string, string> = new Map([
  ['tensorflow_savedmodel', 'tensorflow'],
  ['tensorflow_graphdef', 'tensorflow'],
  ['tensorrt_plan', 'tensorrt'],
  ['onnxruntime_onnx', 'onnxruntime'],
  ['pytorch_libtorch', 'pytorch'],
  ['libtorch', 'pytorch'],
  ['torch_aoti', 'pytorch'],
]);
const BACKENDS_WITH_PLATFORM: ReadonlySet<string> = new Set(BACKEND_OF_PLATFORM.values());

function validateBackend(config: ModelConfig): void {
  const { name, platform, backend } = config;
  if (platform === ENSEMBLE_PLATFORM) {
    if (backend === '') return;
    throw invalidArgument(
      `Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`,
    );
  }
  if (platform === ROUTER_PLATFORM && backend === '') return;
  if (backend === '') throw invalidArgument(`unexpected platform type '${platform}' for ${name}`);
  // Both must be of one known backend, or both unknown to us.
  const ofPlatform = BACKEND_OF_PLATFORM.get(platform) ?? '';
  const ofBackend = BACKENDS_WITH_PLATFORM.has(backend) ? backend : '';
  if (ofPlatform !== ofBackend) {
    throw invalidArgument(`unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`);
  }
}

function validateDynamicBatching(config: ModelConfig, batching: ModelDynamicBatching): void {
  for (const size of batching.preferred_batch_size) {
    if (size <= 0)
      throw invalidArgument(`dynamic batching preferred size must be positive for ${config.name}`);
    if (size > config.max_batch_size) {
      throw invalidArgument(`dynamic batching preferred size must be <= max batch size for ${config.name}`);
    }
  }
  validatePriorities(config.name, batching);
  if (batching.preserve_ordering) validateOrdering(config.name, batching);
}

function validatePriorities(modelName: string, batching: ModelDynamicBatching): void {
  const levels = batching.priority_levels;
  if (levels === 0) return;
  const range = `in range [1, ${levels}] for ${modelName}`;
  const isLevel = (level: number) => level >= 1 && level <= levels;
  if (!isLevel(batching.default_priority_level)) {
    throw invalidArgument(`default priority level must be ${range}`);
  }
  if (!Object.keys(batching.priority_queue_policy).every((level) => isLevel(Number(level)))) {
    throw invalidArgument(`priority queue policy must have priority level ${range}`);
  }
}

/** Answers in order of arrival leave no room for priorities, nor for requests that are put off. */
function validateOrdering(modelName: string, batching: ModelDynamicBatching): void {
  if (batching.priority_levels > 1) {
    throw invalidArgument(
      `Only one priority level is allowed when 'preserve_ordering' is true for ${modelName}`,
    );
  }
  const policies = [batching.default_queue_policy, ...Object.values(batching.priority_queue_policy)];
  if (policies.some(isDelaying)) {
    throw invalidArgument(
      `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${modelName}`,
    );
  }
}

function isDelaying(policy: ModelQueuePolicy | undefined): boolean {
  return policy?.timeout_action === 'DELAY' && policy.default_timeout_microseconds !== 0;
}

function validateEnsemble(config: ModelConfig): void {
  if (config.ensemble_scheduling !== undefined) {
    validateEnsembleScheduling(config, config.ensemble_scheduling.step);
  } else if (config.platform === ENSEMBLE_PLATFORM) {
    throw invalidArgument(
      `ensemble scheduling must be set for ensemble ${config.name} whose platform is ${ENSEMBLE_PLATFORM}`,
    );
  }
}

function validateResponseCache(config: ModelConfig): void {
  if (config.response_cache?.enable !== true) return;
  const refuse = (what: string) =>
    invalidArgument(
      `Response Cache does not currently support model ${config.name} with ${what}. Please disable the response cache.`,
    );
  if (config.sequence_batching !== undefined) throw refuse('sequence batching scheduler');
  if (config.model_transaction_policy?.decoupled) throw refuse("'decoupled' transaction policy");
}

function validateMetrics(config: ModelConfig): void {
  for (const control of config.model_metrics?.metric_control ?? []) {
    if (control.metric_identifier === undefined) {
      throw invalidArgument("metric control must specify 'metric_identifier'");
    }
    if (control.metric_identifier.family === '') {
      throw invalidArgument("metric identifier must specify non-empty 'family'");
    }
    if (control.histogram_options === undefined) {
      throw invalidArgument("metric control must specify 'histogram_options'");
    }
    if (control.histogram_options.buckets.length === 0) {
      throw invalidArgument("histogram options must specify non-empty 'buckets'");
    }
  }
}
