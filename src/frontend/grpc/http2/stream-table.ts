// The open streams of one connection and what arrives for them: requests, data, resets and windows, with the window
// of the connection that they share. Called by Http2Connection with each frame; throws Http2Error when the
// connection cannot go on.

import { NumberTable } from '../../../lib/number-table.ts';
import type { FloodGuard } from './flood-guard.ts';
import type { FrameHead } from './frame-reader.ts';
import { ERROR_CODE, WINDOW_BYTES_INITIAL, WINDOW_BYTES_MAX } from './frames.ts';
import type { RequestHeaders } from './header-reader.ts';
import { Http2Error } from './http2-error.ts';
import { ServerStream, type StreamOwner } from './http2-stream.ts';
import type { Http2Handler, Http2Options } from './http2-types.ts';
import type { SendScheduler } from './send-scheduler.ts';

export interface StreamTableParts {
  readonly handler: Http2Handler;
  readonly options: Http2Options;
  readonly scheduler: SendScheduler;
  readonly guard: FloodGuard;
  /** A stream has closed. */
  readonly onClosed: () => void;
}

export class StreamTable {
  readonly #parts: StreamTableParts;
  readonly #owner: StreamOwner;
  readonly #streams = new NumberTable<ServerStream>();
  #lastStreamId = 0;
  #isClosedToNew = false;
  /** Where the present DATA frame goes, and whether it has brought anything. */
  #dataStream: ServerStream | undefined;
  #hasData = false;
  /** What the client may still send, all streams together, and what it may again but has not been told. */
  #receiveWindow: number;
  #creditBytes = 0;
  /** The window of a new stream, by the client's SETTINGS. */
  #sendWindowInitial = WINDOW_BYTES_INITIAL;

