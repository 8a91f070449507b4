// Cuts received bytes into frames. Called by Http2Connection with every chunk. The payload of DATA is passed on in
// the pieces in which it arrives; other frames are short, and only those that a chunk ends in the middle of are copied.
// Checks what can be known from a frame's head: order, size, and which frames belong to the connection.
//
//   preface ──▶ head (9 bytes) ──▶ whole payload ─▶ onFrame         ──▶ head …
//                             ├──▶ DATA: onDataBegin, onDataPiece …, onDataEnd
//                             └──▶ skipped: unknown types, GOAWAY, PRIORITY

import { ERROR_CODE, FLAG, FRAME, FRAME_HEAD_BYTES, PREFACE } from './frames.ts';
import { Http2Error } from './http2-error.ts';

export interface FrameHead {
  length: number;
  type: number;
  flags: number;
  streamId: number;
}

export interface FrameSink {
  /** HEADERS, CONTINUATION, RST_STREAM, SETTINGS, PING or WINDOW_UPDATE; the payload is at [at, at + head.length). */
  onFrame(head: FrameHead, bytes: Buffer, at: number): void;
  /** PRIORITY, GOAWAY or a type that we do not know; its payload is dropped. */
  onSkipped(head: FrameHead): void;
  onDataBegin(head: FrameHead): void;
  /** So many bytes of the payload are padding and the length of it. */
  onPadding(byteLength: number): void;
  onDataPiece(piece: Buffer): void;
  onDataEnd(isEndStream: boolean): void;
}

export interface FrameReaderLimits {
  readonly frameBytesMax: number;
  readonly headerBlockBytesMax: number;
}

/** A thousand settings in one frame are no settings. */
const SETTINGS_BYTES_MAX = 6 * 1024;
/** On stream 0, for the whole connection. */
const CONNECTION_FRAMES: readonly number[] = [FRAME.settings, FRAME.ping, FRAME.goaway];
/** Padding length and priority, which may stand before a header block. */
const HEADERS_EXTRA_BYTES = 6 + 255;

type Payload = 'none' | 'collected' | 'skipped' | 'pad length' | 'data' | 'padding';

export class FrameReader {
  readonly #sink: FrameSink;
  readonly #limits: FrameReaderLimits;
  #prefaceBytes = 0;
  readonly #headBytes = Buffer.alloc(FRAME_HEAD_BYTES);
  #headFill = 0;
  /** Reused for each frame, also while its payload is read. */
  readonly #head: FrameHead = { length: 0, type: 0, flags: 0, streamId: 0 };
  #payload: Payload = 'none';
  /** Bytes of the payload, or of its present part, that have not arrived. */
  #left = 0;
  #paddingLeft = 0;
  #collected: Buffer | undefined;
  #isSettingsDue = true;
  /** The stream whose header block is not complete; 0 for none. */
  #continuedStreamId = 0;
  #isStopped = false;

  constructor(sink: FrameSink, limits: FrameReaderLimits) {
    this.#sink = sink;
    this.#limits = limits;
  }

  get hasPreface(): boolean {
    return this.#prefaceBytes === PREFACE.length;
  }

  /** The client has sent the preface and its settings. */
  get isEstablished(): boolean {
    return !this.#isSettingsDue;
  }

  /** Nothing more is read, not even from the present chunk. */
  stop(): void {
    this.#isStopped = true;
    this.#collected = undefined;
  }

  /** Throws Http2Error when the connection cannot go on. */
  read(chunk: Buffer): void {
    let at = this.#prefaceBytes < PREFACE.length ? this.#readPreface(chunk) : 0;
    while (at < chunk.length && !this.#isStopped) {
      at = this.#payload === 'none' ? this.#readHead(chunk, at) : this.#readPayload(chunk, at);
    }
  }

  #readPreface(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && this.#prefaceBytes < PREFACE.length) {
      if (chunk[at++] !== PREFACE[this.#prefaceBytes]) throw protocolError('not an HTTP/2 preface');
      this.#prefaceBytes++;
    }
    return at;
  }

  #readHead(chunk: Buffer, start: number): number {
    if (this.#headFill === 0 && chunk.length - start >= FRAME_HEAD_BYTES) {
      this.#parseHead(chunk, start);
      return this.#begin(chunk, start + FRAME_HEAD_BYTES);
    }
    const used = Math.min(FRAME_HEAD_BYTES - this.#headFill, chunk.length - start);
    chunk.copy(this.#headBytes, this.#headFill, start, start + used);
    this.#headFill += used;
    if (this.#headFill < FRAME_HEAD_BYTES) return start + used;
    this.#headFill = 0;
    this.#parseHead(this.#headBytes, 0);
    return this.#begin(chunk, start + used);
  }

  #parseHead(bytes: Buffer, at: number): void {
    const head = this.#head;
    head.length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    head.type = bytes[at + 3]!;
    head.flags = bytes[at + 4]!;
    head.streamId =
      ((bytes[at + 5]! & 0x7f) << 24) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 8) | bytes[at + 8]!;
  }

