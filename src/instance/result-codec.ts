// One result in the header of a RESPONSE or PART frame: outputs, an error, or neither.
//
//   u8 1 │ u16 outputs │ per output its range (tensor-range.ts) │ u8 datatype │ u32 bytes │ response parameters
//   u8 0 │ u8 status code │ u8 kind of error │ u32 bytes │ message
//   u8 2 │ answered by PART frames; in a PART: no content
//   u8 3 │ in a RESPONSE of an iterative sequence: execute the request once more

import { BY_SENDER, ExecuteError, type ExecuteOutput, type ExecuteResult } from '../backend/sdk.ts';
import { DATA_TYPES, type DataType } from '../domain/datatype.ts';
import type { Parameters, ParameterValue } from '../domain/request.ts';
import { STATUS_CODES, type StatusCode, StatusError } from '../domain/status.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import type { Lease } from '../lib/chunk-pool.ts';
import { type CallParameter, fromCallParameters, toCallParameters } from './call-frame.ts';
import { type HeaderCursor, rangeBytesOf, readRange, writeRange } from './tensor-range.ts';

export { BY_SENDER };

/** The result of a request that its model wants to execute once more. */
export const RESCHEDULE = Symbol('to be executed once more');

export interface ReceivedOutput {
  readonly index: number;
  readonly shape: readonly number[];
  /** Undefined: the one in the config. */
  readonly datatype: DataType | undefined;
  readonly data: TensorBytes;
  readonly byteLength: number;
}

export interface ReceivedOutputs {
  readonly outputs: readonly ReceivedOutput[];
  readonly parameters: Map<string, ParameterValue> | undefined;
  /** Of the memory in which the outputs lie; undefined where it is not used again. */
  readonly lease?: Lease | undefined;
}

/** How statistics count a request that ended with an error; the order is the protocol's. */
const ERROR_KINDS = ['not executed', 'failed', 'answered'] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

export class ReceivedError extends StatusError {
  readonly kind: ErrorKind;

  constructor(code: StatusCode, message: string, kind: ErrorKind) {
    super(code, message);
    this.kind = kind;
  }
}

export type ReceivedResult = ReceivedOutputs | ReceivedError | typeof BY_SENDER | typeof RESCHEDULE;

/** Where the payload of a frame that is being written ends, and what is in it. */
export interface PayloadPlan {
  readonly pieces: { data: Buffer; offset: number }[];
  position: number;
}

const KIND_ERROR = 0;
const KIND_OUTPUTS = 1;
const KIND_BY_SENDER = 2;
const KIND_RESCHEDULE = 3;

export function resultBytesOf(result: ExecuteResult): number {
  if (result === BY_SENDER) return 1;
  if (result instanceof StatusError) return 7 + Buffer.byteLength(result.message);
  let bytes = 7;
  for (const output of result) bytes += rangeBytesOf(output.shape) + 1;
  return result.parameters === undefined
    ? bytes
    : bytes + Buffer.byteLength(parameterText(result.parameters));
}

export function writeResult(head: Buffer, start: number, result: ExecuteResult, plan: PayloadPlan): number {
  if (result === BY_SENDER) return head.writeUInt8(KIND_BY_SENDER, start);
  if (result instanceof StatusError) return writeError(head, start, result);
  let at = head.writeUInt8(KIND_OUTPUTS, start);
  at = head.writeUInt16LE(result.length, at);
  for (const output of result) at = writeOutput(head, at, output, plan);
  if (result.parameters === undefined) return head.writeUInt32LE(0, at);
  const bytes = head.write(parameterText(result.parameters), at + 4);
  return head.writeUInt32LE(bytes, at) + bytes;
}

function parameterText(parameters: Parameters): string {
  return JSON.stringify(toCallParameters(parameters));
}

function writeOutput(head: Buffer, start: number, output: ExecuteOutput, plan: PayloadPlan): number {
  const { index, shape, data } = output;
  const at = writeRange(head, start, { index, shape, byteLength: data.length }, plan.position);
  plan.pieces.push({ data, offset: plan.position });
  plan.position += data.length;
  return head.writeUInt8(0, at);
}

function writeError(head: Buffer, start: number, error: StatusError): number {
  let at = head.writeUInt8(KIND_ERROR, start);
  at = head.writeUInt8(STATUS_CODES.indexOf(error.code), at);
  at = head.writeUInt8(ERROR_KINDS.indexOf(error instanceof ExecuteError ? error.kind : 'not executed'), at);
  const bytes = head.write(error.message, at + 4);
  return head.writeUInt32LE(bytes, at) + bytes;
}

export function readResult(
  header: Buffer,
  cursor: HeaderCursor,
  payload: readonly Buffer[],
  lease?: Lease,
): ReceivedResult {
  const kind = header.readUInt8(cursor.at++);
  if (kind === KIND_OUTPUTS) return readOutputs(header, cursor, payload, lease);
  if (kind === KIND_BY_SENDER) return BY_SENDER;
  if (kind === KIND_RESCHEDULE) return RESCHEDULE;
  return readError(header, cursor);
}

function readOutputs(
  header: Buffer,
  cursor: HeaderCursor,
  payload: readonly Buffer[],
  lease: Lease | undefined,
): ReceivedOutputs {
  const count = header.readUInt16LE(cursor.at);
  cursor.at += 2;
  const outputs: ReceivedOutput[] = [];
  for (let o = 0; o < count; o++) {
    const { index, shape, offset, byteLength } = readRange(header, cursor);
    const datatype = DATA_TYPES[header.readUInt8(cursor.at++) - 1];
    outputs.push({ index, shape, datatype, data: slicePieces(payload, offset, byteLength), byteLength });
  }
  const parameterBytes = header.readUInt32LE(cursor.at);
  cursor.at += 4;
  if (parameterBytes === 0) return { outputs, parameters: undefined, lease };
  const text = header.toString('utf8', cursor.at, cursor.at + parameterBytes);
  cursor.at += parameterBytes;
  const parameters = fromCallParameters(JSON.parse(text) as Record<string, CallParameter>);
  return { outputs, parameters, lease };
}

function readError(header: Buffer, cursor: HeaderCursor): ReceivedError {
  const code = STATUS_CODES[header.readUInt8(cursor.at)] ?? 'UNKNOWN';
  const kind = ERROR_KINDS[header.readUInt8(cursor.at + 1)] ?? 'not executed';
  const start = cursor.at + 6;
  const end = start + header.readUInt32LE(cursor.at + 2);
  cursor.at = end;
  return new ReceivedError(code, header.toString('utf8', start, end), kind);
}

/** Views of `byteLength` bytes from `offset` on, over pieces that may end anywhere. */
export function slicePieces(pieces: readonly Buffer[], offset: number, byteLength: number): Buffer[] {
  if (byteLength === 0) return [];
  const only = pieces[0]!;
  if (pieces.length === 1) return [only.subarray(offset, offset + byteLength)];
  const views: Buffer[] = [];
  let start = offset;
  let left = byteLength;
  for (const piece of pieces) {
    if (start >= piece.length) {
      start -= piece.length;
      continue;
    }
    const view = piece.subarray(start, start + left);
    views.push(view);
    left -= view.length;
    start = 0;
    if (left === 0) break;
  }
  return views;
}
