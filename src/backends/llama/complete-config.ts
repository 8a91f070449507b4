// The tensors of every llama model: those of Triton's vLLM backend, so that its clients work, and ours beside them
// (docs/llm.md). Fills them into a config that names none. Pure.

import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

type ConfigType = ModelInput['data_type'];

interface TensorRow {
  readonly name: string;
  readonly type: ConfigType;
  readonly dim: 1 | -1;
}

const text = (name: string, dim: 1 | -1 = 1): TensorRow => ({ name, type: 'TYPE_STRING', dim });
const flag = (name: string): TensorRow => ({ name, type: 'TYPE_BOOL', dim: 1 });

export const INPUTS = [
  text('text_input'),
  flag('stream'),
  text('sampling_parameters'),
  flag('exclude_input_in_output'),
  flag('return_finish_reason'),
  flag('return_cumulative_logprob'),
  flag('return_logprobs'),
  flag('return_num_input_tokens'),
  flag('return_num_output_tokens'),
  text('embedding_request'),
  text('chat_request'),
  { name: 'prompt_token_ids', type: 'TYPE_INT32', dim: -1 },
  text('rerank_request'),
  text('tokenize_request'),
  flag('return_timings'),
] as const satisfies readonly TensorRow[];

export const OUTPUTS = [
  text('text_output', -1),
  text('finish_reason', -1),
  { name: 'cumulative_logprob', type: 'TYPE_FP32', dim: -1 },
  text('logprobs', -1),
  { name: 'num_input_tokens', type: 'TYPE_UINT32', dim: 1 },
  { name: 'num_output_tokens', type: 'TYPE_UINT32', dim: -1 },
  { name: 'num_cached_tokens', type: 'TYPE_UINT32', dim: 1 },
  text('timings'),
] as const satisfies readonly TensorRow[];

/** What is there already must be ours; what is missing is added. */
export function completeConfig(config: ModelConfig): ModelConfig {
  if (config.max_batch_size > 0) {
    throw invalidArgument(
      `model '${config.name}' has max_batch_size ${config.max_batch_size}; a llama model batches by itself, at every token: leave it out`,
    );
  }
  if (config.model_transaction_policy?.decoupled === false) {
    throw invalidArgument(`model '${config.name}' must be decoupled: a llama model answers token by token`);
  }
  for (const { name, data_type } of config.input) check(config.name, 'input', name, data_type, INPUTS);
  for (const { name, data_type } of config.output) check(config.name, 'output', name, data_type, OUTPUTS);
  const has = (tensors: readonly { name: string }[], name: string) =>
    tensors.some((tensor) => tensor.name === name);
  return {
    ...config,
    input: [...config.input, ...INPUTS.filter(({ name }) => !has(config.input, name)).map(toInput)],
    output: [...config.output, ...OUTPUTS.filter(({ name }) => !has(config.output, name)).map(toOutput)],
    model_transaction_policy: { decoupled: true },
  };
}

function check(
  model: string,
  kind: 'input' | 'output',
  name: string,
  type: ConfigType,
  known: readonly TensorRow[],
): void {
  const row = known.find((candidate) => candidate.name === name);
  if (row === undefined) {
    throw invalidArgument(
      `model '${model}' has ${kind} '${name}', which llama models do not have; leave ${kind}s out of the config, they are known`,
    );
  }
  if (row.type !== type)
    throw invalidArgument(`model '${model}', ${kind} '${name}': must be ${row.type}, not ${type}`);
}

function toInput({ name, type, dim }: TensorRow): ModelInput {
  return {
    ...{ name, data_type: type, dims: [dim], format: 'FORMAT_NONE' },
    ...{ is_shape_tensor: false, allow_ragged_batch: false, optional: true, is_non_linear_format_io: false },
  };
}

function toOutput({ name, type, dim }: TensorRow): ModelOutput {
  return {
    name,
    data_type: type,
    dims: [dim],
    label_filename: '',
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  };
}
