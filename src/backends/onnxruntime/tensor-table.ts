// Everything about an instance's tensors that can be decided when it starts. Execution only reads it.
//
//   ExecuteInput.index:   config.input … │ sequence_batching.control_input … │ state[].input_name …
//   ExecuteOutput.index:  config.output … │ state[].output_name …

import { sequenceInputs } from '../../backend/sequence-tensors.ts';
import { elementBytesOf } from '../../domain/datatype.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { internal } from '../../domain/status.ts';
import { elementCountOf } from '../../domain/tensor.ts';
import { datatypeOfElementType } from './element-type.ts';
import { addressOfBytes, cString } from './native-memory.ts';
import type { SessionSignature, TensorSignature } from './session-signature.ts';

export interface NativeName {
  readonly name: string;
  readonly address: bigint;
  /** Keeps the memory behind `address`. */
  readonly memory: Buffer;
}

export interface InputEntry extends NativeName {
  readonly elementType: number;
  readonly elementBytes: number;
  readonly isRagged: boolean;
}

export interface OutputEntry extends NativeName {
  readonly elementType: number;
  readonly elementBytes: number;
  /** Dims and bytes of one row, or of the whole tensor where the model does not batch; unknown until it ran: undefined. */
  fixed: { readonly dims: readonly number[]; readonly byteLength: number } | undefined;
  /** What a scalar of the model is called in the config. */
  readonly scalarDims: readonly number[];
  /** BATCH_SCATTER_WITH_INPUT_SHAPE: the shape, -1 to be filled from the input at `sourceIndex`. */
  readonly scatter: { readonly shape: readonly number[]; readonly sourceIndex: number } | undefined;
}

export interface TensorTable {
  readonly inputs: readonly InputEntry[];
  readonly outputs: readonly OutputEntry[];
  /** The inputs from here on are states. */
  readonly stateInputStart: number;
  /** Outputs of config.output; those behind are state and always produced. */
  readonly configOutputCount: number;
}

export function makeTensorTable(config: ModelConfig, signature: SessionSignature): TensorTable {
  const sequence = config.sequence_batching;
  const inputTensors = [...signature.inputs, ...signature.overridable];
  const inputs = [
    ...config.input.map((input) => toInput(findTensor(inputTensors, input.name), input.allow_ragged_batch)),
    ...sequenceInputs(config).map(({ name }) => toInput(findTensor(inputTensors, name), false)),
  ];
  const outputs = [
    ...config.output.map((output) => toOutput(config, findTensor(signature.outputs, output.name), output)),
    ...(sequence?.state ?? []).map((state) =>
      toOutput(config, findTensor(signature.outputs, state.output_name), state),
    ),
  ];
  return {
    inputs,
    outputs,
    stateInputStart: inputs.length - (sequence?.state.length ?? 0),
    configOutputCount: config.output.length,
  };
}

export function nativeName(name: string): NativeName {
  const memory = cString(name);
  return { name, memory, address: addressOfBytes(memory) };
}

function findTensor(tensors: readonly TensorSignature[], name: string): TensorSignature {
  const tensor = tensors.find((candidate) => candidate.name === name);
  if (tensor === undefined) throw internal(`tensor '${name}' is not in the model`);
  return tensor;
}

function elementBytes(tensor: TensorSignature): number {
  return elementBytesOf(datatypeOfElementType(tensor.elementType)!);
}

function toInput(tensor: TensorSignature, isRagged: boolean): InputEntry {
  return {
    ...nativeName(tensor.name),
    elementType: tensor.elementType,
    elementBytes: elementBytes(tensor),
    isRagged,
  };
}

function toOutput(
  config: ModelConfig,
  tensor: TensorSignature,
  declared: { dims: readonly number[]; reshape?: { shape: readonly number[] } },
): OutputEntry {
  const isBatching = config.max_batch_size > 0;
  const dims = declared.reshape?.shape ?? declared.dims;
  const batchOutput = config.batch_output.find((entry) => entry.target_name.includes(tensor.name));
  const sourceIndex = config.input.findIndex((input) => input.name === batchOutput?.source_input[0]);
  const entry = {
    ...nativeName(tensor.name),
    elementType: tensor.elementType,
    elementBytes: elementBytes(tensor),
    scalarDims: dims,
    scatter:
      batchOutput === undefined ? undefined : { shape: isBatching ? [-1, ...dims] : [...dims], sourceIndex },
  };
  return { ...entry, fixed: entry.scatter === undefined ? fixedOf(tensor, isBatching) : undefined };
}

/** Strings are of unknown size, and so is a tensor without declared dims. */
function fixedOf(tensor: TensorSignature, isBatching: boolean): OutputEntry['fixed'] {
  const dims = tensor.shape.slice(isBatching ? 1 : 0);
  const bytes = elementBytes(tensor);
  if (bytes === 0 || tensor.shape.length === 0 || dims.some((dim) => dim < 0)) return undefined;
  return { dims, byteLength: elementCountOf(dims) * bytes };
}
