// How the server and its memory host talk: frames as in protocol.ts, every header JSON. The memory host speaks first
// (HELLO). Then the server asks with OPEN, CLOSE, READ or WRITE, each with a number, and is answered with one DONE that
// carries the same number, in order. Bytes of a handle or of a region are only ever in the payload.

import type { StatusCode } from '../domain/status.ts';
import { alignUp, joinFrame, PREAMBLE_BYTES, writePreamble } from './protocol.ts';

export const MEMORY_PROTOCOL_VERSION = 1;

/** Apart from the types of protocol.ts, of which HELLO and LOG are used here too. */
export const FRAME_MEMORY_OPEN = 32;
export const FRAME_MEMORY_CLOSE = 33;
export const FRAME_MEMORY_READ = 34;
export const FRAME_MEMORY_WRITE = 35;
export const FRAME_MEMORY_DONE = 36;

/** Payload: the handle as CUDA gave it to the client. */
export interface MemoryOpenMessage {
  readonly id: number;
  /** The number by which later frames call the region; a name may come back while the old region is still in use. */
  readonly region: number;
  /** For error texts. */
  readonly name: string;
  readonly deviceId: number;
  readonly byteSize: number;
}

export interface MemoryCloseMessage {
  readonly id: number;
  readonly region: number;
}

/** The payload of its DONE holds the bytes. */
export interface MemoryReadMessage {
  readonly id: number;
  readonly region: number;
  readonly position: number;
  readonly byteLength: number;
}

/** Payload: the bytes. */
export interface MemoryWriteMessage {
  readonly id: number;
  readonly region: number;
  readonly position: number;
}

export interface MemoryDoneMessage {
  readonly id: number;
  /** Absent when it went well. */
  readonly error?: { readonly code: StatusCode; readonly message: string };
}

/** Small payloads are copied behind the head; of large ones the pieces themselves are in the list. */
export function encodeMemoryFrame(
  type: number,
  message: { readonly id: number },
  payload: readonly Buffer[] = [],
): Buffer[] {
  const header = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(alignUp(PREAMBLE_BYTES + header.length));
  let payloadBytes = 0;
  const pieces = payload.map((data) => {
    const piece = { data, offset: payloadBytes };
    payloadBytes += data.length;
    return piece;
  });
  writePreamble(head, { type, headerBytes: header.length, payloadBytes });
  header.copy(head, PREAMBLE_BYTES);
  return joinFrame(head, { pieces, payloadBytes });
}
