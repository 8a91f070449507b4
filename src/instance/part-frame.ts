// The PART frame: one of many responses to a request, or its end. Header:
//
//   u32 batch id │ u32 request │ u8 1 when final │ a result (result-codec.ts)

import type { ExecuteResult } from '../backend/sdk.ts';
import { alignUp, FRAME_PART, joinFrame, PREAMBLE_BYTES, writePreamble } from './protocol.ts';
import {
  type PayloadPlan,
  type ReceivedResult,
  readResult,
  resultBytesOf,
  writeResult,
} from './result-codec.ts';

export interface ReceivedPart {
  readonly batchId: number;
  readonly request: number;
  readonly isFinal: boolean;
  /** BY_SENDER: no content. */
  readonly result: ReceivedResult;
}

export interface SentPart {
  readonly batchId: number;
  readonly request: number;
  readonly isFinal: boolean;
  readonly result: ExecuteResult;
}

export function encodePartFrame(part: SentPart): Buffer[] {
  const headerBytes = 9 + resultBytesOf(part.result);
  const head = Buffer.allocUnsafe(alignUp(PREAMBLE_BYTES + headerBytes));
  let at = head.writeUInt32LE(part.batchId, PREAMBLE_BYTES);
  at = head.writeUInt32LE(part.request, at);
  at = head.writeUInt8(part.isFinal ? 1 : 0, at);
  const plan: PayloadPlan = { pieces: [], position: 0 };
  writeResult(head, at, part.result, plan);
  writePreamble(head, { type: FRAME_PART, headerBytes, payloadBytes: plan.position });
  return joinFrame(head, { pieces: plan.pieces, payloadBytes: plan.position });
}

export function decodePartFrame(header: Buffer, payload: readonly Buffer[]): ReceivedPart {
  return {
    batchId: header.readUInt32LE(0),
    request: header.readUInt32LE(4),
    isFinal: header.readUInt8(8) === 1,
    result: readResult(header, { at: 9 }, payload),
  };
}
