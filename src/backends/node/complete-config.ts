// Fills what config.pbtxt leaves out from the `config` of the model's own definition. What config.pbtxt says stays. Pure.

import type { ModelSettings, TensorSettings } from '../../backend/model-sdk/define-model.ts';
import { DATA_TYPES, isDataType, toConfigDataType } from '../../domain/datatype.ts';
import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelInput,
  ModelOutput,
} from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

export function completeConfig(config: ModelConfig, settings: ModelSettings): ModelConfig {
  const completed: ModelConfig = { ...config };
  const { inputs = [], outputs = [], maxBatchSize = 0, dynamicBatching, decoupled } = settings;
  if (config.input.length === 0) completed.input = inputs.map((tensor) => toInput(tensor, config.name));
  if (config.output.length === 0) completed.output = outputs.map((tensor) => toOutput(tensor, config.name));
  // A config that names all of its tensors means it when it says nothing of batches.
  const isBare = config.input.length === 0 || config.output.length === 0;
  if (config.max_batch_size === 0 && isBare)
    completed.max_batch_size = checkBatchSize(maxBatchSize, config.name);
  const hasScheduler = config.dynamic_batching !== undefined || config.sequence_batching !== undefined;
  if (dynamicBatching && !hasScheduler && completed.max_batch_size > 0) {
    completed.dynamic_batching = toDynamicBatching(dynamicBatching);
  }
  if (decoupled !== undefined && config.model_transaction_policy === undefined) {
    completed.model_transaction_policy = { decoupled };
  }
  return completed;
}

function checkBatchSize(size: number, model: string): number {
  if (Number.isSafeInteger(size) && size >= 0) return size;
  throw invalidArgument(`model '${model}' has maxBatchSize ${size}, which is no whole number from 0 on`);
}

function toInput(tensor: TensorSettings, model: string): ModelInput {
  return {
    ...toTensor(tensor, model),
    format: 'FORMAT_NONE',
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: tensor.optional ?? false,
    is_non_linear_format_io: false,
  };
}

function toOutput(tensor: TensorSettings, model: string): ModelOutput {
  return {
    ...toTensor(tensor, model),
    label_filename: '',
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  };
}

function toTensor(
  { name, datatype, dims }: TensorSettings,
  model: string,
): Pick<ModelInput, 'name' | 'data_type' | 'dims'> {
  const where = `tensor '${name}' in the config of model '${model}'`;
  if (!isDataType(datatype)) {
    throw invalidArgument(
      `${where} has datatype '${String(datatype)}'; it must be one of ${DATA_TYPES.join(', ')}`,
    );
  }
  if (!Array.isArray(dims) || !dims.every(Number.isSafeInteger)) {
    throw invalidArgument(`${where} must have dims, an array of whole numbers`);
  }
  return { name, data_type: toConfigDataType(datatype), dims: [...dims] };
}

function toDynamicBatching(
  setting: Exclude<ModelSettings['dynamicBatching'], undefined | false>,
): ModelDynamicBatching {
  const { preferredBatchSize = [], maxQueueDelayUs = 0 } = setting === true ? {} : setting;
  return {
    preferred_batch_size: [...preferredBatchSize],
    max_queue_delay_microseconds: maxQueueDelayUs,
    preserve_ordering: false,
    priority_levels: 0,
    default_priority_level: 0,
    priority_queue_policy: {},
  };
}
