// A server of HttpConnections on the loopback and a client that keeps every byte, for the tests of the connection.
// Used by tests alone.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpConnection, type HttpHandler } from './http-connection.ts';

/** Reached only when a test fails; a busy machine is slow. */
const WAIT_MS = 10_000;

export interface Loopback {
  readonly port: number;
  readonly connections: HttpConnection[];
  readonly sockets: Socket[];
  readonly defects: unknown[];
}

export async function serve(t: TestContext, begin: HttpHandler['begin']): Promise<Loopback> {
  const loopback = { connections: [] as HttpConnection[], sockets: [] as Socket[], defects: [] as unknown[] };
  const handler: HttpHandler = { begin, onDefect: (thrown) => loopback.defects.push(thrown) };
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    loopback.connections.push(new HttpConnection(socket, handler));
    loopback.sockets.push(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const connection of loopback.connections) connection.destroy();
  });
  return { ...loopback, port: (server.address() as AddressInfo).port };
}

/** A client that keeps everything it gets. */
export class Client {
  readonly socket: Socket;
  readonly #pieces: Buffer[] = [];
  isClosed = false;

  constructor(loopback: Loopback, allowHalfOpen = false) {
    this.socket = connect({ port: loopback.port, host: '127.0.0.1', noDelay: true, allowHalfOpen });
    this.socket.on('data', (piece) => this.#pieces.push(piece));
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.isClosed = true;
    });
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  get received(): string {
    return Buffer.concat(this.#pieces).toString('latin1');
  }

  get answers(): readonly Answer[] {
    return parseAnswers(this.received);
  }

  async answered(count: number): Promise<readonly Answer[]> {
    await until(() => this.isClosed || this.answers.length >= count);
    assert.equal(this.answers.length, count, this.received.slice(0, 2000));
    return this.answers;
  }

  async closed(): Promise<void> {
    await until(() => this.isClosed);
  }
}

export async function until(condition: () => boolean): Promise<void> {
  const startMs = performance.now();
  while (!condition()) {
    if (performance.now() - startMs > WAIT_MS) throw new Error('waited too long');
    await sleep(1);
  }
}

export interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Answers that are complete; a chunked one has its chunks joined. */
export function parseAnswers(text: string, isHead = false): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end === -1) return answers;
    const head = text.slice(at, end);
    const length = isHead ? 0 : Number(/\r\nContent-Length: ([0-9]+)/.exec(head)?.[1] ?? 0);
    const isChunked = head.includes('\r\nTransfer-Encoding: chunked');
    const body = isChunked ? readChunks(text, end + 4) : readPlain(text, end + 4, length);
    if (body === undefined) return answers;
    const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(head)?.[1]);
    answers.push({ status, head: `${head}\r\n`, body: body.text });
    at = body.end;
  }
}

interface ReadBody {
  readonly text: string;
  readonly end: number;
}

function readPlain(text: string, at: number, length: number): ReadBody | undefined {
  const end = at + length;
  return end > text.length ? undefined : { text: text.slice(at, end), end };
}

function readChunks(text: string, start: number): ReadBody | undefined {
  let body = '';
  for (let at = start; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (end > text.length) return undefined;
    assert.equal(text.slice(end - 2, end), '\r\n', 'a chunk ends with its line');
    if (size === 0) return { text: body, end };
    body += text.slice(lineEnd + 2, end - 2);
    at = end;
  }
}
