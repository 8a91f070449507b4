// What the gRPC layer sees of the transport: a stream to answer on, the consumer it gives for what arrives, and the
// options of a connection. Implemented by http2-stream.ts and http2-connection.ts.

import type { Lease } from '../../../lib/chunk-pool.ts';

/** Names are lower case; pseudo headers are included. */
export type HeaderPair = readonly [name: string, value: string];

export interface Http2Handler {
  /**
   * A request's headers are complete. Answers the consumer at once, and may already have responded. With `isEnd`
   * neither onData nor onEnd follows. Equal requests of one connection often share one `headers` array.
   */
  onRequest(stream: Http2Stream, headers: readonly HeaderPair[], isEnd: boolean): StreamConsumer;
  /** The handler or a consumer threw; the stream has been reset. */
  onDefect?(thrown: unknown): void;
}

export interface StreamConsumer {
  /** A view of the received chunk, never copied. Flow control credit is given back by stream.consumed() only. */
  onData(data: Buffer): void;
  /** The client half-closed; its trailers, if any, are dropped. */
  onEnd(): void;
  /** The stream died before our side was complete. At most once, and nothing is called after it. */
  onAbort(): void;
  /** Bytes had to wait for flow control or the socket, and now all have left; also when trailers left with them. */
  onDrain(): void;
}

export interface Http2Stream {
  readonly id: number;
  /** Bytes that wait for flow control or a slow socket. */
  readonly queuedBytes: number;
  /** More can be sent: neither dead, nor reset, nor ended by our trailers. On other streams all calls do nothing. */
  readonly isOpen: boolean;
  /** A block of encodeHeaderBlock, which may be a shared constant. Before any data. */
  sendHeaderBlock(block: Buffer, isEnd: boolean): void;
  /** The parts must not change afterwards: large ones are sent without a copy. */
  sendData(parts: readonly Buffer[]): void;
  /**
   * A whole unary answer; a small one becomes one piece of one write. The lease is that of the parts' memory: it is released
   * when the system has taken all of them, and not at all when the stream or the connection ends before.
   */
  sendAll(headBlock: Buffer, parts: readonly Buffer[], trailerBlock: Buffer, lease?: Lease): void;
  /** After everything queued; ends our side. */
  sendTrailers(block: Buffer): void;
  /** Drops what is queued. The consumer is not called any more, onAbort included. */
  reset(errorCode: number): void;
  /** Gives flow control credit back for bytes that onData brought. */
  consumed(bytes: number): void;
}

export interface Http2Options {
  readonly maxConcurrentStreams: number;
  /** Decoded, with 32 bytes for each header as RFC 9113 counts; this bounds their number too. */
  readonly headerListBytesMax: number;
  /** Received bytes of a stream that are not yet consumed; at least 65,535. */
  readonly streamWindowBytes: number;
  /** The same for all streams of a connection; at least 65,535. */
  readonly connectionWindowBytes: number;
  /** How many pings may come too early on a connection without calls; 0: any number. */
  readonly pingStrikesMax: number;
  readonly pingIntervalWithoutDataMsMin: number;
  /** Silence after which we ping. */
  readonly keepaliveTimeMs: number;
  /** Silence after our ping that ends the connection. */
  readonly keepaliveTimeoutMs: number;
  readonly isKeepaliveWithoutCalls: boolean;
  /** Undefined: no limit. */
  readonly connectionAgeMsMax: number | undefined;
  /** What open calls get after that; undefined: no limit. */
  readonly connectionAgeGraceMs: number | undefined;
}

/** Keepalive and pings as Triton's flags have them by default. */
export const HTTP2_DEFAULTS: Http2Options = {
  maxConcurrentStreams: 10_000,
  headerListBytesMax: 16 * 1024,
  streamWindowBytes: 1024 * 1024,
  connectionWindowBytes: 16 * 1024 * 1024,
  pingStrikesMax: 2,
  pingIntervalWithoutDataMsMin: 300_000,
  keepaliveTimeMs: 7_200_000,
  keepaliveTimeoutMs: 20_000,
  isKeepaliveWithoutCalls: false,
  connectionAgeMsMax: undefined,
  connectionAgeGraceMs: undefined,
};
