// HTTP body → InferRequest: the JSON head, the binary tensors behind it, and raw binary requests.
// Called once per request by the HTTP frontend. Checks come in Triton's order, so that of two mistakes the same
// one is named. What needs the model's config beyond names (datatype, shape, batch) is core's to check.

import { type DataType, elementBytesOf, INVALID_DATA_TYPE, isDataType } from '../../domain/datatype.ts';
import type { MemoryRange, RequestRanges } from '../../domain/memory-range.ts';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferRequest } from '../../domain/request.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';
import { type InputTensor, shapeText, type TensorBytes } from '../../domain/tensor.ts';
import { type BodyCursor, createBodyCursor, takeContiguous, takeViews } from './body-cursor.ts';
import { decodeRawRequest } from './decode-raw-request.ts';
import { decodeSettings } from './infer-settings.ts';
import { itemsOf, parseJson } from './json-reader.ts';
import { readJsonStrings, readJsonTensor } from './json-tensor.ts';
import {
  asArray,
  asBytesOrString,
  asString,
  asUnsigned,
  findMember,
  type JsonValue,
  requireMember,
} from './json-value.ts';
import { decodeRange } from './memory-range.ts';
import { decodeOutputs, type OutputOptions } from './output-options.ts';

export interface DecodeInferRequestOptions {
  readonly body: readonly Buffer[];
  readonly bodyLength: number;
  /** Leading bytes of the body that are JSON; 0 makes the whole body the data of the one input. */
  readonly jsonLength: number;
  readonly model: ModelView;
  /** --http-max-input-size */
  readonly inputBytesMax: number;
}

export interface DecodedInferRequest {
  readonly request: InferRequest;
  /** Only for an id that is not valid UTF-8: the response must echo these bytes. */
  readonly idBytes: Buffer | undefined;
  readonly outputs: OutputOptions;
  /** Absent when all tensors are in the request; otherwise the caller fills the inputs, which have no data yet. */
  readonly ranges?: RequestRanges;
}

const SIZE_ADVICE = 'Use --http-max-input-size to increase the limit.';
const INT64_MAX = 2n ** 63n - 1n;
const NO_BYTES: TensorBytes = [];

export function decodeInferRequest(options: DecodeInferRequestOptions): DecodedInferRequest {
  if (options.jsonLength === 0) return decodeRawRequest(options);
  return decodeJsonRequest(takeHead(options), options);
}

/** The JSON head as one buffer, and a cursor that stands behind it. */
export interface RequestHead {
  readonly json: Buffer;
  readonly cursor: BodyCursor;
}

export function takeHead(options: DecodeInferRequestOptions): RequestHead {
  const { jsonLength, inputBytesMax } = options;
  if (jsonLength > inputBytesMax) {
    throw invalidArgument(
      `request JSON size of ${jsonLength} bytes exceeds the maximum allowed input size of ${inputBytesMax} bytes. ${SIZE_ADVICE}`,
    );
  }
  if (jsonLength > options.bodyLength) {
    const missing = jsonLength - options.bodyLength;
    throw invalidArgument(`unexpected size for request JSON, expecting ${missing} more bytes`);
  }
  const cursor = createBodyCursor(options.body, options.bodyLength);
  return { json: takeContiguous(cursor, jsonLength), cursor };
}

export function decodeJsonRequest(
  head: RequestHead,
  options: DecodeInferRequestOptions,
): DecodedInferRequest {
  const root = parseJson(head.json);
  const idValue = findMember(root, 'id');
  const id = idValue === undefined ? '' : asString(idValue, "Unable to parse 'id'");
  const settings = decodeSettings(root);
  const { inputs, ranges } = decodeInputs({ root, id, cursor: head.cursor, options });
  checkFullyTaken(head.cursor, options.model);
  const { requestedOutputs, byName, rangeByName } = decodeOutputs(root);
  const isShared = ranges !== undefined || rangeByName !== undefined;
  return {
    ...(isShared ? { ranges: { inputs: ranges, outputs: rangeByName } } : {}),
    request: {
      id,
      inputs,
      requestedOutputs,
      parameters: settings.parameters,
      correlationId: settings.correlationId,
      sequenceFlags: settings.sequenceFlags,
      priority: settings.priority,
      timeoutUs: settings.timeoutUs,
      isRaw: false,
    },
    idBytes: idValue === undefined ? undefined : idBytesOf(idValue),
    outputs: {
      byName,
      isBinaryDefault: settings.isBinaryDefault,
      ...(rangeByName === undefined ? {} : { rangeByName }),
    },
  };
}

