// The EXECUTE frame: one batch for one instance. Header:
//
//   u32 batch id │ u32 requests │ per request:
//     u16 inputs │ per input its range (tensor-range.ts)
//     u16 requested outputs │ u16 index …
//     u32 bytes │ request info as JSON, only for hosts that want it
//     u32 state slot + 1, 0 for none │ u8 flags: 1 the sequence starts, 2 it ends
//
// In the payload the bytes of one input lie request after request without a gap, each input starting at a
// multiple of 64, so a host that batches need not gather.

import type { ExecuteBatch, ExecuteInput, ExecuteRequest, StateSlot } from '../backend/sdk.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import { notePayload } from '../lib/collect-payloads.ts';
import { alignUp, FRAME_EXECUTE, joinFrame, PREAMBLE_BYTES, writePreamble } from './protocol.ts';
import type { FrameSlot } from './shared-slots.ts';
import { type HeaderCursor, rangeBytesOf, readRange, writeRange } from './tensor-range.ts';

/** One input of one request, as the server sends it: `reshape` already applied to the shape. */
export interface SentInput {
  readonly index: number;
  readonly shape: readonly number[];
  readonly data: TensorBytes;
  readonly byteLength: number;
}

export interface SentRequest {
  readonly inputs: readonly SentInput[];
  readonly requestedOutputs: readonly number[];
  /** JSON for hosts that want to know more of a request than its tensors. */
  readonly info?: Buffer | undefined;
  /** Which of the host's states belong to the request; none where the model keeps no state. */
  readonly state?: StateSlot | undefined;
}

const NO_INFO = Buffer.alloc(0);

const STATE_START = 1;
const STATE_END = 2;
/** The lengths of the lists, of the info, and the state. */
const REQUEST_BYTES = 13;

export function encodeExecuteFrame(
  batchId: number,
  requests: readonly SentRequest[],
  slot?: FrameSlot,
): Buffer[] {
  const { offsets, payloadBytes } = layOut(requests);
  notePayload(payloadBytes);
  const headerBytes = headerBytesOf(requests);
  const head = Buffer.allocUnsafe(alignUp(PREAMBLE_BYTES + headerBytes));
  writePreamble(head, { type: FRAME_EXECUTE, headerBytes, payloadBytes });
  writeHeader(head, batchId, requests, offsets);
  return joinFrame(head, { pieces: piecesOf(requests, offsets), payloadBytes }, slot);
}

/** offsets[request][position of the input in that request] */
function layOut(requests: readonly SentRequest[]): { offsets: number[][]; payloadBytes: number } {
  const offsets: number[][] = [];
  for (const request of requests) offsets.push(new Array<number>(request.inputs.length).fill(0));
  let position = 0;
  let inputsMax = 0;
  for (const request of requests) {
    for (const input of request.inputs) if (input.index >= inputsMax) inputsMax = input.index + 1;
  }
  for (let index = 0; index < inputsMax; index++) {
    position = alignUp(position);
    for (let r = 0; r < requests.length; r++) {
      const inputs = requests[r]!.inputs;
      for (let i = 0; i < inputs.length; i++) {
        const input = inputs[i]!;
        if (input.index !== index) continue;
        offsets[r]![i] = position;
        position += input.byteLength;
      }
    }
  }
  return { offsets, payloadBytes: position };
}

function headerBytesOf(requests: readonly SentRequest[]): number {
  let bytes = 8;
  for (const request of requests) {
    bytes += REQUEST_BYTES + request.requestedOutputs.length * 2 + (request.info?.length ?? 0);
    for (const input of request.inputs) bytes += rangeBytesOf(input.shape);
  }
  return bytes;
}

function writeHeader(
  head: Buffer,
  batchId: number,
  requests: readonly SentRequest[],
  offsets: readonly (readonly number[])[],
): void {
  let at = PREAMBLE_BYTES;
  at = head.writeUInt32LE(batchId, at);
  at = head.writeUInt32LE(requests.length, at);
  for (let r = 0; r < requests.length; r++) {
    const request = requests[r]!;
    at = head.writeUInt16LE(request.inputs.length, at);
    for (let i = 0; i < request.inputs.length; i++) {
      at = writeRange(head, at, request.inputs[i]!, offsets[r]![i]!);
    }
    at = head.writeUInt16LE(request.requestedOutputs.length, at);
    for (const index of request.requestedOutputs) at = head.writeUInt16LE(index, at);
    const info = request.info ?? NO_INFO;
    at = head.writeUInt32LE(info.length, at);
    at += info.copy(head, at);
    at = writeState(head, at, request.state);
  }
}

function writeState(head: Buffer, at: number, state: StateSlot | undefined): number {
  const flags = (state?.isStart === true ? STATE_START : 0) | (state?.isEnd === true ? STATE_END : 0);
  return head.writeUInt8(flags, head.writeUInt32LE(state === undefined ? 0 : state.slot + 1, at));
}

function readState(header: Buffer, cursor: HeaderCursor): StateSlot | undefined {
  const number = header.readUInt32LE(cursor.at);
  const flags = header.readUInt8(cursor.at + 4);
  cursor.at += 5;
  if (number === 0) return undefined;
  return { slot: number - 1, isStart: (flags & STATE_START) !== 0, isEnd: (flags & STATE_END) !== 0 };
}

function piecesOf(
  requests: readonly SentRequest[],
  offsets: readonly (readonly number[])[],
): { data: Buffer; offset: number }[] {
  const pieces: { data: Buffer; offset: number }[] = [];
  for (let r = 0; r < requests.length; r++) {
    const inputs = requests[r]!.inputs;
    for (let i = 0; i < inputs.length; i++) {
      let offset = offsets[r]![i]!;
      for (const data of inputs[i]!.data) {
        pieces.push({ data, offset });
        offset += data.length;
      }
    }
  }
  return pieces;
}

export function decodeExecuteFrame(header: Buffer, payload: Buffer): ExecuteBatch {
  const id = header.readUInt32LE(0);
  const count = header.readUInt32LE(4);
  const cursor: HeaderCursor = { at: 8 };
  const requests: ExecuteRequest[] = [];
  for (let r = 0; r < count; r++) {
    const inputCount = header.readUInt16LE(cursor.at);
    cursor.at += 2;
    const inputs: ExecuteInput[] = [];
    for (let i = 0; i < inputCount; i++) inputs.push(readRange(header, cursor));
    const outputCount = header.readUInt16LE(cursor.at);
    cursor.at += 2;
    const requestedOutputs: number[] = [];
    for (let o = 0; o < outputCount; o++, cursor.at += 2)
      requestedOutputs.push(header.readUInt16LE(cursor.at));
    const infoBytes = header.readUInt32LE(cursor.at);
    const info = infoBytes === 0 ? undefined : header.subarray(cursor.at + 4, cursor.at + 4 + infoBytes);
    cursor.at += 4 + infoBytes;
    requests.push({ inputs, requestedOutputs, info, state: readState(header, cursor) });
  }
  return { id, payload, requests };
}
