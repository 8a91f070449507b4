// Completes a config from the session's own signature, as Triton's onnxruntime backend does. Pure.

import { sequenceInputs } from '../../backend/sequence-tensors.ts';
import { toConfigDataType } from '../../domain/datatype.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { datatypeOfElementType } from './element-type.ts';
import type { SessionSignature, TensorSignature } from './session-signature.ts';

/** Triton's default of `--backend-config=default-max-batch-size`. */
const DEFAULT_MAX_BATCH_SIZE = 4;

export interface CompletionRequest {
  readonly modelName: string;
  readonly config: ModelConfig;
  readonly signature: SessionSignature;
  readonly backendConfig: Readonly<Record<string, string>>;
}

export function autoCompleteConfig(request: CompletionRequest): ModelConfig {
  const { config, signature } = request;
  const hasInputs = config.input.length + config.batch_input.length > 0;
  const hasOutputs = config.output.length > 0;
  if (hasInputs && hasOutputs) return config;

  const maxBatchSize = completeMaxBatchSize(request);
  const completed: ModelConfig = { ...config, max_batch_size: maxBatchSize };
  const { inputs, outputs } = clientTensors(config, signature);
  if (!hasInputs) completed.input = inGraphMapOrder(inputs).map((t) => toInput(t, maxBatchSize));
  if (!hasOutputs) completed.output = inGraphMapOrder(outputs).map((t) => toOutput(t, maxBatchSize));
  const hasScheduler = config.dynamic_batching !== undefined || config.sequence_batching !== undefined;
  if (maxBatchSize > 1 && !hasScheduler) {
    completed.dynamic_batching = {
      preferred_batch_size: [],
      max_queue_delay_microseconds: 0,
      preserve_ordering: false,
      priority_levels: 0,
      default_priority_level: 0,
      priority_queue_policy: {},
    };
  }
  return completed;
}

/** Controls and states of sequences are no business of clients. */
function clientTensors(config: ModelConfig, signature: SessionSignature) {
  const hiddenInputs = new Set(sequenceInputs(config).map(({ name }) => name));
  const hiddenOutputs = new Set(config.sequence_batching?.state.map((state) => state.output_name));
  return {
    inputs: signature.inputs.filter((tensor) => !hiddenInputs.has(tensor.name)),
    outputs: signature.outputs.filter((tensor) => !hiddenOutputs.has(tensor.name)),
  };
}

function completeMaxBatchSize({ modelName, config, signature, backendConfig }: CompletionRequest): number {
  const isBatchable = [...signature.inputs, ...signature.outputs].every((tensor) => tensor.shape[0] === -1);
  if (isBatchable) {
    if (config.max_batch_size !== 0) return config.max_batch_size;
    const setting = Number.parseInt(backendConfig['default-max-batch-size'] ?? '', 10);
    return Number.isNaN(setting) ? DEFAULT_MAX_BATCH_SIZE : Math.max(setting, 0);
  }
  if (config.max_batch_size !== 0) {
    throw invalidArgument(
      `autofill failed for model '${modelName}': model does not support batching while non-zero ` +
        'max_batch_size is specified',
    );
  }
  return 0;
}

/** Triton walks a hash map that yields small sets last-inserted first, so clients see the graph's order reversed. */
function inGraphMapOrder(tensors: readonly TensorSignature[]): TensorSignature[] {
  return [...tensors].reverse();
}

function toInput(tensor: TensorSignature, maxBatchSize: number): ModelInput {
  return {
    name: tensor.name,
    data_type: configTypeOf(tensor),
    format: 'FORMAT_NONE',
    ...toDims(tensor, maxBatchSize),
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: false,
    is_non_linear_format_io: false,
  };
}

function toOutput(tensor: TensorSignature, maxBatchSize: number): ModelOutput {
  return {
    name: tensor.name,
    data_type: configTypeOf(tensor),
    ...toDims(tensor, maxBatchSize),
    label_filename: '',
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  };
}

function configTypeOf(tensor: TensorSignature): string {
  const datatype = datatypeOfElementType(tensor.elementType);
  return datatype === undefined ? 'TYPE_INVALID' : toConfigDataType(datatype);
}

function toDims(
  tensor: TensorSignature,
  maxBatchSize: number,
): { dims: number[]; reshape?: { shape: number[] } } {
  const dims = tensor.shape.slice(maxBatchSize > 0 ? 1 : 0);
  if (dims.length > 0) return { dims };
  return maxBatchSize > 0 ? { dims: [1], reshape: { shape: [] } } : { dims: [1] };
}