export function idBytesOf(value: JsonValue): Buffer | undefined {
  const found = asBytesOrString(value, "Unable to parse 'id'");
  if (typeof found === 'string') return undefined;
  const nul = found.bytes.indexOf(0);
  return nul < 0 ? found.bytes : found.bytes.subarray(0, nul);
}

export function checkFullyTaken(cursor: BodyCursor, model: ModelView): void {
  if (cursor.remaining > 0)
    throw invalidArgument(`unexpected additional input data for model '${model.name}'`);
}

interface InputsContext {
  readonly root: JsonValue;
  readonly id: string;
  readonly cursor: BodyCursor;
  readonly options: DecodeInferRequestOptions;
}

interface DecodedInputs {
  readonly inputs: readonly InputTensor[];
  /** Of those in shared memory, by place; undefined when there is none. */
  readonly ranges: ReadonlyMap<number, MemoryRange> | undefined;
}

function decodeInputs(context: InputsContext): DecodedInputs {
  const list = asArray(
    requireMember(context.root, 'inputs', "Unable to parse 'inputs'"),
    "Unable to parse 'inputs'",
  );
  const inputs: InputTensor[] = [];
  let ranges: Map<number, MemoryRange> | undefined;
  for (const item of itemsOf(list)) {
    checkOneSource(item);
    const name = asString(requireMember(item, 'name', "Unable to parse 'name'"), "Unable to parse 'name'");
    const datatype = asString(
      requireMember(item, 'datatype', "Unable to parse 'datatype'"),
      "Unable to parse 'datatype'",
    );
    const shape = decodeShape(item);
    if (inputs.some((input) => input.name === name)) {
      const id = context.id === '' ? '<id_unknown>' : context.id;
      throw invalidArgument(`[request id: ${id}] input '${name}' already exists in request`);
    }
    const known = isDataType(datatype) ? datatype : INVALID_DATA_TYPE;
    const data = decodeInputData(item, { name, datatype: known, shape }, context);
    if ('region' in data) {
      ranges ??= new Map();
      ranges.set(inputs.length, data);
      inputs.push({ name, datatype: known, shape, data: NO_BYTES, byteLength: Number(data.byteSize) });
    } else {
      inputs.push({ name, datatype: known, shape, data, byteLength: byteLengthOf(data) });
    }
  }
  return { inputs, ranges };
}

function byteLengthOf(data: TensorBytes): number {
  let length = 0;
  for (const view of data) length += view.length;
  return length;
}

function checkOneSource(item: JsonValue): void {
  const parameters = findMember(item, 'parameters');
  const hasData = findMember(item, 'data') !== undefined;
  const hasBinary = findMember(parameters, 'binary_data_size') !== undefined;
  const hasSharedMemory = findMember(parameters, 'shared_memory_region') !== undefined;
  const count = Number(hasData) + Number(hasBinary) + Number(hasSharedMemory);
  if (count === 1) return;
  const found =
    count === 0
      ? ' no field is set'
      : ` set${hasData ? " 'data'" : ''}${hasBinary ? " 'binary_data_size'" : ''}${hasSharedMemory ? " 'shared_memory_region'" : ''}`;
  throw invalidArgument(
    `Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But${found}`,
  );
}

