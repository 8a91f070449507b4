// A TCP connection that sends exactly the bytes it is given and reads answers by their Content-Length: for requests
// that no HTTP client would send.
import { connect, type Socket } from 'node:net';
import type { RunningServer } from './server.ts';

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
}

export class RawConnection {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #isClosed = false;
  #onChange: (() => void) | undefined;

  constructor(server: RunningServer, options: { readonly isHalfOpenAllowed?: boolean } = {}) {
    const port = Number(server.httpAddress.split(':')[1]);
    this.socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      allowHalfOpen: options.isHalfOpenAllowed ?? false,
    });
    this.socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#onChange?.();
    });
    this.socket.on('error', () => {});
    for (const event of ['end', 'close']) {
      this.socket.on(event, () => {
        this.#isClosed = true;
        this.#onChange?.();
      });
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  send(...parts: readonly (string | Buffer)[]): void {
    for (const part of parts) this.socket.write(part);
  }

  /** The next answer; undefined when the connection was closed without one; throws after the time given. */
  async answer(msMax = 5000): Promise<RawAnswer | undefined> {
    const endMs = performance.now() + msMax;
    for (;;) {
      const answer = this.#take();
      if (answer !== undefined || this.#isClosed) return answer;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw new Error(`no answer in ${msMax} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#onChange = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  #take(): RawAnswer | undefined {
    const headEnd = this.#received.indexOf('\r\n\r\n');
    if (headEnd < 0) return undefined;
    const head = this.#received.toString('latin1', 0, headEnd);
    const length = Number(/^content-length: *([0-9]+)/im.exec(head)?.[1] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#received.length < end) return undefined;
    const body = this.#received.toString('utf8', headEnd + 4, end);
    this.#received = this.#received.subarray(end);
    return { status: Number(/^HTTP\/1\.1 ([0-9]{3})/.exec(head)?.[1] ?? 0), body };
  }

  destroy(): void {
    this.socket.destroy();
  }
}
