// InferResponse → ModelInferResponse or ModelStreamInferResponse: the hot path of gRPC answers. Called by the gRPC
// frontend. Small tensors are copied into one buffer with the rest; large ones are handed on as the views they are.

import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse, ParameterValue } from '../../domain/request.ts';
import { invalidArgument } from '../../domain/status.ts';
import type { OutputTensor, TensorBytes } from '../../domain/tensor.ts';
import { classify } from '../v2-json/classification.ts';
import { FIXED64, LENGTH, VARINT } from './proto-reader.ts';
import { ProtoWriter, varintBytes } from './proto-writer.ts';
import type { OutputOptions } from './to-infer-request.ts';

export interface EncodedMessage {
  readonly parts: readonly Buffer[];
  /** Of the message, without the headroom. */
  readonly byteLength: number;
}

export interface EncodeInferResponseOptions {
  readonly outputs: OutputOptions;
  /** For the labels and the batch dimension of classifications. */
  readonly model: ModelView;
  /** The first part begins with this many bytes for the caller to fill, such as the header of a gRPC frame. */
  readonly headroomBytes?: number;
}

export interface EncodeStreamResponseOptions extends EncodeInferResponseOptions {
  /** `triton_final_response`: the model said that no other response follows. */
  readonly isFinal: boolean;
}

/** A message of a stream without outputs: an error, or the empty final response of a decoupled model. */
export interface StreamNotice {
  /** Empty for a final response. */
  readonly errorMessage: string;
  readonly id: string;
  /** Empty when the error came before the execution. */
  readonly modelName: string;
  /** As in the request, so mostly empty. */
  readonly modelVersion: string;
  /** Undefined when the error came before the execution. */
  readonly isFinal: boolean | undefined;
  readonly headroomBytes?: number;
}

/** Above this a tensor is not copied. */
const COPY_BYTES_MAX = 16 * 1024;
/** gRPC's own limit. */
const MESSAGE_BYTES_MAX = 2 ** 31 - 1;
/** More than names, shapes and parameters usually need. */
const HEAD_BYTES = 256;
const ERROR_MESSAGE = 1;
const INFER_RESPONSE = 2;
/** A tag and the longest length. */
const WRAPPER_BYTES_MAX = 6;
const FINAL_RESPONSE = 'triton_final_response';
const NO_BYTES: TensorBytes = [];

/** Large tensors and the places in the written bytes where they belong. */
interface Draft {
  readonly writer: ProtoWriter;
  readonly cuts: { readonly at: number; readonly views: TensorBytes }[];
  cutBytes: number;
}

export function encodeInferResponse(
  response: InferResponse,
  options: EncodeInferResponseOptions,
): EncodedMessage {
  const start = options.headroomBytes ?? 0;
  const draft = createDraft(response, start);
  writeResponse(draft, response, options);
  return assemble(draft, { start: 0, headroomBytes: start });
}

export function encodeStreamInferResponse(
  response: InferResponse,
  options: EncodeStreamResponseOptions,
): EncodedMessage {
  const headroomBytes = options.headroomBytes ?? 0;
  // The wrapper's head is as long as the length of the response needs, so it is put before it afterwards.
  const responseStart = headroomBytes + WRAPPER_BYTES_MAX;
  const draft = createDraft(response, responseStart);
  writeResponse(draft, response, options, options.isFinal);
  const length = draft.writer.byteLength - responseStart + draft.cutBytes;
  const wrapperStart = responseStart - 1 - varintBytes(length);
  const written = draft.writer.finish();
  const head = new ProtoWriter(WRAPPER_BYTES_MAX);
  head.tag(INFER_RESPONSE, LENGTH);
  head.uint32(length);
  written.set(head.finish(), wrapperStart);
  return assemble(draft, { start: wrapperStart - headroomBytes, headroomBytes });
}

export function encodeStreamNotice(notice: StreamNotice): EncodedMessage {
  const headroomBytes = notice.headroomBytes ?? 0;
  const writer = new ProtoWriter(headroomBytes + HEAD_BYTES);
  writer.skip(headroomBytes);
  writeText(writer, ERROR_MESSAGE, notice.errorMessage);
  const start = writer.open(INFER_RESPONSE);
  writeText(writer, 1, notice.modelName);
  writeText(writer, 2, notice.modelVersion);
  writeText(writer, 3, notice.id);
  if (notice.isFinal !== undefined) writeParameter(writer, FINAL_RESPONSE, notice.isFinal);
  writer.close(start);
  return { parts: [writer.finish()], byteLength: writer.byteLength - headroomBytes };
}

