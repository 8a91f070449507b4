// One request on a connection: both directions, their windows and their ends. Made by Http2Connection, which calls the
// receiving half; the gRPC layer sees it as Http2Stream. There are thousands per second, so it is one plain object.
//
//   open ──our trailers sent──▶ closed (with RST_STREAM(NO_ERROR) if the client has not ended)
//     └──client's reset, connection lost: onAbort──▶ closed

import type { Lease } from '../../../lib/chunk-pool.ts';
import { ERROR_CODE } from './frames.ts';
import type { Http2Stream, StreamConsumer } from './http2-types.ts';
import { SendQueue } from './send-queue.ts';
import type { SendingStream, SendScheduler } from './send-scheduler.ts';

/** What a stream needs of its connection. */
export interface StreamOwner {
  readonly scheduler: SendScheduler;
  readonly streamWindowBytes: number;
  /** Received bytes that the connection's window has back. */
  giveCredit(byteLength: number): void;
  onStreamClosed(stream: ServerStream, isComplete: boolean): void;
  onDefect(thrown: unknown): void;
}

export class ServerStream implements Http2Stream, SendingStream {
  readonly id: number;
  readonly openedMs: number;
  sendWindow: number;
  queue: SendQueue | undefined;
  line: SendingStream[] | undefined;
  readonly #owner: StreamOwner;
  #consumer: StreamConsumer | undefined;
  /** What the client may still send. */
  #receiveWindow: number;
  /** Received and not consumed. */
  #heldBytes = 0;
  /** Consumed, and the client has not been told. */
  #creditBytes = 0;
  #trailers: Buffer | undefined;
  /** Of what is sent by sendAll. */
  #lease: Lease | undefined;
  #isRemoteEnded: boolean;
  /** Trailers are sent or queued. */
  #isEnding = false;
  #isDrainDue = false;
  #isClosed = false;
  #isAborted = false;

  constructor(
    owner: StreamOwner,
    state: { id: number; openedMs: number; sendWindow: number; isEnd: boolean },
  ) {
    this.id = state.id;
    this.openedMs = state.openedMs;
    this.sendWindow = state.sendWindow;
    this.#owner = owner;
    this.#receiveWindow = owner.streamWindowBytes;
    this.#isRemoteEnded = state.isEnd;
  }

  get queuedBytes(): number {
    return this.queue === undefined ? 0 : this.queue.byteLength;
  }

  get isOpen(): boolean {
    return !this.#isClosed && !this.#isEnding;
  }

  get isRemoteEnded(): boolean {
    return this.#isRemoteEnded;
  }

  sendHeaderBlock(block: Buffer, isEnd: boolean): void {
    if (isEnd) this.sendTrailers(block);
    else if (this.isOpen) this.#owner.scheduler.sendHeaders(this.id, block, false);
  }

  sendData(parts: readonly Buffer[]): void {
    if (!this.isOpen) return;
    const { scheduler } = this.#owner;
    let byteLength = 0;
    for (const part of parts) byteLength += part.length;
    if (byteLength === 0) return;
    if (this.queuedBytes === 0 && scheduler.trySend(this, parts, byteLength)) return;
    this.queue ??= new SendQueue();
    this.queue.push(parts);
    scheduler.offer(this);
    if (this.queuedBytes > 0) this.#isDrainDue = true;
  }

  sendAll(headBlock: Buffer, parts: readonly Buffer[], trailerBlock: Buffer, lease?: Lease): void {
    if (!this.isOpen) return;
    this.#lease = lease;
    this.sendHeaderBlock(headBlock, false);
    this.sendData(parts);
    this.sendTrailers(trailerBlock);
  }

  sendTrailers(block: Buffer): void {
    if (!this.isOpen) return;
    this.#isEnding = true;
    this.#trailers = block;
    if (this.queuedBytes === 0) this.#finish();
  }

  reset(errorCode: number): void {
    if (this.#isClosed) return;
    this.#owner.scheduler.output.rstStream(this.id, errorCode);
    this.#close(false);
  }

  consumed(byteLength: number): void {
    const bytes = Math.min(byteLength, this.#heldBytes);
    if (bytes <= 0) return;
    this.#heldBytes -= bytes;
    this.#owner.giveCredit(bytes);
    this.#creditBytes += bytes;
    if (this.#isRemoteEnded || this.#creditBytes * 2 < this.#owner.streamWindowBytes) return;
    this.#owner.scheduler.output.windowUpdate(this.id, this.#creditBytes);
    this.#receiveWindow += this.#creditBytes;
    this.#creditBytes = 0;
  }

  /** By the scheduler: everything queued has been handed on. */
  onQueueSent(): void {
    const consumer = this.#consumer;
    const isDrainDue = this.#isDrainDue;
    this.queue = undefined;
    this.#isDrainDue = false;
    if (this.#isEnding) this.#finish();
    if (!isDrainDue || consumer === undefined) return;
    try {
      consumer.onDrain();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** What the handler answered. The stream may have ended, or died, while it did. */
  setConsumer(consumer: StreamConsumer): void {
    if (!this.#isClosed) this.#consumer = consumer;
    else if (this.#isAborted) this.#tellAbort(consumer);
  }

  /** The head of a DATA frame. False: the client has sent more than it may. */
  takeWindow(byteLength: number): boolean {
    if (byteLength > this.#receiveWindow) return false;
    this.#receiveWindow -= byteLength;
    this.#heldBytes += byteLength;
    return true;
  }

  receive(piece: Buffer): void {
    if (this.#consumer === undefined) return;
    try {
      this.#consumer.onData(piece);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  receiveEnd(): void {
    if (this.#isClosed) return;
    this.#isRemoteEnded = true;
    try {
      this.#consumer?.onEnd();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** By the client or by the end of the connection. */
  abort(): void {
    if (this.#isClosed) return;
    const consumer = this.#consumer;
    this.#isAborted = true;
    this.#close(false);
    if (consumer !== undefined) this.#tellAbort(consumer);
  }

  /** A defect of the layer above costs one stream, not the process. */
  #fail(thrown: unknown): void {
    this.reset(ERROR_CODE.internal);
    this.#owner.onDefect(thrown);
  }

  #tellAbort(consumer: StreamConsumer): void {
    try {
      consumer.onAbort();
    } catch (thrown) {
      this.#owner.onDefect(thrown);
    }
  }

  #finish(): void {
    const { scheduler } = this.#owner;
    scheduler.sendHeaders(this.id, this.#trailers!, true);
    // RFC 9113, 8.1: the answer is complete, the rest of the request is not wanted
    if (!this.#isRemoteEnded) scheduler.output.rstStream(this.id, ERROR_CODE.none);
    if (this.#lease !== undefined) scheduler.output.releaseWritten(this.#lease);
    this.#close(true);
  }

  #close(isComplete: boolean): void {
    this.#isClosed = true;
    this.queue = undefined;
    this.#trailers = undefined;
    this.#lease = undefined;
    this.#consumer = undefined;
    this.#owner.scheduler.remove(this);
    if (this.#heldBytes > 0) this.#owner.giveCredit(this.#heldBytes);
    this.#heldBytes = 0;
    this.#owner.onStreamClosed(this, isComplete);
  }
}
