// The host protocol: how the server and a host process talk over one stream socket. Public: a backend in any
// language may speak it. All integers are little-endian; a frame is
//
//   │ u32 header bytes │ u8 type │ u8 place │ u16 slot │ u64 payload bytes │ header … │ pad to 64 │ payload … │ pad to 64 │
//
// With the place 1 the payload is not in the frame but in that slot of the shared memory (shared-slots.ts).
//
// The host speaks first (HELLO, with the protocol version). Control headers are JSON; EXECUTE, RESPONSE and PART have
// the binary headers of execute-frame.ts, response-frame.ts and part-frame.ts. Tensor bytes are only ever in the payload.

import type { LoadContext, LogLevel } from '../backend/sdk.ts';
import { SOCKET_PAYLOAD_BYTES_MAX } from '../domain/limits.ts';
import type { ModelConfig } from '../domain/model-config.ts';
import { internal, type StatusCode } from '../domain/status.ts';
import type { FrameSlot, PlacedPayload } from './shared-slots.ts';

export const PROTOCOL_VERSION = 3;

export const FRAME_HELLO = 1;
export const FRAME_LOAD = 2;
export const FRAME_LOADED = 3;
export const FRAME_START = 4;
export const FRAME_STARTED = 5;
export const FRAME_FAILED = 6;
export const FRAME_EXECUTE = 7;
export const FRAME_RESPONSE = 8;
export const FRAME_CANCEL = 9;
export const FRAME_PING = 10;
export const FRAME_PONG = 11;
export const FRAME_LOG = 12;
export const FRAME_STOP = 13;
export const FRAME_PART = 14;
export const FRAME_FLOW = 15;
export const FRAME_CALL = 16;
export const FRAME_RESULT = 17;
export const FRAME_CALL_CANCEL = 18;
export const FRAME_CALL_FLOW = 19;
export const FRAME_READY_ASK = 20;
export const FRAME_READY_ANSWER = 21;

export const PREAMBLE_BYTES = 16;

/** Offsets in the preamble. */
const TYPE_AT = 4;
const PLACE_AT = 5;
const SLOT_AT = 6;

/** Where a payload is. */
const IN_FRAME = 0;
const IN_SLOT = 1;

/** Header and payload start at multiples of this, so that tensors in a frame are aligned for vector code. */
export const FRAME_ALIGNMENT = 64;

const PADDING = Buffer.alloc(FRAME_ALIGNMENT);

/** Frames whose payload is below this are sent as one buffer: copying is cheaper than a long writev. */
export const COALESCE_BYTES_MAX = 64 * 1024;

export interface HelloMessage {
  readonly protocolVersion: number;
  readonly pid: number;
  readonly language: string;
  /** The host knows shared memory. */
  readonly isSlotUser?: boolean;
}

/** A LoadContext without its function, and the backend it is for. */
export interface LoadMessage extends Omit<LoadContext, 'log'> {
  readonly backend: string;
}

/** Added to LOAD where server and host share memory. */
export interface SlotsMessage {
  readonly fd: number;
  readonly slotBytes: number;
}

export interface LoadedMessage {
  readonly config: ModelConfig;
  /** The host wants id, parameters and the like with every request. */
  readonly isRequestInfoWanted?: boolean;
}

export interface StartMessage {
  readonly config: ModelConfig;
}

export interface StartedMessage {
  /** The model has an is_ready of its own. */
  readonly hasReadyCheck?: boolean;
}

export interface FailedMessage {
  readonly code: StatusCode;
  readonly message: string;
}

export interface LogMessage {
  readonly level: LogLevel;
  readonly message: string;
}

export interface CancelMessage {
  readonly batchId: number;
  readonly request: number;
}

export interface FlowMessage {
  readonly batchId: number;
  readonly request: number;
  readonly isPaused: boolean;
}

export function alignUp(bytes: number): number {
  return Math.ceil(bytes / FRAME_ALIGNMENT) * FRAME_ALIGNMENT;
}

/** Writes a non-negative integer below 2^53 as u64. */
export function writeU64(target: Buffer, value: number, offset: number): number {
  const low = value % 4294967296;
  target.writeUInt32LE(low, offset);
  target.writeUInt32LE((value - low) / 4294967296, offset + 4);
  return offset + 8;
}

export function readU64(source: Buffer, offset: number): number {
  return source.readUInt32LE(offset) + source.readUInt32LE(offset + 4) * 4294967296;
}

export function writePreamble(
  target: Buffer,
  frame: { type: number; headerBytes: number; payloadBytes: number },
): void {
  target.writeUInt32LE(frame.headerBytes, 0);
  // Place and slot are 0 until joinFrame knows better.
  target.writeUInt32LE(frame.type, TYPE_AT);
  writeU64(target, frame.payloadBytes, 8);
}

/** What the preamble says beside the sizes. */
export function readPlace(head: Buffer): { type: number; slot: number; isInSlot: boolean } {
  const place = head.readUInt8(PLACE_AT);
  if (place !== IN_FRAME && place !== IN_SLOT)
    throw internal(`host protocol: unknown place ${place} of a payload`);
  return { type: head.readUInt8(TYPE_AT), slot: head.readUInt16LE(SLOT_AT), isInSlot: place === IN_SLOT };
}

export function encodeControlFrame(type: number, message?: object): Buffer {
  const header = message === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(message));
  const frame = Buffer.alloc(alignUp(PREAMBLE_BYTES + header.length));
  writePreamble(frame, { type, headerBytes: header.length, payloadBytes: 0 });
  header.copy(frame, PREAMBLE_BYTES);
  return frame;
}

/**
 * Joins a finished head (preamble and header, padded) with its payload pieces. Small payloads are copied behind
 * the head; large ones are written to the slot, or else stay where they are and leave with one scatter-gather write.
 * Pieces may be in any order.
 */
export function joinFrame(head: Buffer, payload: PlacedPayload, slot?: FrameSlot): Buffer[] {
  if (slot !== undefined) {
    head.writeUInt16LE(slot.number, SLOT_AT);
    if (payload.payloadBytes > SOCKET_PAYLOAD_BYTES_MAX && slot.write(payload)) {
      head.writeUInt8(IN_SLOT, PLACE_AT);
      return [head];
    }
  }
  const paddedBytes = alignUp(payload.payloadBytes);
  if (payload.payloadBytes <= COALESCE_BYTES_MAX) {
    const frame = Buffer.allocUnsafe(head.length + paddedBytes);
    head.copy(frame, 0);
    for (const piece of payload.pieces) piece.data.copy(frame, head.length + piece.offset);
    return [frame];
  }
  const parts: Buffer[] = [head];
  const ordered = payload.pieces.filter(({ data }) => data.length > 0).sort((a, b) => a.offset - b.offset);
  let position = 0;
  for (const piece of ordered) {
    if (piece.offset > position) parts.push(PADDING.subarray(0, piece.offset - position));
    parts.push(piece.data);
    position = piece.offset + piece.data.length;
  }
  if (paddedBytes > position) parts.push(PADDING.subarray(0, paddedBytes - position));
  return parts;
}
