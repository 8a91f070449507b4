// The inputs and outputs of a model version, worked out from its config once at load, so that a request only
// looks things up.

import { type DataType, elementBytesOf, fromConfigDataType } from '../../domain/datatype.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import { internal } from '../../domain/status.ts';

export interface InputSpec extends TensorSpec {
  readonly index: number;
  readonly elementBytes: number;
  /** Dims as error texts show them: with the batch dimension as -1. */
  readonly expectedShape: readonly number[];
  readonly reshape: readonly number[] | undefined;
  readonly isRagged: boolean;
  /** Requests with different shapes cannot share a batch. */
  readonly isShapeKeyed: boolean;
}

export interface OutputSpec extends TensorSpec {
  readonly index: number;
  readonly reshape: readonly number[] | undefined;
}

export interface TensorTable {
  readonly inputs: readonly InputSpec[];
  readonly outputs: readonly OutputSpec[];
  readonly inputByName: ReadonlyMap<string, InputSpec>;
  readonly outputByName: ReadonlyMap<string, OutputSpec>;
  readonly requiredCount: number;
  readonly hasBatchKey: boolean;
}

export function createTensorTable(config: ModelConfig): TensorTable {
  const inputs = config.input.map((input, index) => toInputSpec(input, index, config.max_batch_size > 0));
  const outputs = config.output.map((output, index) => toOutputSpec(output, index));
  return {
    inputs,
    outputs,
    inputByName: new Map(inputs.map((input) => [input.name, input])),
    outputByName: new Map(outputs.map((output) => [output.name, output])),
    requiredCount: inputs.filter((input) => !input.optional).length,
    hasBatchKey: inputs.some((input) => input.isShapeKeyed || input.optional),
  };
}

function toInputSpec(input: ModelInput, index: number, isBatching: boolean): InputSpec {
  const datatype = datatypeOf(input);
  return {
    index,
    name: input.name,
    datatype,
    dims: input.dims,
    optional: input.optional,
    elementBytes: elementBytesOf(datatype),
    expectedShape: isBatching ? [-1, ...input.dims] : input.dims,
    reshape: input.reshape?.shape,
    isRagged: input.allow_ragged_batch,
    isShapeKeyed: !input.allow_ragged_batch && input.dims.includes(-1),
  };
}

function toOutputSpec(output: ModelOutput, index: number): OutputSpec {
  return {
    index,
    name: output.name,
    datatype: datatypeOf(output),
    dims: output.dims,
    optional: false,
    reshape: output.reshape?.shape,
  };
}

function datatypeOf(tensor: ModelInput | ModelOutput): DataType {
  const datatype = fromConfigDataType(tensor.data_type);
  if (datatype === undefined) throw internal(`tensor '${tensor.name}' has no datatype`);
  return datatype;
}

/**
 * `shape` fits `from` (dims with -1 for variable sizes); the answer is the same tensor in the form of `to`, the
 * variable sizes carried over in order, with `batch` dimensions in front left as they are.
 */
export function reshapeTo(
  shape: readonly number[],
  forms: { from: readonly number[]; to: readonly number[]; batchDims: number },
): number[] {
  const variable: number[] = [];
  for (let i = 0; i < forms.from.length; i++) {
    if (forms.from[i] === -1) variable.push(shape[forms.batchDims + i]!);
  }
  let next = 0;
  const tail = forms.to.map((dim) => (dim === -1 ? variable[next++]! : dim));
  return [...shape.slice(0, forms.batchDims), ...tail];
}
