// Decides when DATA leaves: the windows of stream and connection, the peer's frame size, and a socket that must not
// hold more than it can send soon. Streams that may send take turns: a large answer leaves whole, because many that leave bit by
// bit all arrive late; a small one does not wait for all of the large ones. Called by ServerStream with what to send, by
// Http2Connection when a window opens or the socket drains.

import type { FrameOutput } from './frame-output.ts';
import { FLAG, FRAME, FRAME_BYTES_MIN, WINDOW_BYTES_INITIAL } from './frames.ts';
import type { SendQueue } from './send-queue.ts';

/** What the scheduler needs of a stream. */
export interface SendingStream {
  readonly id: number;
  readonly queue: SendQueue | undefined;
  /** May be negative, after SETTINGS. */
  sendWindow: number;
  /** The scheduler's: where it waits for its turn. */
  line: SendingStream[] | undefined;
  /** The queue has become empty. */
  onQueueSent(): void;
}

/** More than this in the socket only adds delay for the other streams. */
const SOCKET_BYTES_MAX = 1024 * 1024;
/** What a stream sends before it is the next one's turn. */
const TURN_BYTES = 1024 * 1024;
/** With no more than this to send, a stream goes before the larger ones. */
const SHORT_BYTES = 64 * 1024;
const SHORT_TURNS = TURN_BYTES / SHORT_BYTES;

export class SendScheduler {
  readonly output: FrameOutput;
  #window = WINDOW_BYTES_INITIAL;
  #frameBytesMax = FRAME_BYTES_MIN;
  #sentCount = 0;
  /** Streams with something queued and a window, in the order of their turns. No Sets: see lib/number-table.ts. */
  readonly #short: SendingStream[] = [];
  readonly #long: SendingStream[] = [];
  /** Turns of short ones since the last one of a long one. */
  #shortTurns = 0;
  #isPumping = false;

  constructor(output: FrameOutput) {
    this.output = output;
  }

  /** Grows with every HEADERS and DATA frame. */
  get sentCount(): number {
    return this.#sentCount;
  }

  get window(): number {
    return this.#window;
  }

  setFrameBytesMax(byteLength: number): void {
    this.#frameBytesMax = byteLength;
  }

  addWindow(byteLength: number): void {
    this.#window += byteLength;
    this.pump();
  }

  sendHeaders(streamId: number, block: Buffer, isEnd: boolean): void {
    this.#sentCount++;
    const endStream = isEnd ? FLAG.endStream : 0;
    const length = Math.min(block.length, this.#frameBytesMax);
    const endHeaders = length === block.length ? FLAG.endHeaders : 0;
    this.output.frameHead(length, FRAME.headers, endStream | endHeaders, streamId);
    this.output.payload(block, 0, length);
    for (let at = length; at < block.length; ) {
      const end = Math.min(at + this.#frameBytesMax, block.length);
      const flags = end === block.length ? FLAG.endHeaders : 0;
      this.output.frameHead(end - at, FRAME.continuation, flags, streamId);
      this.output.payload(block, at, end);
      at = end;
    }
  }

  /** The fast path: one frame, at once. False: it does not fit and must be queued. */
  trySend(stream: SendingStream, parts: readonly Buffer[], byteLength: number): boolean {
    if (byteLength > this.#frameBytesMax || byteLength > stream.sendWindow || byteLength > this.#window)
      return false;
    if (this.output.backlogBytes >= SOCKET_BYTES_MAX) return false;
    this.#dataHead(stream, byteLength);
    for (const part of parts) this.output.payload(part);
    return true;
  }

  /** The stream has queued something, or its window has opened. */
  offer(stream: SendingStream): void {
    if (stream.sendWindow <= 0 || stream.queue === undefined) return;
    this.#lineUp(stream, stream.queue);
    this.pump();
  }

  /** The stream is closed, or its window is. */
  remove(stream: SendingStream): void {
    const { line } = stream;
    if (line === undefined) return;
    line.splice(line.indexOf(stream), 1);
    stream.line = undefined;
  }

  /** Sends what may be sent. A stream that is called back here and queues more waits for its turn. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#window > 0 && this.output.backlogBytes < SOCKET_BYTES_MAX) {
      const stream = this.#takeNext();
      if (stream === undefined) break;
      const { queue } = stream;
      if (queue === undefined || stream.sendWindow <= 0) continue;
      this.#sendTurn(stream, queue);
      if (queue.byteLength === 0) stream.onQueueSent();
      else if (stream.sendWindow > 0) this.#lineUp(stream, queue);
    }
    this.#isPumping = false;
  }

  #lineUp(stream: SendingStream, queue: SendQueue): void {
    const line = queue.byteLength <= SHORT_BYTES ? this.#short : this.#long;
    if (stream.line === line) return;
    this.remove(stream);
    line.push(stream);
    stream.line = line;
  }

  /** A short one, until they have had as much as a long one gets. */
  #takeNext(): SendingStream | undefined {
    const isShort = this.#short.length > 0 && (this.#shortTurns < SHORT_TURNS || this.#long.length === 0);
    const stream = (isShort ? this.#short : this.#long).shift();
    if (stream === undefined) return undefined;
    stream.line = undefined;
    this.#shortTurns = isShort ? this.#shortTurns + 1 : 0;
    return stream;
  }

  #sendTurn(stream: SendingStream, queue: SendQueue): void {
    let left = Math.min(queue.byteLength, stream.sendWindow, this.#window, TURN_BYTES);
    while (left > 0) {
      const length = Math.min(left, this.#frameBytesMax);
      this.#dataHead(stream, length);
      queue.move(length, this.output);
      left -= length;
    }
  }

  #dataHead(stream: SendingStream, byteLength: number): void {
    this.#sentCount++;
    this.#window -= byteLength;
    stream.sendWindow -= byteLength;
    this.output.frameHead(byteLength, FRAME.data, 0, stream.id);
  }
}
