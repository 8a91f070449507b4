// A decoded ModelInferRequest → InferRequest, with Triton's checks in Triton's order and words: parameters, repeated
// inputs, data of the inputs, options of the outputs. Called by the gRPC frontend after the model has been found.
// What needs the model's config is core's to check.

import { type DataType, elementBytesOf, INVALID_DATA_TYPE, isDataType } from '../../domain/datatype.ts';
import type { InferRequest } from '../../domain/request.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';
import { contiguous, type InputTensor, type TensorBytes } from '../../domain/tensor.ts';
import type { ModelInferRequest, RequestInput, RequestOutput } from './decode-infer-request.ts';
import { toSettings, untilNul } from './request-settings.ts';
import { type SharedMemoryRange, toSharedMemoryRange } from './shared-memory-parameters.ts';
import {
  CONTENT_LISTS,
  type ContentName,
  narrow,
  type TypedContents,
  withLengths,
} from './typed-contents.ts';

export interface OutputOption {
  /** 0 sends the tensor itself. */
  readonly classCount: number;
  readonly sharedMemory?: SharedMemoryRange;
}

/** Only outputs that are sent in another way than as raw bytes. */
export type OutputOptions = ReadonlyMap<string, OutputOption>;

/** `inputs[inputIndex]` of the request has no data yet: the frontend fills it in from the region. */
export interface SharedMemoryInput extends SharedMemoryRange {
  readonly inputIndex: number;
}

export interface ConvertedInferRequest {
  readonly request: InferRequest;
  readonly outputs: OutputOptions;
  readonly sharedMemoryInputs: readonly SharedMemoryInput[];
  readonly isEmptyFinalWanted: boolean;
}

export interface ToInferRequestOptions {
  /** --grpc-header-forward-pattern: become string parameters. */
  readonly forwardedHeaders?: ReadonlyMap<string, string> | undefined;
}

const NO_BYTES: TensorBytes = [];
const NO_NAMES: readonly string[] = [];
const NO_OPTIONS: OutputOptions = new Map();
const NO_SHARED_MEMORY: readonly SharedMemoryInput[] = [];

const DATATYPE_OF_LIST: Readonly<Record<ContentName, DataType>> = {
  bool: 'BOOL',
  int: 'INT32',
  int64: 'INT64',
  uint: 'UINT32',
  uint64: 'UINT64',
  fp32: 'FP32',
  fp64: 'FP64',
  bytes: 'BYTES',
};

export function toInferRequest(
  message: ModelInferRequest,
  options: ToInferRequestOptions = {},
): ConvertedInferRequest {
  const id = untilNul(message.id);
  const settings = toSettings(message.parameters);
  checkRepeatedInputs(message.inputs, id);
  const { forwardedHeaders } = options;
  if (forwardedHeaders !== undefined && forwardedHeaders.size > 0) {
    settings.parameters ??= new Map();
    for (const [name, value] of forwardedHeaders) settings.parameters.set(name, value);
  }
  const { inputs, sharedMemoryInputs } = toInputs(message);
  const outputs = toOutputOptions(message.outputs);
  return {
    request: {
      id,
      inputs,
      requestedOutputs: outputNames(message.outputs),
      parameters: settings.parameters,
      correlationId: settings.correlationId,
      sequenceFlags: settings.sequenceFlags,
      priority: settings.priority,
      timeoutUs: settings.timeoutUs,
      isRaw: false,
    },
    outputs,
    sharedMemoryInputs,
    isEmptyFinalWanted: settings.isEmptyFinalWanted,
  };
}

function checkRepeatedInputs(inputs: readonly RequestInput[], id: string): void {
  if (inputs.length < 2) return;
  const names = new Set<string>();
  for (const { name } of inputs) {
    if (names.has(name)) {
      const shownId = id === '' ? '<id_unknown>' : id;
      throw invalidArgument(`[request id: ${shownId}] input '${name}' already exists in request`);
    }
    names.add(name);
  }
}

function outputNames(outputs: readonly RequestOutput[]): readonly string[] {
  if (outputs.length === 0) return NO_NAMES;
  if (outputs.length === 1) return [outputs[0]!.name];
  return [...new Set(outputs.map((output) => output.name))];
}

// --- inputs -----------------------------------------------------------------------------------------------------

