// ModelInferRequest → plain data, in one pass: the hot path of gRPC. Tensors stay views on the received message.
// Called by the gRPC frontend for ModelInfer and for each message of ModelStreamInfer. Only the form of the message
// is checked here (ProtoError); what it means, and whether it may be, is to-infer-request.ts.

import type { TensorBytes } from '../../domain/tensor.ts';
import { ProtoReader } from './proto-reader.ts';
import { splitRawContents } from './split-raw-contents.ts';
import { readContents, type TypedContents } from './typed-contents.ts';

/** `InferParameter` with the member that was set; `unset` when none was. */
export type RequestParameter =
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'int64'; readonly value: bigint }
  | { readonly kind: 'uint64'; readonly value: bigint }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'double'; readonly value: number }
  | { readonly kind: 'unset' };

/** In the order of the message; undefined when there are none. */
export type RequestParameters = ReadonlyMap<string, RequestParameter> | undefined;

export interface RequestInput {
  name: string;
  datatype: string;
  /** int64 on the wire: may be negative, and beyond 2^53 is the nearest number. */
  shape: number[];
  parameters: RequestParameters;
  contents: TypedContents | undefined;
}

export interface RequestOutput {
  name: string;
  parameters: RequestParameters;
}

export interface ModelInferRequest {
  modelName: string;
  /** As sent; empty when the server may choose. */
  modelVersion: string;
  id: string;
  parameters: RequestParameters;
  readonly inputs: RequestInput[];
  readonly outputs: RequestOutput[];
  readonly rawContents: TensorBytes[];
}

/** Up to this size one copy is cheaper than many small views. */
const JOIN_BYTES_MAX = 64 * 1024;
const UNSET: RequestParameter = { kind: 'unset' };
const NO_BYTES: TensorBytes = [];

/** Throws ProtoError. The result holds views on `message`, which must not change as long as it is in use. */
export function decodeInferRequest(message: Buffer | readonly Buffer[]): ModelInferRequest {
  const request: ModelInferRequest = {
    modelName: '',
    modelVersion: '',
    id: '',
    parameters: undefined,
    inputs: [],
    outputs: [],
    rawContents: [],
  };
  readRequest(new ProtoReader(headOf(message, request)), request);
  return request;
}

/** One buffer to decode; raw tensors of a large message in pieces are already taken from it. */
function headOf(message: Buffer | readonly Buffer[], request: ModelInferRequest): Buffer {
  if (Buffer.isBuffer(message)) return message;
  if (message.length === 1) return message[0]!;
  let byteLength = 0;
  for (const piece of message) byteLength += piece.length;
  const split = byteLength > JOIN_BYTES_MAX ? splitRawContents(message) : undefined;
  if (split === undefined) return Buffer.concat(message, byteLength);
  request.rawContents.push(...split.rawContents);
  return split.head;
}

function readRequest(reader: ProtoReader, request: ModelInferRequest): void {
  let parameters: Map<string, RequestParameter> | undefined;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        request.modelName = reader.name();
        break;
      case 0x12:
        request.modelVersion = reader.name();
        break;
      case 0x1a:
        request.id = reader.string();
        break;
      case 0x22:
        parameters ??= new Map();
        readParameter(reader, parameters);
        break;
      case 0x2a:
        request.inputs.push(readInput(reader));
        break;
      case 0x32:
        request.outputs.push(readOutput(reader));
        break;
      case 0x3a: {
        const bytes = reader.bytes();
        request.rawContents.push(bytes.length === 0 ? NO_BYTES : [bytes]);
        break;
      }
      default:
        reader.skip(tag);
    }
  }
  request.parameters = parameters;
}

function readInput(reader: ProtoReader): RequestInput {
  const input: RequestInput = {
    name: '',
    datatype: '',
    shape: [],
    parameters: undefined,
    contents: undefined,
  };
  let parameters: Map<string, RequestParameter> | undefined;
  const outerEnd = reader.enter();
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        input.name = reader.name();
        break;
      case 0x12:
        input.datatype = reader.name();
        break;
      case 0x1a: {
        const listEnd = reader.enter();
        while (reader.at < reader.end) input.shape.push(Number(reader.int64()));
        reader.leave(listEnd);
        break;
      }
      case 0x18:
        input.shape.push(Number(reader.int64()));
        break;
      case 0x22:
        parameters ??= new Map();
        readParameter(reader, parameters);
        break;
      case 0x2a: {
        input.contents ??= new Map();
        const contentsEnd = reader.enter();
        readContents(reader, input.contents);
        reader.leave(contentsEnd);
        break;
      }
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outerEnd);
  input.parameters = parameters;
  return input;
}

function readOutput(reader: ProtoReader): RequestOutput {
  let name = '';
  let parameters: Map<string, RequestParameter> | undefined;
  const outerEnd = reader.enter();
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        name = reader.name();
        break;
      case 0x12:
        parameters ??= new Map();
        readParameter(reader, parameters);
        break;
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outerEnd);
  return { name, parameters };
}

/** One entry of a map; of entries with the same key the last one stays. */
function readParameter(reader: ProtoReader, parameters: Map<string, RequestParameter>): void {
  let key = '';
  let value = UNSET;
  const outerEnd = reader.enter();
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x0a:
        key = reader.name();
        break;
      case 0x12: {
        const valueEnd = reader.enter();
        value = readParameterValue(reader, value);
        reader.leave(valueEnd);
        break;
      }
      default:
        reader.skip(tag);
    }
  }
  reader.leave(outerEnd);
  parameters.set(key, value);
}

function readParameterValue(reader: ProtoReader, before: RequestParameter): RequestParameter {
  let parameter = before;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x08:
        parameter = { kind: 'bool', value: reader.bool() };
        break;
      case 0x10:
        parameter = { kind: 'int64', value: BigInt(reader.int64()) };
        break;
      case 0x1a:
        parameter = { kind: 'string', value: reader.string() };
        break;
      case 0x21:
        parameter = { kind: 'double', value: reader.double() };
        break;
      case 0x28:
        parameter = { kind: 'uint64', value: BigInt(reader.uint64()) };
        break;
      default:
        reader.skip(tag);
    }
  }
  return parameter;
}