/** Unsigned on the wire, int64 in Triton: what has the top bit set turns negative, and core refuses it. */
function decodeShape(item: JsonValue): number[] {
  const context = "Unable to parse 'shape'";
  const dims = itemsOf(asArray(requireMember(item, 'shape', context), context));
  return dims.map((dim) => {
    const value = asUnsigned(dim, context);
    return typeof value === 'number' ? value : Number(BigInt.asIntN(64, value));
  });
}

type InputHead = Omit<InputTensor, 'data' | 'byteLength'>;

function decodeInputData(
  item: JsonValue,
  input: InputHead,
  context: InputsContext,
): TensorBytes | MemoryRange {
  const parameters = findMember(item, 'parameters');
  const binarySize = findMember(parameters, 'binary_data_size');
  if (binarySize !== undefined) {
    const size = asUnsigned(binarySize, "Unable to parse 'binary_data_size'");
    return takeInput(context.cursor, { name: input.name, size, model: context.options.model });
  }
  return decodeRange(parameters) ?? decodeJsonData(item, input, context.options);
}

/** The next binary tensor of the body. */
export function takeInput(
  cursor: BodyCursor,
  input: { name: string; size: number | bigint; model: ModelView },
): TensorBytes {
  if (input.size > cursor.remaining) {
    const missing = BigInt(input.size) - BigInt(cursor.remaining);
    throw invalidArgument(
      `unexpected size for input '${input.name}', expecting ${missing} additional bytes for model '${input.model.name}'`,
    );
  }
  return takeViews(cursor, Number(input.size));
}

function decodeJsonData(item: JsonValue, input: InputHead, options: DecodeInferRequestOptions): TensorBytes {
  const elementCount = jsonElementCount(input);
  if (elementCount === 0) return NO_BYTES;
  const array = asArray(requireMember(item, 'data', "Unable to parse 'data'"), "Unable to parse 'data'");
  const { name, datatype } = input;
  if (datatype === 'BYTES') {
    const strings = readJsonStrings(array);
    checkJsonBytes(name, strings.length, options.inputBytesMax);
    return [strings];
  }
  const elementBytes = datatype === INVALID_DATA_TYPE ? 0 : elementBytesOf(datatype);
  if (BigInt(elementCount) * BigInt(elementBytes) > INT64_MAX) {
    throw invalidArgument(
      `byte size overflow for input '${name}': element count (${BigInt(elementCount)}) * data type size (${elementBytes}) exceeds maximum allowed size (${INT64_MAX})`,
    );
  }
  checkJsonBytes(name, elementCount * elementBytes, options.inputBytesMax);
  if (datatype === INVALID_DATA_TYPE) throw invalidArgument(`invalid datatype for input ${name}`);
  if (datatype === 'FP16' || datatype === 'BF16') throw halfPrecisionRefused(name, datatype);
  return [readJsonTensor({ array, datatype, elementCount })];
}

export function halfPrecisionRefused(name: string, datatype: DataType): StatusError {
  return invalidArgument(
    `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
  );
}

function checkJsonBytes(name: string, byteSize: number, inputBytesMax: number): void {
  if (byteSize <= inputBytesMax) return;
  throw invalidArgument(
    `JSON input '${name}' has a byte_size (${byteSize} bytes) that exceeds the maximum allowed value of ${inputBytesMax} bytes. ${SIZE_ADVICE}`,
  );
}

/** As Triton counts for JSON: no dimension at all is no element, and `data` is then ignored. */
function jsonElementCount({ name, shape }: InputHead): number {
  if (shape.length === 0 || shape.includes(0)) return 0;
  if (shape.some((dim) => dim < 0)) {
    throw invalidArgument(
      `invalid shape for input '${name}': shape ${shapeText(shape)} contains one or more invalid dimensions`,
    );
  }
  let count = 1n;
  for (const dim of shape) {
    count *= BigInt(dim);
    if (count > INT64_MAX) {
      throw invalidArgument(
        `invalid shape for input '${name}': shape ${shapeText(shape)} causes total element count to exceed maximum size of ${INT64_MAX}`,
      );
    }
  }
  return Number(count);
}