function toInputs(message: ModelInferRequest): {
  inputs: InputTensor[];
  sharedMemoryInputs: readonly SharedMemoryInput[];
} {
  const inputs: InputTensor[] = [];
  let sharedMemoryInputs: SharedMemoryInput[] | undefined;
  // Only inputs without contents and shared memory take a raw entry; entries that are left over are ignored.
  let rawIndex = 0;
  for (let inputIndex = 0; inputIndex < message.inputs.length; inputIndex++) {
    const input = message.inputs[inputIndex]!;
    const { name, shape } = input;
    const datatype = isDataType(input.datatype) ? input.datatype : INVALID_DATA_TYPE;
    const range = toSharedMemoryRange(name, input.parameters);
    let data = NO_BYTES;
    if (range !== undefined) {
      if (input.contents !== undefined) throw contentsWithSharedMemory(input, message);
      sharedMemoryInputs ??= [];
      sharedMemoryInputs.push({ inputIndex, ...range });
    } else if (input.contents !== undefined) {
      if (message.rawContents.length > 0) throw contentsWithRaw(input, message);
      data = toContentsBytes({ input, contents: input.contents, datatype, message });
    } else {
      if (rawIndex >= message.rawContents.length) throw noData(input, message);
      data = message.rawContents[rawIndex]!;
      rawIndex += 1;
    }
    inputs.push({ name, datatype, shape, data, byteLength: byteLengthOf(data) });
  }
  return { inputs, sharedMemoryInputs: sharedMemoryInputs ?? NO_SHARED_MEMORY };
}

function byteLengthOf(data: TensorBytes): number {
  let length = 0;
  for (const view of data) length += view.length;
  return length;
}

interface ContentsPlace {
  readonly input: RequestInput;
  readonly contents: TypedContents;
  readonly datatype: InputTensor['datatype'];
  readonly message: ModelInferRequest;
}

/** Contents without any element are an empty tensor. */
function toContentsBytes({ input, contents, datatype, message }: ContentsPlace): TensorBytes {
  let data: TensorBytes | undefined;
  for (const { name } of CONTENT_LISTS) {
    const pieces = contents.get(name);
    if (pieces === undefined) continue;
    if (data !== undefined) throw unexpectedContents(input, message, ', binary data was already supplied.');
    const given = datatypeOfList(name, datatype);
    if (given !== datatype) {
      throw unexpectedContents(input, message, ` of type '${given}', expected datatype '${datatype}'`);
    }
    data = [listBytes(name, given, pieces)];
  }
  return data ?? NO_BYTES;
}

/** The datatype that a list stands for: the integer lists serve the narrow ones too. */
function datatypeOfList(list: ContentName, wanted: InputTensor['datatype']): DataType {
  const isNarrow =
    (list === 'int' && (wanted === 'INT8' || wanted === 'INT16')) ||
    (list === 'uint' && (wanted === 'UINT8' || wanted === 'UINT16'));
  return isNarrow ? wanted : DATATYPE_OF_LIST[list];
}

function listBytes(list: ContentName, datatype: DataType, pieces: readonly Buffer[]): Buffer {
  if (list === 'bytes') return withLengths(pieces);
  const elementBytes = elementBytesOf(datatype);
  return (list === 'int' || list === 'uint') && elementBytes < 4
    ? narrow(pieces, elementBytes)
    : contiguous(pieces);
}

function of(input: RequestInput, message: ModelInferRequest): string {
  return `input tensor '${input.name}' for model '${message.modelName}'`;
}

function unexpectedContents(input: RequestInput, message: ModelInferRequest, reason: string): StatusError {
  return invalidArgument(`unexpected explicit tensor data for ${of(input, message)}${reason}`);
}

function contentsWithSharedMemory(input: RequestInput, message: ModelInferRequest): StatusError {
  return invalidArgument(`unexpected 'content' provided when using shared memory for ${of(input, message)}`);
}

function contentsWithRaw(input: RequestInput, message: ModelInferRequest): StatusError {
  return invalidArgument(
    `contents field must not be specified when using raw_input_contents for '${input.name}' for model '${message.modelName}'`,
  );
}

function noData(input: RequestInput, message: ModelInferRequest): StatusError {
  return invalidArgument(`unable to find data for ${of(input, message)} in request.`);
}

// --- outputs ----------------------------------------------------------------------------------------------------

/** An output listed twice is one output; of each option its first entry decides. */
function toOutputOptions(outputs: readonly RequestOutput[]): OutputOptions {
  let options: Map<string, OutputOption> | undefined;
  for (const { name, parameters } of outputs) {
    if (parameters === undefined) continue;
    const range = toSharedMemoryRange(name, parameters);
    const classCount = toClassCount(parameters);
    if (range !== undefined && classCount !== undefined) {
      throw invalidArgument("output can't set both 'shared_memory_region' and 'classification'");
    }
    if (range === undefined && classCount === undefined) continue;
    options ??= new Map();
    const before = options.get(name);
    const sharedMemory = before?.sharedMemory ?? range;
    options.set(name, {
      classCount: before?.classCount || classCount || 0,
      ...(sharedMemory === undefined ? {} : { sharedMemory }),
    });
  }
  return options ?? NO_OPTIONS;
}

function toClassCount(parameters: NonNullable<RequestOutput['parameters']>): number | undefined {
  const parameter = parameters.get('classification');
  if (parameter === undefined) return undefined;
  if (parameter.kind !== 'int64') {
    throw invalidArgument("invalid value type for 'classification' parameter, expected int64_param");
  }
  if (parameter.value <= 0n) {
    throw invalidArgument("invalid value for 'classification' parameter, expected >= 0");
  }
  return Number(parameter.value);
}
