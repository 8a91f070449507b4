// The RESPONSE frame: the answer to one batch. Header:
//
//   u32 batch id │ 3 × u64 ns: compute input, infer, output │ u16 results │ per request, in batch order:
//     u8 1 │ u16 outputs │ per output: u16 index │ u8 rank │ rank × u64 dims │ u64 offset │ u64 bytes
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
  let headerBytes = 30;
  for (let r = 0; r < reply.results.length; r++) {
    const result = reply.results[r]!;
    if (result instanceof StatusError) headerBytes += 6 + messages[r]!.length;
    else {
      headerBytes += 3;
      for (const output of result) headerBytes += 19 + output.shape.length * 8;
    }
  }
  const head = Buffer.allocUnsafe(alignUp(PREAMBLE_BYTES + headerBytes));
  let at = head.writeUInt32LE(batchId, PREAMBLE_BYTES);
  at = writeU64(head, Math.round(reply.computeInputNs), at);
  at = writeU64(head, Math.round(reply.computeInferNs), at);
  at = writeU64(head, Math.round(reply.computeOutputNs), at);
  at = head.writeUInt16LE(reply.results.length, at);
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
      at = head.writeUInt16LE(output.index, at);
      at = head.writeUInt8(output.shape.length, at);
      for (const dim of output.shape) at = writeU64(head, dim, at);
      at = writeU64(head, position, at);
      at = writeU64(head, output.data.length, at);
      pieces.push({ data: output.data, offset: position });
      position += output.data.length;
    }
  }
  writePreamble(head, { type: FRAME_RESPONSE, headerBytes, payloadBytes: position });
  return joinFrame(head, { pieces, payloadBytes: position });
}

export function decodeResponseFrame(header: Buffer, payload: readonly Buffer[]): ReceivedReply {
  const count = header.readUInt16LE(28);
  const results: (ReceivedOutput[] | StatusError)[] = [];
  let at = 30;
  for (let r = 0; r < count; r++) {
    const isOk = header.readUInt8(at) === 1;
    if (!isOk) {
      const code = STATUS_CODES[header.readUInt8(at + 1)] ?? 'UNKNOWN';
      const bytes = header.readUInt32LE(at + 2);
      results.push(new StatusError(code, header.toString('utf8', at + 6, at + 6 + bytes)));
      at += 6 + bytes;
      continue;
    }
    const outputCount = header.readUInt16LE(at + 1);
    at += 3;
    const outputs: ReceivedOutput[] = [];
    for (let o = 0; o < outputCount; o++) {
      const index = header.readUInt16LE(at);
      const rank = header.readUInt8(at + 2);
      at += 3;
      const shape: number[] = [];
      for (let d = 0; d < rank; d++, at += 8) shape.push(readU64(header, at));
      const offset = readU64(header, at);
      const byteLength = readU64(header, at + 8);
      at += 16;
      outputs.push({ index, shape, data: slice(payload, offset, byteLength), byteLength });
    }
    results.push(outputs);
  }
  return {
    batchId: header.readUInt32LE(0),
    computeInputNs: readU64(header, 4),
    computeInferNs: readU64(header, 12),
    computeOutputNs: readU64(header, 20),
    results,
  };
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
