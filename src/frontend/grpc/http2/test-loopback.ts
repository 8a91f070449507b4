// For the tests of this folder: a server of Http2Connections on a free port, an echo handler, and a client that sends
// frames exactly as it is told to.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { FLAG, FRAME, FRAME_HEAD_BYTES, PREFACE } from './frames.ts';
import { encodeHeaderBlock } from './hpack-encoder.ts';
import { Http2Connection } from './http2-connection.ts';
import type { HeaderPair, Http2Handler, Http2Options, Http2Stream, StreamConsumer } from './http2-types.ts';

export interface Loopback {
  readonly port: number;
  readonly connections: Set<Http2Connection>;
}

/** Ends with the test. */
export async function serve(
  t: TestContext,
  handler: Http2Handler,
  options: Partial<Http2Options> = {},
): Promise<Loopback> {
  const connections = new Set<Http2Connection>();
  const server: Server = createServer((socket) => {
    const connection = new Http2Connection(socket, handler, options);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, connections };
}

export const HEAD_BLOCK = encodeHeaderBlock([
  [':status', '200'],
  ['content-type', 'application/grpc'],
]);
export const TRAILER_BLOCK = encodeHeaderBlock([['grpc-status', '0']]);

export interface EchoEvent {
  readonly stream: Http2Stream;
  readonly headers: readonly HeaderPair[];
  readonly received: Buffer[];
  isEnd: boolean;
  abortCount: number;
  drainCount: number;
}

/** Answers what it got when the client has ended. Credit comes back with each piece. */
export function createEcho(
  options: { isAnswering?: boolean; isConsuming?: boolean } = {},
): Http2Handler & { readonly events: EchoEvent[]; readonly defects: unknown[] } {
  const { isAnswering = true, isConsuming = true } = options;
  const events: EchoEvent[] = [];
  const defects: unknown[] = [];
  function onRequest(stream: Http2Stream, headers: readonly HeaderPair[], isEnd: boolean): StreamConsumer {
    const event: EchoEvent = { stream, headers, received: [], isEnd, abortCount: 0, drainCount: 0 };
    events.push(event);
    const answer = (): void => {
      event.isEnd = true;
      if (isAnswering) stream.sendAll(HEAD_BLOCK, event.received, TRAILER_BLOCK);
    };
    if (isEnd) answer();
    return {
      onData(data) {
        event.received.push(data);
        if (isConsuming) stream.consumed(data.length);
      },
      onEnd: answer,
      onAbort: () => {
        event.abortCount++;
      },
      onDrain: () => {
        event.drainCount++;
      },
    };
  }
  return { events, defects, onRequest, onDefect: (thrown) => void defects.push(thrown) };
}

const EMPTY: Buffer = Buffer.alloc(0);

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export function encodeFrame(type: number, flags: number, streamId: number, payload: Buffer = EMPTY): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function encodeSettings(...settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * 6);
  for (const [at, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, at * 6);
    payload.writeUInt32BE(value, at * 6 + 2);
  }
  return encodeFrame(FRAME.settings, 0, 0, payload);
}

export const REQUEST_BLOCK = encodeHeaderBlock([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/a.B/C'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
]);

export function encodeRequest(
  streamId: number,
  { isEnd = false, block = REQUEST_BLOCK }: { isEnd?: boolean; block?: Buffer } = {},
): Buffer {
  return encodeFrame(FRAME.headers, FLAG.endHeaders | (isEnd ? FLAG.endStream : 0), streamId, block);
}

export function encodeData(streamId: number, payload: Buffer | string, isEnd = false): Buffer {
  return encodeFrame(FRAME.data, isEnd ? FLAG.endStream : 0, streamId, Buffer.from(payload));
}

const WAIT_MS_MAX = 10_000;

export class RawClient {
  readonly socket: Socket;
  /** Everything received that nobody has taken. */
  readonly frames: Frame[] = [];
  isClosed = false;
  #rest: Buffer = Buffer.alloc(0);
  #waiting: (() => void)[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  /** With preface and SETTINGS; the server's SETTINGS and their acknowledgement are taken. */
  static async open(port: number, settings = encodeSettings()): Promise<RawClient> {
    const client = await RawClient.connect(port);
    client.send(PREFACE, settings);
    await client.take((frame) => frame.type === FRAME.settings && frame.flags === FLAG.ack);
    client.frames.length = 0;
    return client;
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1' });
    await once(socket, 'connect');
    socket.setNoDelay(true);
    return new RawClient(socket);
  }

  send(...pieces: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(pieces));
  }

  /** The first frame that fits, received or still to come. */
  async take(isFit: (frame: Frame) => boolean): Promise<Frame> {
    const deadlineMs = performance.now() + WAIT_MS_MAX;
    for (;;) {
      const at = this.frames.findIndex(isFit);
      if (at !== -1) return this.frames.splice(at, 1)[0]!;
      if (this.isClosed) throw new Error('closed before the frame came');
      await this.#change(deadlineMs);
    }
  }

  takeType(type: number, streamId?: number): Promise<Frame> {
    return this.take(
      (frame) => frame.type === type && (streamId === undefined || frame.streamId === streamId),
    );
  }

  /** DATA of a stream up to its trailers. */
  async takeAnswer(streamId: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (;;) {
      const frame = await this.take((one) => one.streamId === streamId && one.type <= FRAME.headers);
      if (frame.type === FRAME.data) pieces.push(frame.payload);
      if ((frame.flags & FLAG.endStream) !== 0) return Buffer.concat(pieces);
    }
  }

  /** The code and the text of the GOAWAY, after which the server must close. */
  async takeGoaway(): Promise<{ code: number; text: string }> {
    const { payload } = await this.takeType(FRAME.goaway);
    await this.closed();
    return { code: payload.readUInt32BE(4), text: payload.toString('latin1', 8) };
  }

  async closed(): Promise<void> {
    const deadlineMs = performance.now() + WAIT_MS_MAX;
    while (!this.isClosed) await this.#change(deadlineMs);
  }

  /** Everything sent before has been handled, and answers to it have arrived. */
  async roundTrip(): Promise<void> {
    const payload = Buffer.from('roundtrp');
    this.send(encodeFrame(FRAME.ping, 0, 0, payload));
    await this.take((frame) => frame.type === FRAME.ping && frame.payload.equals(payload));
  }

  /** Answers the server's next PING. */
  async acknowledge(): Promise<void> {
    const { payload } = await this.takeType(FRAME.ping);
    this.send(encodeFrame(FRAME.ping, FLAG.ack, 0, payload));
  }

  #change(deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waitMs = Math.max(0, deadlineMs - performance.now());
      const timer = setTimeout(() => reject(new Error('waited too long')), waitMs);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  #onData(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= FRAME_HEAD_BYTES) {
      const end = FRAME_HEAD_BYTES + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      const payload = bytes.subarray(FRAME_HEAD_BYTES, end);
      this.frames.push({ type: bytes[3]!, flags: bytes[4]!, streamId: bytes.readUInt32BE(5), payload });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    this.#wake();
  }
}