function createDraft(response: InferResponse, skippedBytes: number): Draft {
  let size = HEAD_BYTES + skippedBytes;
  for (const { byteLength } of response.outputs) if (byteLength <= COPY_BYTES_MAX) size += byteLength;
  const writer = new ProtoWriter(size);
  writer.skip(skippedBytes);
  return { writer, cuts: [], cutBytes: 0 };
}

function writeResponse(
  draft: Draft,
  response: InferResponse,
  options: EncodeInferResponseOptions,
  isFinal?: boolean,
): void {
  const { writer } = draft;
  const outputs =
    options.outputs.size === 0
      ? response.outputs
      : response.outputs.map((output) => applyOption(output, options));
  writeText(writer, 1, response.modelName);
  writeText(writer, 2, String(response.modelVersion));
  writeText(writer, 3, response.id);
  if (response.parameters !== undefined) {
    for (const [name, value] of response.parameters) writeParameter(writer, name, value);
  }
  if (isFinal !== undefined) writeParameter(writer, FINAL_RESPONSE, isFinal);
  for (const output of outputs) writeOutput(writer, output);
  for (const output of outputs) writeRawContents(draft, output);
}

/** What the client gets of an output: its best classes, nothing when it lies in shared memory, else itself. */
function applyOption(output: OutputTensor, options: EncodeInferResponseOptions): OutputTensor {
  const option = options.outputs.get(output.name);
  if (option === undefined) return output;
  if (option.sharedMemory !== undefined) return { ...output, data: NO_BYTES, byteLength: 0 };
  return option.classCount > 0
    ? classify({ output, classCount: option.classCount, model: options.model })
    : output;
}

function writeText(writer: ProtoWriter, number: number, text: string): void {
  if (text === '') return;
  writer.tag(number, LENGTH);
  writer.string(text);
}

function writeParameter(writer: ProtoWriter, name: string, value: ParameterValue): void {
  const entry = writer.open(4);
  writer.tag(1, LENGTH);
  writer.string(name);
  const parameter = writer.open(2);
  switch (typeof value) {
    case 'boolean':
      writer.tag(1, VARINT);
      writer.bool(value);
      break;
    case 'bigint':
      writer.tag(2, VARINT);
      writer.int64(value);
      break;
    case 'string':
      writer.tag(3, LENGTH);
      writer.string(value);
      break;
    default:
      writer.tag(4, FIXED64);
      writer.double(value);
  }
  writer.close(parameter);
  writer.close(entry);
}

function writeOutput(writer: ProtoWriter, { name, datatype, shape }: OutputTensor): void {
  const start = writer.open(5);
  writeText(writer, 1, name);
  writeText(writer, 2, datatype);
  if (shape.length > 0) {
    const dims = writer.open(3);
    for (const dim of shape) writer.int64(dim);
    writer.close(dims);
  }
  writer.close(start);
}

/** One entry for each output, also for one without bytes: clients count them. */
function writeRawContents(draft: Draft, { data, byteLength }: OutputTensor): void {
  const { writer } = draft;
  writer.tag(6, LENGTH);
  writer.uint32(byteLength);
  if (byteLength > COPY_BYTES_MAX) {
    draft.cuts.push({ at: writer.byteLength, views: data });
    draft.cutBytes += byteLength;
    return;
  }
  for (const view of data) writer.raw(view);
}

function assemble(draft: Draft, place: { start: number; headroomBytes: number }): EncodedMessage {
  const { writer, cuts } = draft;
  const end = writer.byteLength;
  const byteLength = end - place.start - place.headroomBytes + draft.cutBytes;
  if (byteLength > MESSAGE_BYTES_MAX) {
    throw invalidArgument(
      `Response has byte size ${byteLength} which exceeds gRPC's byte size limit ${MESSAGE_BYTES_MAX}.`,
    );
  }
  if (cuts.length === 0) return { parts: [writer.finish(place.start)], byteLength };
  const parts: Buffer[] = [];
  let at = place.start;
  for (const cut of cuts) {
    parts.push(writer.finish(at, cut.at), ...cut.views);
    at = cut.at;
  }
  if (at < end) parts.push(writer.finish(at));
  return { parts, byteLength };
}