  /** The head is known; answers where the payload, or the next frame, goes on. */
  #begin(chunk: Buffer, at: number): number {
    const head = this.#head;
    this.#checkHead(head);
    if (head.type === FRAME.data) {
      this.#beginData(head);
      return at;
    }
    if (isSkipped(head.type)) {
      this.#sink.onSkipped(head);
      this.#left = head.length;
      this.#payload = head.length === 0 ? 'none' : 'skipped';
      return at;
    }
    if (chunk.length - at >= head.length) {
      this.#sink.onFrame(head, chunk, at);
      return at + head.length;
    }
    this.#payload = 'collected';
    this.#left = head.length;
    this.#collected = Buffer.allocUnsafe(head.length);
    return at;
  }

  #checkHead(head: FrameHead): void {
    if (head.length > this.#limits.frameBytesMax) throw sizeError('frame too large');
    if (this.#isSettingsDue) {
      const isSettings = head.type === FRAME.settings && (head.flags & FLAG.ack) === 0;
      if (!isSettings) throw protocolError('the first frame must be SETTINGS');
      this.#isSettingsDue = false;
    }
    const { streamId } = head;
    const isContinuation = head.type === FRAME.continuation;
    if (
      isContinuation ? streamId !== this.#continuedStreamId || streamId === 0 : this.#continuedStreamId !== 0
    ) {
      throw protocolError('CONTINUATION out of order');
    }
    if (isContinuation || head.type === FRAME.headers) {
      this.#continuedStreamId = (head.flags & FLAG.endHeaders) === 0 ? streamId : 0;
    }
    if (head.type === FRAME.pushPromise) throw protocolError('a client must not push');
    if (head.type < FRAME.windowUpdate && CONNECTION_FRAMES.includes(head.type) !== (streamId === 0)) {
      throw protocolError('frame on a wrong stream');
    }
    this.#checkLength(head);
  }

  #checkLength({ type, flags, length }: FrameHead): void {
    switch (type) {
      case FRAME.headers:
      case FRAME.continuation:
        if (length <= this.#limits.headerBlockBytesMax + HEADERS_EXTRA_BYTES) return;
        throw new Http2Error(ERROR_CODE.enhanceYourCalm, 'header block too large');
      case FRAME.settings:
        if (length > SETTINGS_BYTES_MAX)
          throw new Http2Error(ERROR_CODE.enhanceYourCalm, 'too many settings');
        if (length % 6 === 0 && (length === 0 || (flags & FLAG.ack) === 0)) return;
        throw sizeError('SETTINGS of a wrong size');
      case FRAME.ping:
        if (length !== 8) throw sizeError('PING of a wrong size');
        return;
      case FRAME.rstStream:
      case FRAME.windowUpdate:
        if (length !== 4) throw sizeError('frame of a wrong size');
        return;
      case FRAME.priority:
        if (length !== 5) throw sizeError('PRIORITY of a wrong size');
        return;
      case FRAME.goaway:
        if (length < 8) throw sizeError('GOAWAY of a wrong size');
        return;
      default:
        return;
    }
  }

  #beginData(head: FrameHead): void {
    const isPadded = (head.flags & FLAG.padded) !== 0;
    if (isPadded && head.length === 0) throw sizeError('no room for the padding');
    this.#sink.onDataBegin(head);
    this.#paddingLeft = 0;
    this.#left = isPadded ? 1 : head.length;
    this.#payload = isPadded ? 'pad length' : 'data';
    if (this.#left === 0) this.#endData();
  }

  /** Answers where it stopped: the payload is complete, or the chunk is used up. */
  #readPayload(chunk: Buffer, start: number): number {
    const end = Math.min(start + this.#left, chunk.length);
    this.#left -= end - start;
    switch (this.#payload) {
      case 'collected':
        this.#collect(chunk, start, end);
        break;
      case 'pad length':
        this.#beginPadded(chunk[start]!);
        break;
      case 'data':
        this.#sink.onDataPiece(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end));
        if (this.#left === 0) this.#endDataOrPad();
        break;
      case 'padding':
        if (this.#left === 0) this.#endData();
        break;
      default:
        if (this.#left === 0) this.#payload = 'none';
    }
    return end;
  }

  #collect(chunk: Buffer, start: number, end: number): void {
    const payload = this.#collected!;
    chunk.copy(payload, payload.length - this.#left - (end - start), start, end);
    if (this.#left > 0) return;
    this.#payload = 'none';
    this.#collected = undefined;
    this.#sink.onFrame(this.#head, payload, 0);
  }

  #beginPadded(padLength: number): void {
    const rest = this.#head.length - 1;
    if (padLength > rest) throw protocolError('more padding than payload');
    this.#sink.onPadding(padLength + 1);
    this.#paddingLeft = padLength;
    this.#left = rest - padLength;
    this.#payload = 'data';
    if (this.#left === 0) this.#endDataOrPad();
  }

  #endDataOrPad(): void {
    if (this.#paddingLeft === 0) {
      this.#endData();
      return;
    }
    this.#payload = 'padding';
    this.#left = this.#paddingLeft;
  }

  #endData(): void {
    this.#payload = 'none';
    this.#sink.onDataEnd((this.#head.flags & FLAG.endStream) !== 0);
  }
}

function isSkipped(type: number): boolean {
  return type === FRAME.priority || type === FRAME.goaway || type > FRAME.continuation;
}

function protocolError(message: string): Http2Error {
  return new Http2Error(ERROR_CODE.protocol, message);
}

function sizeError(message: string): Http2Error {
  return new Http2Error(ERROR_CODE.frameSize, message);
}