  constructor(parts: StreamTableParts) {
    this.#parts = parts;
    this.#receiveWindow = parts.options.connectionWindowBytes;
    this.#owner = {
      scheduler: parts.scheduler,
      streamWindowBytes: parts.options.streamWindowBytes,
      giveCredit: (byteLength) => this.#giveCredit(byteLength),
      onStreamClosed: (stream, isComplete) => this.#onStreamClosed(stream, isComplete),
      onDefect: (thrown) => parts.handler.onDefect?.(thrown),
    };
  }

  get size(): number {
    return this.#streams.size;
  }

  get lastStreamId(): number {
    return this.#lastStreamId;
  }

  /** After GOAWAY: the client knows that later streams are not taken, so they are dropped without a word. */
  closeToNew(): void {
    this.#isClosedToNew = true;
  }

  abortAll(): void {
    for (const stream of this.#streams.values()) stream.abort();
  }

  /** A request, or the trailers of one. */
  onHeaders(streamId: number, headers: RequestHeaders, isEnd: boolean): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) this.#open(streamId, headers, isEnd);
    else if (stream.isRemoteEnded) this.#reset(stream, ERROR_CODE.streamClosed);
    else if (!isEnd) this.#reset(stream, ERROR_CODE.protocol);
    else stream.receiveEnd();
  }

  onDataBegin({ streamId, length }: FrameHead): void {
    if (length > this.#receiveWindow) {
      throw new Http2Error(ERROR_CODE.flowControl, 'connection window exceeded');
    }
    this.#receiveWindow -= length;
    this.#hasData = false;
    const stream = this.#streams.get(streamId);
    this.#dataStream = stream;
    if (stream !== undefined && !stream.isRemoteEnded && stream.takeWindow(length)) return;
    // dropped: the stream is closed and this was under way, or the client does what it must not
    this.#dataStream = undefined;
    this.#giveCredit(length);
    if (stream === undefined) this.#checkNotIdle(streamId);
    else this.#reset(stream, stream.isRemoteEnded ? ERROR_CODE.streamClosed : ERROR_CODE.flowControl);
  }

  onPadding(byteLength: number): void {
    this.#dataStream?.consumed(byteLength);
  }

  onDataPiece(piece: Buffer): void {
    this.#hasData = true;
    this.#dataStream?.receive(piece);
  }

  onDataEnd(isEndStream: boolean): void {
    if (isEndStream) this.#dataStream?.receiveEnd();
    else if (!this.#hasData) this.#parts.guard.countIdleFrame();
    this.#dataStream = undefined;
  }

  onReset(streamId: number): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#checkNotIdle(streamId);
      return;
    }
    stream.abort();
    this.#parts.guard.countReset(stream.openedMs);
  }

  onWindowUpdate(streamId: number, byteLength: number): void {
    const { scheduler } = this.#parts;
    if (streamId === 0) {
      if (byteLength === 0) throw new Http2Error(ERROR_CODE.protocol, 'empty WINDOW_UPDATE');
      if (scheduler.window + byteLength > WINDOW_BYTES_MAX) throw windowTooLarge();
      scheduler.addWindow(byteLength);
      return;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      this.#checkNotIdle(streamId);
      return;
    }
    if (byteLength === 0) this.#reset(stream, ERROR_CODE.protocol);
    else if (stream.sendWindow + byteLength > WINDOW_BYTES_MAX) this.#reset(stream, ERROR_CODE.flowControl);
    else {
      stream.sendWindow += byteLength;
      scheduler.offer(stream);
    }
  }

  /** RFC 9113, 6.9.2: open streams get the difference too, and a window may become negative by it. */
  setInitialWindow(byteLength: number): void {
    const difference = byteLength - this.#sendWindowInitial;
    this.#sendWindowInitial = byteLength;
    if (difference === 0) return;
    for (const stream of this.#streams.values()) {
      if (stream.sendWindow + difference > WINDOW_BYTES_MAX) throw windowTooLarge();
      stream.sendWindow += difference;
    }
    // only now: sending for one stream lets others send too
    for (const stream of this.#streams.values()) this.#parts.scheduler.offer(stream);
  }

  #open(streamId: number, { pairs, fault }: RequestHeaders, isEnd: boolean): void {
    const { guard, handler, options, scheduler } = this.#parts;
    if (streamId % 2 === 0) throw new Http2Error(ERROR_CODE.protocol, 'not a stream of a client');
    if (streamId <= this.#lastStreamId) {
      // trailers may have been under way when we answered; a new request with an old id may not
      if (!isEnd) throw new Http2Error(ERROR_CODE.streamClosed, 'the stream is closed');
      guard.countIdleFrame();
      return;
    }
    this.#lastStreamId = streamId;
    if (this.#isClosedToNew || this.#streams.size >= options.maxConcurrentStreams) {
      if (!this.#isClosedToNew) scheduler.output.rstStream(streamId, ERROR_CODE.refusedStream);
      guard.countRefused();
      return;
    }
    if (fault !== undefined) {
      const code = fault === 'malformed' ? ERROR_CODE.protocol : ERROR_CODE.enhanceYourCalm;
      scheduler.output.rstStream(streamId, code);
      guard.countReset(guard.nowMs);
      return;
    }
    const sendWindow = this.#sendWindowInitial;
    const stream = new ServerStream(this.#owner, { id: streamId, openedMs: guard.nowMs, sendWindow, isEnd });
    this.#streams.set(streamId, stream);
    try {
      stream.setConsumer(handler.onRequest(stream, pairs, isEnd));
    } catch (thrown) {
      stream.reset(ERROR_CODE.internal);
      handler.onDefect?.(thrown);
    }
  }

  /** A stream that the client has not opened cannot get anything but HEADERS. */
  #checkNotIdle(streamId: number): void {
    if (streamId <= this.#lastStreamId && streamId % 2 === 1) return;
    throw new Http2Error(ERROR_CODE.protocol, 'the stream is not open');
  }

  /** A stream error: this stream ends, the connection goes on. */
  #reset(stream: ServerStream, errorCode: number): void {
    this.#parts.scheduler.output.rstStream(stream.id, errorCode);
    stream.abort();
    this.#parts.guard.countReset(stream.openedMs);
  }

  /** Told in large steps: when half of the window is free again. */
  #giveCredit(byteLength: number): void {
    this.#creditBytes += byteLength;
    if (this.#creditBytes * 2 < this.#parts.options.connectionWindowBytes) return;
    this.#parts.scheduler.output.windowUpdate(0, this.#creditBytes);
    this.#receiveWindow += this.#creditBytes;
    this.#creditBytes = 0;
  }

  #onStreamClosed(stream: ServerStream, isComplete: boolean): void {
    this.#streams.delete(stream.id);
    if (isComplete) this.#parts.guard.countAnswer();
    this.#parts.onClosed();
  }
}

function windowTooLarge(): Http2Error {
  return new Http2Error(ERROR_CODE.flowControl, 'window too large');
}
