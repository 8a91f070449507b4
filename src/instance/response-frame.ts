// The RESPONSE frame: the execution of one batch is over. Header:
//
//   u32 batch id │ 3 × u64 ns: compute input, infer, output │ u32 results │ per request, in batch order: a result
//
// The server hands slices of the payload on to clients without copying them.

import type { ExecuteReply } from '../backend/sdk.ts';
import { type Lease, shareLease } from '../lib/chunk-pool.ts';
import {
  alignUp,
  FRAME_RESPONSE,
  joinFrame,
  PREAMBLE_BYTES,
  readU64,
  writePreamble,
  writeU64,
} from './protocol.ts';
import {
  type PayloadPlan,
  type ReceivedResult,
  readResult,
  resultBytesOf,
  writeResult,
} from './result-codec.ts';
import type { FrameSlot } from './shared-slots.ts';
import type { HeaderCursor } from './tensor-range.ts';

export interface ReceivedReply {
  readonly batchId: number;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
  readonly results: readonly ReceivedResult[];
  /** The system has taken every byte of the batch: nothing of ours reads the inputs any more. */
  readonly areInputsSent?: boolean;
}

export function encodeResponseFrame(batchId: number, reply: ExecuteReply, slot?: FrameSlot): Buffer[] {
  let headerBytes = 32;
  for (const result of reply.results) headerBytes += resultBytesOf(result);
  const head = Buffer.allocUnsafe(alignUp(PREAMBLE_BYTES + headerBytes));
  let at = head.writeUInt32LE(batchId, PREAMBLE_BYTES);
  at = writeU64(head, Math.round(reply.computeInputNs), at);
  at = writeU64(head, Math.round(reply.computeInferNs), at);
  at = writeU64(head, Math.round(reply.computeOutputNs), at);
  at = head.writeUInt32LE(reply.results.length, at);
  const plan: PayloadPlan = { pieces: [], position: 0 };
  for (const result of reply.results) at = writeResult(head, at, result, plan);
  writePreamble(head, { type: FRAME_RESPONSE, headerBytes, payloadBytes: plan.position });
  return joinFrame(head, { pieces: plan.pieces, payloadBytes: plan.position }, slot);
}

/** What the server knows of a reply beside its bytes. */
export interface ReplyContext {
  /** Of the payload; each result gets its share. */
  readonly lease: Lease | undefined;
  readonly areInputsSent: boolean;
}

export function decodeResponseFrame(
  header: Buffer,
  payload: readonly Buffer[],
  context?: ReplyContext,
): ReceivedReply {
  const count = header.readUInt32LE(28);
  const results: ReceivedResult[] = [];
  const cursor: HeaderCursor = { at: 32 };
  const leases = context?.lease && shareLease(context.lease, count);
  for (let r = 0; r < count; r++) results.push(readResult(header, cursor, payload, leases?.[r]));
  return {
    batchId: header.readUInt32LE(0),
    computeInputNs: readU64(header, 4),
    computeInferNs: readU64(header, 12),
    computeOutputNs: readU64(header, 20),
    results,
    areInputsSent: context?.areInputsSent === true,
  };
}
