// An answer written piece by piece: each `write` is one chunk and leaves the process at once, the head with the first.
// http-connection.ts makes one per streamed answer; it knows nothing of what is written.

import type { Socket } from 'node:net';
import { HTTP_AHEAD_BYTES_MAX } from '../../domain/limits.ts';

export interface HttpStreamWriter {
  /**
   * False: more is waiting for the client than it should, and `onDrain` is called when that has left or the client
   * has gone. What is written all the same is not refused. After the client has gone everything is dropped.
   */
  write(bytes: Buffer): boolean;
  /** Once; with the last piece, if there is one. The connection is then free for the next request. */
  end(bytes?: Buffer): void;
  onDrain: (() => void) | undefined;
}

/** For an answer that nobody waits for any more. */
export function createGoneStream(): HttpStreamWriter {
  return { write: () => true, end: () => {}, onDrain: undefined };
}

/** Above this a copy into one buffer costs more than a second write. */
const SINGLE_WRITE_BYTES_MAX = 64 * 1024;
const LAST_CHUNK = '0\r\n\r\n';

export interface AnswerStreamOptions {
  readonly head: string;
  /** False: the bytes as they are, until the connection ends. */
  readonly isChunked: boolean;
  /** False after HEAD. */
  readonly isBodySent: boolean;
  /** Called by `end`, never after the client has gone. */
  readonly onEnd: () => void;
}

export class AnswerStream implements HttpStreamWriter {
  readonly #socket: Socket;
  readonly #options: AnswerStreamOptions;
  /** Leaves with the first piece: one packet instead of two. */
  #head: string;
  #isOver = false;
  #isBehind = false;
  onDrain: (() => void) | undefined;

  constructor(socket: Socket, options: AnswerStreamOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#head = options.head;
  }

  write(bytes: Buffer): boolean {
    if (this.#isOver) return true;
    this.#send(bytes, '');
    this.#isBehind ||= this.#socket.writableLength > HTTP_AHEAD_BYTES_MAX;
    return !this.#isBehind;
  }

  end(bytes?: Buffer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#send(bytes, this.#options.isChunked ? LAST_CHUNK : '');
    this.#options.onEnd();
  }

  /** The socket has taken everything, or never will. */
  drained(): void {
    if (!this.#isBehind) return;
    this.#isBehind = false;
    this.onDrain?.();
  }

  /** The client has gone: what is still written goes nowhere. */
  gone(): void {
    this.#isOver = true;
  }

  #send(bytes: Buffer | undefined, tail: string): void {
    const { isChunked, isBodySent } = this.#options;
    let before = this.#head;
    let after = '';
    this.#head = '';
    // An empty chunk would be the last one.
    const body = bytes !== undefined && bytes.length > 0 && isBodySent ? bytes : undefined;
    if (body !== undefined && isChunked) {
      before += `${body.length.toString(16)}\r\n`;
      after = '\r\n';
    }
    if (isBodySent) after += tail;
    this.#writeOnce(before, body, after);
  }

  #writeOnce(before: string, body: Buffer | undefined, after: string): void {
    const socket = this.#socket;
    if (body === undefined) {
      if (before !== '' || after !== '') socket.write(before + after, 'latin1');
    } else if (body.length > SINGLE_WRITE_BYTES_MAX) {
      socket.cork();
      socket.write(before, 'latin1');
      socket.write(body);
      socket.write(after, 'latin1');
      socket.uncork();
    } else {
      const whole = Buffer.allocUnsafe(before.length + body.length + after.length);
      const at = whole.write(before, 0, 'latin1');
      body.copy(whole, at);
      whole.write(after, at + body.length, 'latin1');
      socket.write(whole);
    }
  }
}
