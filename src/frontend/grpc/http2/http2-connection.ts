// The server's side of one HTTP/2 connection on a socket, made for gRPC: many small requests, each answered with one
// piece of one write. Made by the gRPC server for each socket. Whatever a client sends, nothing throws out of here,
// and what it can make us hold is bounded.
//
//   Socket ─▶ FrameReader ─▶ here ─▶ StreamTable ─▶ ServerStream ─▶ consumer
//   Socket ◀─ FrameOutput ◀─ SendScheduler ◀─ ServerStream ◀─ gRPC layer

import type { Socket } from 'node:net';
import { FloodGuard } from './flood-guard.ts';
import { FrameOutput } from './frame-output.ts';
import { type FrameHead, FrameReader } from './frame-reader.ts';
import { ERROR_CODE, FLAG, FRAME, WINDOW_BYTES_INITIAL, WINDOW_BYTES_MAX } from './frames.ts';
import { HeaderReader } from './header-reader.ts';
import { Http2Error } from './http2-error.ts';
import { HTTP2_DEFAULTS, type Http2Handler, type Http2Options } from './http2-types.ts';
import { PingPolicy } from './ping-policy.ts';
import { SendScheduler } from './send-scheduler.ts';
import { parseSettings, RECEIVED_FRAME_BYTES_MAX, writeSettings } from './settings.ts';
import { StreamTable } from './stream-table.ts';

/** From the connection to the client's SETTINGS, and from our end to the client's. */
const HANDSHAKE_MS_MAX = 10_000;
/** After our last frame a slow client has this long to read the rest. */
const LAST_BYTES_MS_MAX = 60_000;
/** Answers that a client does not read; above it we do not read either. */
const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
/** A client has this long to hear that it should open no more streams; later ones are refused. */
const WARNING_MS_MAX = 1000;
const STREAM_ID_MAX = 2 ** 31 - 1;
const KEEPALIVE_PAYLOAD = Buffer.from('nereid\0\0', 'latin1');
const WARNING_PAYLOAD = Buffer.from('nereid\0\x01', 'latin1');

export class Http2Connection {
  readonly #socket: Socket;
  readonly #handler: Http2Handler;
  readonly #options: Http2Options;
  readonly #output: FrameOutput;
  readonly #scheduler: SendScheduler;
  readonly #reader: FrameReader;
  readonly #headers: HeaderReader;
  readonly #guard: FloodGuard;
  readonly #pings: PingPolicy;
  readonly #streams: StreamTable;
  /** The header block that CONTINUATION goes on with ends its stream. */
  #isContinuedEnd = false;
  readonly #openedMs: number;
  /** The client is told to open no more streams; those that it opened before it heard are taken. */
  #warning: NodeJS.Timeout | undefined;
  /** The last GOAWAY is sent; open streams go on. */
  #isEnding = false;
  /** When the connection was told to end because of its age; undefined: it was not. */
  #agedMs: number | undefined;
  /** Nothing is read or written any more, but for what the socket holds. */
  #isClosed = false;
  #closedMs = 0;

