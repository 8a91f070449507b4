// What leaves a connection. Frames are collected in a slab, and everything of one turn of the event loop leaves in one
// write; large payloads are put between as they are. While the socket is slow nothing more is handed to it: what is
// collected meanwhile leaves on 'drain'. Called by SendScheduler and Http2Connection.
//
//   pieces: [slab view, large payload, slab view, large payload]   open: slab[start, at)

import type { Socket } from 'node:net';
import type { Lease } from '../../../lib/chunk-pool.ts';
import { noteAnswerLeft } from '../../../lib/collect-payloads.ts';
import { ERROR_CODE, FRAME, FRAME_BYTES_MIN, FRAME_HEAD_BYTES } from './frames.ts';

interface Slab {
  readonly bytes: Buffer;
  /** Bytes before it have been given away; they are never written again. */
  at: number;
}

const SLAB_BYTES = 64 * 1024;
/** Not worth to be kept for the next batch. */
const SLAB_REST_BYTES_MIN = 1024;
/** Slabs are lent for one batch, so idle connections hold none; more than this many are seldom in use at once. */
const FREE_SLABS_MAX = 16;
const freeSlabs: Slab[] = [];
/** For short runs of bytes a loop is faster than a call into native code. */
const LOOP_BYTES_MAX = 40;
/**
 * A shorter piece is copied next to its head: cheaper than two more entries of a gathered write. Full frames of a large
 * message are not shorter, so those are sent from where they are.
 */
const COPY_BYTES_MAX = FRAME_BYTES_MIN - 1;
/** Enough for one write; what follows in the same turn takes the next one. */
const FLUSH_BYTES = 256 * 1024;

