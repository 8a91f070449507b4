// The rules for input, output, batch_input and batch_output, checked once the config is complete.
// Throws INVALID_ARG with Triton's texts, each ending in the model's name.

import type {
  BatchInput,
  BatchOutput,
  ModelConfig,
  ModelInput,
  ModelOutput,
} from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { validateStates } from './validate-state-config.ts';

const VARIABLE_DIM = -1;
const DIMS_RULE = 'must be integer >= 1, or -1 to indicate a variable-size dimension';

export function validateIoConfig(config: ModelConfig): void {
  const problem = findProblem(config);
  if (problem !== undefined) throw invalidArgument(`${problem} for ${config.name}`);
  validateStates(config.sequence_batching?.state ?? []);
}

/** The first rule that is broken, in Triton's order. */
function findProblem(config: ModelConfig): string | undefined {
  for (const input of config.input) {
    const problem = tensorProblem(config, input, 'model input') ?? formatProblem(input);
    if (problem !== undefined) return problem;
    if (input.is_shape_tensor && config.platform !== 'tensorrt_plan') return SHAPE_TENSOR_RULE;
  }
  for (const output of config.output) {
    const problem = tensorProblem(config, output, 'model output');
    if (problem !== undefined) return problem;
    if (output.is_shape_tensor && config.platform !== 'tensorrt_plan') return SHAPE_TENSOR_RULE;
  }
  return batchProblem(config);
}

const SHAPE_TENSOR_RULE = 'shape tensors are only supported for TensorRT platform';

function tensorProblem(config: ModelConfig, io: ModelInput | ModelOutput, what: string): string | undefined {
  if (io.name === '') return `${what} must specify 'name'`;
  const named = `${what} '${io.name}'`;
  if (io.data_type === 'TYPE_INVALID') return `${named} must specify 'data_type'`;
  if (io.dims.length === 0) return `${named} must specify 'dims'`;
  if (io.reshape?.shape.length === 0 && config.max_batch_size === 0) {
    return `${named} cannot have empty reshape for non-batching model as scalar tensors are not supported`;
  }
  if (!io.dims.every(isDim)) return `${named} dimension ${DIMS_RULE}`;
  return io.reshape === undefined ? undefined : reshapeProblem(named, io.dims, io.reshape.shape);
}

function isDim(dim: number): boolean {
  return dim >= 1 || dim === VARIABLE_DIM;
}

/**
 * Equal element counts; with variable dims, as many of them and equal counts between them:
 * [2, 4, -1, 6] → [8, -1, 1, 6] is sound, for 2·4 = 8 and 6 = 1·6.
 */
function reshapeProblem(
  named: string,
  dims: readonly number[],
  shape: readonly number[],
): string | undefined {
  if (!shape.every(isDim)) return `${named} reshape dimensions ${DIMS_RULE}`;
  const differs = `${named} has different size for dims and reshape`;
  const dimsTrunks = trunksOf(dims);
  const shapeTrunks = trunksOf(shape);
  const isVariable = dimsTrunks.length > 1;
  if (isVariable !== shapeTrunks.length > 1) return differs;
  if (dimsTrunks.length !== shapeTrunks.length) {
    return `${named} has different number of variable-size dimensions for dims and reshape`;
  }
  return dimsTrunks.every((count, i) => count === shapeTrunks[i]) ? undefined : differs;
}

/** Element counts of the stretches between variable dims; an empty shape is one element, a scalar. */
function trunksOf(dims: readonly number[]): number[] {
  const trunks = [1];
  for (const dim of dims) {
    if (dim === VARIABLE_DIM) trunks.push(1);
    else trunks[trunks.length - 1]! *= dim;
  }
  return trunks;
}

function formatProblem(input: ModelInput): string | undefined {
  const needsThree = input.format === 'FORMAT_NHWC' || input.format === 'FORMAT_NCHW';
  return needsThree && input.dims.length !== 3 ? 'model input NHWC/NCHW require 3 dims' : undefined;
}

function batchProblem(config: ModelConfig): string | undefined {
  const inputs = new Set(config.input.map((input) => input.name));
  const outputs = new Set(config.output.map((output) => output.name));
  for (const batchInput of config.batch_input) {
    const problem = batchInputProblem(batchInput, inputs);
    if (problem !== undefined) return problem;
  }
  for (const batchOutput of config.batch_output) {
    const problem = sourceProblem('output', batchOutput, inputs) ?? targetProblem(batchOutput, outputs);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function batchInputProblem(batch: BatchInput, inputs: ReadonlySet<string>): string | undefined {
  if (batch.source_input.length !== 1) return sourceProblem('input', batch, inputs);
  if (batch.data_type !== 'TYPE_INT32' && batch.data_type !== 'TYPE_FP32') {
    return 'batch input data type must be TYPE_INT32 or TYPE_FP32';
  }
  return sourceProblem('input', batch, inputs);
}

function sourceProblem(
  what: 'input' | 'output',
  batch: BatchInput | BatchOutput,
  inputs: ReadonlySet<string>,
): string | undefined {
  const sources = batch.source_input;
  if (sources.length !== 1) {
    return `batch ${what} kind '${batch.kind}' expects 1 source input, got ${sources.length}`;
  }
  const unknown = sources.find((name) => !inputs.has(name));
  return unknown === undefined ? undefined : `unknown source input name '${unknown}'`;
}

function targetProblem(batch: BatchOutput, outputs: ReadonlySet<string>): string | undefined {
  const seen = new Set<string>();
  for (const name of batch.target_name) {
    if (!outputs.has(name)) return `unknown target output name '${name}'`;
    if (seen.has(name)) return `target output name '${name}' can only be specified once`;
    seen.add(name);
  }
  return undefined;
}