  constructor(socket: Socket, handler: Http2Handler, options: Partial<Http2Options> = {}) {
    this.#socket = socket;
    this.#handler = handler;
    this.#options = completeOptions(options);
    this.#openedMs = performance.now();
    this.#output = new FrameOutput(socket);
    this.#scheduler = new SendScheduler(this.#output);
    this.#headers = new HeaderReader(this.#options.headerListBytesMax);
    this.#guard = new FloodGuard(this.#openedMs);
    this.#pings = new PingPolicy(this.#options, this.#openedMs);
    this.#streams = new StreamTable({
      handler,
      options: this.#options,
      scheduler: this.#scheduler,
      guard: this.#guard,
      onClosed: () => this.#endIfDone(),
    });
    this.#reader = this.#createReader();
    writeSettings(this.#output, this.#options);
    const more = this.#options.connectionWindowBytes - WINDOW_BYTES_INITIAL;
    if (more > 0) this.#output.windowUpdate(0, more);
    this.#listen(socket);
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /**
   * The connection ends when its streams are done. A first GOAWAY names no stream, and a PING behind it comes back when the
   * client has heard: no stream that was under way meanwhile is refused.
   */
  endSoon(): void {
    if (this.#isClosed || this.#isEnding || this.#warning !== undefined) return;
    if (!this.#reader.isEstablished) {
      this.#takeNoMore();
      return;
    }
    this.#output.goaway(STREAM_ID_MAX, ERROR_CODE.none, '');
    this.#sendPing(0, WARNING_PAYLOAD, 0);
    this.#warning = setTimeout(() => this.#takeNoMore(), WARNING_MS_MAX);
  }

  #takeNoMore(): void {
    clearTimeout(this.#warning);
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#streams.closeToNew();
    this.#output.goaway(this.#streams.lastStreamId, ERROR_CODE.none, '');
    this.#endIfDone();
  }

  /** Open streams are aborted. */
  destroy(): void {
    this.#socket.destroy();
    this.#tearDown();
  }

  /** To be called every few seconds; `nowMs` is performance.now(). */
  checkTime(nowMs: number): void {
    if (this.#isClosed) {
      const limitMs = this.#socket.writableFinished ? HANDSHAKE_MS_MAX : LAST_BYTES_MS_MAX;
      if (nowMs - this.#closedMs > limitMs) this.#socket.destroy();
      return;
    }
    if (!this.#reader.isEstablished) {
      if (nowMs - this.#openedMs > HANDSHAKE_MS_MAX) this.destroy();
      return;
    }
    this.#checkAge(nowMs);
    if (this.#isClosed) return;
    const action = this.#pings.keepalive(nowMs, this.#streams.size);
    if (action === 'close') this.destroy();
    if (action === 'ping') this.#sendPing(0, KEEPALIVE_PAYLOAD, 0);
  }

  #checkAge(nowMs: number): void {
    const { connectionAgeMsMax, connectionAgeGraceMs } = this.#options;
    if (this.#agedMs === undefined) {
      if (connectionAgeMsMax === undefined || nowMs - this.#openedMs < connectionAgeMsMax) return;
      this.#agedMs = nowMs;
      this.endSoon();
    } else if (connectionAgeGraceMs !== undefined && nowMs - this.#agedMs >= connectionAgeGraceMs) {
      this.destroy();
    }
  }

  #createReader(): FrameReader {
    const streams = this.#streams;
    const sink = {
      onFrame: (head: FrameHead, bytes: Buffer, at: number) => this.#onFrame(head, bytes, at),
      onSkipped: () => this.#guard.countIdleFrame(),
      onDataBegin: (head: FrameHead) => streams.onDataBegin(head),
      onPadding: (byteLength: number) => streams.onPadding(byteLength),
      onDataPiece: (piece: Buffer) => streams.onDataPiece(piece),
      onDataEnd: (isEndStream: boolean) => streams.onDataEnd(isEndStream),
    };
    return new FrameReader(sink, {
      frameBytesMax: RECEIVED_FRAME_BYTES_MAX,
      headerBlockBytesMax: this.#headers.blockBytesMax,
    });
  }

  #listen(socket: Socket): void {
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('drain', () => this.#onDrain());
    // a client that closes its side counts as gone, as in every gRPC server
    socket.on('end', () => {
      if (!this.#isClosed) this.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => this.#tearDown());
  }

  #onData(chunk: Buffer): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    this.#guard.advance(nowMs);
    this.#pings.onReceived(nowMs);
    try {
      this.#reader.read(chunk);
    } catch (thrown) {
      this.#fail(thrown);
    }
    if (!this.#isClosed && this.#output.backlogBytes > BACKLOG_BYTES_MAX) this.#socket.pause();
  }

  #onDrain(): void {
    if (this.#isClosed) return;
    this.#output.onDrain(() => this.#scheduler.pump());
    if (this.#socket.isPaused() && this.#output.backlogBytes <= BACKLOG_BYTES_MAX) this.#socket.resume();
  }

  #onFrame(head: FrameHead, bytes: Buffer, at: number): void {
    switch (head.type) {
      case FRAME.headers:
        this.#onHeaders(head, bytes, at);
        return;
      case FRAME.continuation:
        this.#onHeaderBlock(head, bytes, at, at + head.length);
        return;
      case FRAME.rstStream:
        this.#streams.onReset(head.streamId);
        return;
      case FRAME.windowUpdate:
        this.#streams.onWindowUpdate(head.streamId, bytes.readUInt32BE(at) & WINDOW_BYTES_MAX);
        return;
      case FRAME.settings:
        this.#guard.countIdleFrame();
        if ((head.flags & FLAG.ack) === 0) this.#onSettings(bytes.subarray(at, at + head.length));
        return;
      case FRAME.ping:
        if ((head.flags & FLAG.ack) === 0) this.#onPing(bytes, at);
        else if (WARNING_PAYLOAD.equals(bytes.subarray(at, at + head.length))) this.#onWarned();
    }
  }

  #onHeaders(head: FrameHead, bytes: Buffer, at: number): void {
    let start = at;
    let end = at + head.length;
    if ((head.flags & FLAG.padded) !== 0 && head.length > 0) end -= bytes[start++]!;
    if ((head.flags & FLAG.priority) !== 0) start += 5;
    if (start > end) throw new Http2Error(ERROR_CODE.protocol, 'more padding than payload');
    this.#isContinuedEnd = (head.flags & FLAG.endStream) !== 0;
    this.#onHeaderBlock(head, bytes, start, end);
  }

  #onHeaderBlock({ streamId, flags }: FrameHead, bytes: Buffer, start: number, end: number): void {
    if ((flags & FLAG.endHeaders) === 0) this.#headers.addFragment(bytes, start, end);
    else this.#streams.onHeaders(streamId, this.#headers.finish(bytes, start, end), this.#isContinuedEnd);
  }

  #onSettings(payload: Buffer): void {
    const { initialWindowSize, maxFrameSize } = parseSettings(payload);
    this.#output.frameHead(0, FRAME.settings, FLAG.ack, 0);
    if (maxFrameSize !== undefined) this.#scheduler.setFrameBytesMax(maxFrameSize);
    if (initialWindowSize !== undefined) this.#streams.setInitialWindow(initialWindowSize);
  }

  #onPing(bytes: Buffer, at: number): void {
    const sentCount = this.#scheduler.sentCount;
    this.#pings.onPing(this.#guard.nowMs, { streamCount: this.#streams.size, sentCount });
    this.#sendPing(FLAG.ack, bytes, at);
  }

  #onWarned(): void {
    if (this.#warning !== undefined) this.#takeNoMore();
  }

  #sendPing(flags: number, bytes: Buffer, at: number): void {
    this.#output.frameHead(8, FRAME.ping, flags, 0);
    this.#output.payload(bytes, at, at + 8);
  }

  #endIfDone(): void {
    if (this.#isEnding && !this.#isClosed && this.#streams.size === 0) this.#end();
  }

  /** A connection error: says why, and closes. Bytes that are not even HTTP/2 get no answer, as from the C core. */
  #fail(thrown: unknown): void {
    if (this.#isClosed) return;
    const error =
      thrown instanceof Http2Error ? thrown : new Http2Error(ERROR_CODE.internal, 'internal error');
    if (error !== thrown) this.#handler.onDefect?.(thrown);
    if (!this.#reader.hasPreface) {
      this.destroy();
      return;
    }
    this.#output.goaway(this.#streams.lastStreamId, error.code, error.message);
    this.#end();
    this.#streams.abortAll();
  }

  /** What the client still sends is read and dropped: closing with unread bytes would take our last ones with it. */
  #end(): void {
    clearTimeout(this.#warning);
    this.#isClosed = true;
    this.#closedMs = performance.now();
    this.#reader.stop();
    this.#output.end();
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #tearDown(): void {
    clearTimeout(this.#warning);
    if (!this.#isClosed) this.#closedMs = performance.now();
    this.#isClosed = true;
    this.#reader.stop();
    this.#output.discard();
    this.#streams.abortAll();
  }
}

/** Windows below the default would be exceeded by what a client sends before it knows our SETTINGS. */
function completeOptions(options: Partial<Http2Options>): Http2Options {
  const all = { ...HTTP2_DEFAULTS, ...options };
  const clamp = (byteLength: number): number =>
    Math.min(Math.max(byteLength, WINDOW_BYTES_INITIAL), WINDOW_BYTES_MAX);
  return {
    ...all,
    streamWindowBytes: clamp(all.streamWindowBytes),
    connectionWindowBytes: clamp(all.connectionWindowBytes),
  };
}