export class FrameOutput {
  readonly #socket: Socket;
  #slab: Slab | undefined;
  /** Where the open part of the slab begins. */
  #start = 0;
  #pieces: Buffer[] = [];
  #pendingBytes = 0;
  /** Of what is collected and not yet handed to the socket. */
  #leases: Lease[] = [];
  /** The socket has refused more until 'drain'. */
  #isBlocked = false;
  #isScheduled = false;
  #isEnded = false;
  readonly #onTurnEnd = (): void => {
    this.#isScheduled = false;
    if (!this.#isBlocked) this.#write();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Not yet taken by the system. */
  get backlogBytes(): number {
    return this.#pendingBytes + this.#socket.writableLength;
  }

  /** A frame without its payload, which must follow. */
  frameHead(length: number, type: number, flags: number, streamId: number): void {
    const slab = this.#room(FRAME_HEAD_BYTES);
    const { bytes, at } = slab;
    bytes[at] = length >>> 16;
    bytes[at + 1] = length >>> 8;
    bytes[at + 2] = length;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    bytes[at + 5] = streamId >>> 24;
    bytes[at + 6] = streamId >>> 16;
    bytes[at + 7] = streamId >>> 8;
    bytes[at + 8] = streamId;
    slab.at = at + FRAME_HEAD_BYTES;
  }

  /** [start, end) of the payload; copied when short, otherwise it must not change any more. */
  payload(bytes: Buffer, start = 0, end = bytes.length): void {
    const length = end - start;
    if (this.#isEnded) return;
    if (length > COPY_BYTES_MAX) {
      this.#seal();
      this.#pieces.push(length === bytes.length ? bytes : bytes.subarray(start, end));
      this.#pendingBytes += length;
      if (this.#pendingBytes >= FLUSH_BYTES && !this.#isBlocked) this.#write();
      return;
    }
    const slab = this.#room(length);
    if (length > LOOP_BYTES_MAX) bytes.copy(slab.bytes, slab.at, start, end);
    else for (let i = 0; i < length; i++) slab.bytes[slab.at + i] = bytes[start + i]!;
    slab.at += length;
  }

  uint32(value: number): void {
    const slab = this.#room(4);
    slab.at = slab.bytes.writeUInt32BE(value, slab.at);
  }

  uint16(value: number): void {
    const slab = this.#room(2);
    slab.at = slab.bytes.writeUInt16BE(value, slab.at);
  }

  rstStream(streamId: number, errorCode: number): void {
    this.frameHead(4, FRAME.rstStream, 0, streamId);
    this.uint32(errorCode);
  }

  windowUpdate(streamId: number, byteLength: number): void {
    this.frameHead(4, FRAME.windowUpdate, 0, streamId);
    this.uint32(byteLength);
  }

  goaway(lastStreamId: number, errorCode: number, message: string): void {
    const debug = errorCode === ERROR_CODE.none ? '' : message;
    const text = Buffer.from(debug, 'latin1');
    this.frameHead(8 + text.length, FRAME.goaway, 0, 0);
    this.uint32(lastStreamId);
    this.uint32(errorCode);
    this.payload(text);
  }

  /** The socket has drained. What waited leaves with what `fill` adds. */
  onDrain(fill: () => void): void {
    this.#isBlocked = false;
    fill();
    if (!this.#isBlocked) this.#write();
  }

  /** Releases when the system has taken everything that was collected up to now; never, if the connection ends before. */
  releaseWritten(lease: Lease): void {
    if (!this.#isEnded) this.#leases.push(lease);
  }

  /** The last bytes: hands everything to the socket and ends it. */
  end(): void {
    if (this.#isEnded) return;
    this.#write();
    this.#isEnded = true;
    this.#socket.end();
  }

  /** The connection is gone. */
  discard(): void {
    this.#isEnded = true;
    this.#pieces = [];
    this.#leases = [];
    this.#pendingBytes = 0;
    this.#slab = undefined;
  }

  /** Room for so many bytes in a row; every frame goes through here, so this also plans the write. */
  #room(byteLength: number): Slab {
    if (this.#isEnded) return { bytes: Buffer.allocUnsafe(byteLength), at: 0 };
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(this.#onTurnEnd);
    }
    this.#pendingBytes += byteLength;
    if (this.#slab !== undefined) {
      if (SLAB_BYTES - this.#slab.at >= byteLength) return this.#slab;
      this.#seal();
      this.#slab = undefined;
    }
    const free = freeSlabs.pop();
    this.#slab =
      free !== undefined && SLAB_BYTES - free.at >= byteLength
        ? free
        : { bytes: Buffer.allocUnsafeSlow(SLAB_BYTES), at: 0 };
    this.#start = this.#slab.at;
    return this.#slab;
  }

  #seal(): void {
    const slab = this.#slab;
    if (slab === undefined || slab.at === this.#start) return;
    this.#pieces.push(slab.bytes.subarray(this.#start, slab.at));
    this.#start = slab.at;
  }

  #write(): void {
    if (this.#isEnded || this.#pendingBytes === 0) return;
    this.#seal();
    this.#giveSlabBack();
    const socket = this.#socket;
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pendingBytes = 0;
    const last = pieces.pop()!;
    const onTaken = this.#releaseLater();
    if (pieces.length === 0) {
      this.#isBlocked = !socket.write(last, onTaken);
      return;
    }
    socket.cork();
    for (const piece of pieces) socket.write(piece);
    this.#isBlocked = !socket.write(last, onTaken);
    socket.uncork();
  }

  /** For the last piece of a write: a socket calls back in the order of its pieces. */
  #releaseLater(): ((error?: Error | null) => void) | undefined {
    const leases = this.#leases;
    if (leases.length === 0) return undefined;
    this.#leases = [];
    return (error) => {
      if (error) return;
      for (const lease of leases) lease.release();
      noteAnswerLeft();
    };
  }

  #giveSlabBack(): void {
    const slab = this.#slab;
    this.#slab = undefined;
    if (slab === undefined || freeSlabs.length >= FREE_SLABS_MAX) return;
    if (SLAB_BYTES - slab.at >= SLAB_REST_BYTES_MIN) freeSlabs.push(slab);
  }
}
