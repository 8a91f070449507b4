// The RESPONSE frame: the answer to one batch. Header:
//
//   u32 batch id │ 3 × u64 ns: compute input, infer, output │ u32 results │ per request, in batch order:
//     u8 1 │ u16 outputs │ per output its range (tensor-range.ts)
//     u8 0 │ u8 status code │ u32 bytes │ message
//
// The server hands slices of the payload on to clients without copying them.

import type { ExecuteReply } from '../backend/sdk.ts';
import { STATUS_CODES, StatusError } from '../domain/status.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import {
  alignUp,
  FRAME_RESPONSE,
  joinFrame,
  PREAMBLE_BYTES,
  readU64,
  writePreamble,
  writeU64,
} from './protocol.ts';
import { type HeaderCursor, rangeBytesOf, readRange, writeRange } from './tensor-range.ts';

export interface ReceivedOutput {
  readonly index: number;
  readonly shape: readonly number[];
  readonly data: TensorBytes;
  readonly byteLength: number;
}

export interface ReceivedReply {
  readonly batchId: number;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
  readonly results: readonly (readonly ReceivedOutput[] | StatusError)[];
}

export function encodeResponseFrame(batchId: number, reply: ExecuteReply): Buffer[] {
  const messages = reply.results.map((result) =>
    result instanceof StatusError ? Buffer.from(result.message) : undefined,
  );
  let headerBytes = 32;
  for (let r = 0; r < reply.results.length; r++) {
    const result = reply.results[r]!;
    if (result instanceof StatusError) headerBytes += 6 + messages[r]!.length;
    else {
      headerBytes += 3;
      for (const output of result) headerBytes += rangeBytesOf(output.shape);
    }
  }
  const head = Buffer.allocUnsafe(alignUp(PREAMBLE_BYTES + headerBytes));
  let at = head.writeUInt32LE(batchId, PREAMBLE_BYTES);
  at = writeU64(head, Math.round(reply.computeInputNs), at);
  at = writeU64(head, Math.round(reply.computeInferNs), at);
  at = writeU64(head, Math.round(reply.computeOutputNs), at);
  at = head.writeUInt32LE(reply.results.length, at);
  const pieces: { data: Buffer; offset: number }[] = [];
  let position = 0;
  for (let r = 0; r < reply.results.length; r++) {
    const result = reply.results[r]!;
    if (result instanceof StatusError) {
      at = head.writeUInt8(0, at);
      at = head.writeUInt8(STATUS_CODES.indexOf(result.code), at);
      at = head.writeUInt32LE(messages[r]!.length, at);
      at += messages[r]!.copy(head, at);
      continue;
    }
    at = head.writeUInt8(1, at);
    at = head.writeUInt16LE(result.length, at);
    for (const output of result) {
      const { index, shape, data } = output;
      at = writeRange(head, at, { index, shape, byteLength: data.length }, position);
      pieces.push({ data: output.data, offset: position });
      position += output.data.length;
    }
  }
  writePreamble(head, { type: FRAME_RESPONSE, headerBytes, payloadBytes: position });
  return joinFrame(head, { pieces, payloadBytes: position });
}

export function decodeResponseFrame(header: Buffer, payload: readonly Buffer[]): ReceivedReply {
  const count = header.readUInt32LE(28);
  const results: (ReceivedOutput[] | StatusError)[] = [];
  const cursor: HeaderCursor = { at: 32 };
  for (let r = 0; r < count; r++) {
    const isOk = header.readUInt8(cursor.at) === 1;
    results.push(isOk ? readOutputs(header, cursor, payload) : readError(header, cursor));
  }
  return {
    batchId: header.readUInt32LE(0),
    computeInputNs: readU64(header, 4),
    computeInferNs: readU64(header, 12),
    computeOutputNs: readU64(header, 20),
    results,
  };
}

function readOutputs(header: Buffer, cursor: HeaderCursor, payload: readonly Buffer[]): ReceivedOutput[] {
  const count = header.readUInt16LE(cursor.at + 1);
  cursor.at += 3;
  const outputs: ReceivedOutput[] = [];
  for (let o = 0; o < count; o++) {
    const { index, shape, offset, byteLength } = readRange(header, cursor);
    outputs.push({ index, shape, data: slice(payload, offset, byteLength), byteLength });
  }
  return outputs;
}

function readError(header: Buffer, cursor: HeaderCursor): StatusError {
  const code = STATUS_CODES[header.readUInt8(cursor.at + 1)] ?? 'UNKNOWN';
  const start = cursor.at + 6;
  const end = start + header.readUInt32LE(cursor.at + 2);
  cursor.at = end;
  return new StatusError(code, header.toString('utf8', start, end));
}

/** Views of `byteLength` bytes from `offset` on, over pieces that may end anywhere. */
function slice(pieces: readonly Buffer[], offset: number, byteLength: number): Buffer[] {
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
