// Cuts a byte stream into frames. The server keeps a payload as the list of pieces in which it arrived and
// passes them on to the client as they are; a host wants each payload in one aligned piece, because tensors are
// made straight on it. Holds at most one incomplete frame.

import { FRAME_BYTES_MAX } from '../domain/limits.ts';
import { internal } from '../domain/status.ts';
import { CHUNK_BYTES, type Lease, payloadPool } from '../lib/chunk-pool.ts';
import { notePayload } from '../lib/collect-payloads.ts';
import { alignUp, FRAME_ALIGNMENT, PREAMBLE_BYTES, readPlace, readU64 } from './protocol.ts';
import type { SharedSlots } from './shared-slots.ts';

export interface Frame {
  readonly type: number;
  readonly header: Buffer;
  /** One piece when the reader was made with `isContiguous`. */
  readonly payload: readonly Buffer[];
  readonly payloadBytes: number;
  /** The slot that goes with the frame; 0: none. */
  readonly slot: number;
  /** Only of a payload in memory of the pool. */
  readonly lease: Lease | undefined;
}

const EMPTY: readonly Buffer[] = [];

export class FrameReader {
  readonly #isContiguous: boolean;
  readonly #onFrame: (frame: Frame) => void;
  /** Bytes of the current frame's head (preamble, header, padding) while it is incomplete. */
  #head: Buffer | undefined;
  #header: Buffer | undefined;
  #type = 0;
  #slot = 0;
  #payloadBytes = 0;
  #paddedLeft = 0;
  #payloadLeft = 0;
  #pieces: Buffer[] = [];
  #assembly: Buffer | undefined;
  #lease: Lease | undefined;

  /** Where payloads are that are not in their frames. */
  slots: SharedSlots | undefined;

  constructor(options: { isContiguous: boolean; onFrame: (frame: Frame) => void }) {
    this.#isContiguous = options.isContiguous;
    this.#onFrame = options.onFrame;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      rest = this.#header === undefined ? this.#readHead(rest) : this.#readPayload(rest);
    }
  }

  #readHead(chunk: Buffer): Buffer {
    const head = this.#head === undefined ? chunk : Buffer.concat([this.#head, chunk]);
    if (head.length < PREAMBLE_BYTES) return this.#keep(head);
    const headerBytes = head.readUInt32LE(0);
    const payloadBytes = readU64(head, 8);
    const headBytes = alignUp(PREAMBLE_BYTES + headerBytes);
    if (headBytes + payloadBytes > FRAME_BYTES_MAX) throw internal('host protocol: frame is too large');
    if (head.length < headBytes) return this.#keep(head);
    this.#head = undefined;
    const { type, slot, isInSlot } = readPlace(head);
    this.#type = type;
    this.#slot = slot;
    this.#header = head.subarray(PREAMBLE_BYTES, PREAMBLE_BYTES + headerBytes);
    this.#payloadBytes = payloadBytes;
    this.#payloadLeft = isInSlot ? 0 : payloadBytes;
    this.#paddedLeft = alignUp(this.#payloadLeft);
    if (isInSlot) this.#readSlot(slot, payloadBytes);
    const rest = head.subarray(headBytes);
    if (this.#paddedLeft === 0) this.#finish();
    return rest;
  }

  #readSlot(slot: number, payloadBytes: number): void {
    if (this.slots === undefined)
      throw internal('host protocol: a payload in shared memory that there is not');
    // Chunks are made where gRPC requests come, whose memory comes back. Where none are free nobody gives any back.
    const isLent = !this.#isContiguous && payloadBytes > CHUNK_BYTES && payloadPool.hasFree(payloadBytes);
    if (!isLent) {
      this.#pieces.push(this.slots.read(slot, payloadBytes));
      return;
    }
    const lent = this.slots.readLent(slot, payloadBytes);
    this.#lease = lent;
    this.#pieces = lent.views();
  }

  #keep(head: Buffer): Buffer {
    this.#head = head;
    return head.subarray(head.length);
  }

  #readPayload(chunk: Buffer): Buffer {
    const taken = Math.min(chunk.length, this.#paddedLeft);
    const data = chunk.subarray(0, Math.min(taken, this.#payloadLeft));
    if (data.length > 0) this.#addPiece(data);
    this.#payloadLeft -= data.length;
    this.#paddedLeft -= taken;
    if (this.#paddedLeft === 0) this.#finish();
    return chunk.subarray(taken);
  }

  #addPiece(data: Buffer): void {
    if (!this.#isContiguous) {
      this.#pieces.push(data);
      return;
    }
    const isWhole = data.length === this.#payloadBytes && data.byteOffset % FRAME_ALIGNMENT === 0;
    if (isWhole) {
      this.#pieces.push(data);
      return;
    }
    this.#assembly ??= Buffer.allocUnsafeSlow(this.#payloadBytes);
    data.copy(this.#assembly, this.#payloadBytes - this.#payloadLeft);
  }

  #finish(): void {
    const lease = this.#lease;
    // What is used again is nothing to collect.
    if (lease === undefined) notePayload(this.#payloadBytes);
    const payload = this.#assembly === undefined ? this.#pieces : [this.#assembly];
    const frame: Frame = {
      type: this.#type,
      header: this.#header!,
      payload: payload.length === 0 ? EMPTY : payload,
      payloadBytes: this.#payloadBytes,
      slot: this.#slot,
      lease,
    };
    this.#header = undefined;
    this.#assembly = undefined;
    this.#lease = undefined;
    this.#pieces = [];
    this.#onFrame(frame);
  }
}
