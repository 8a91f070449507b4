// One HTTP/1.1 connection on a socket: head, body, answer, and again. Requests are handled strictly one after
// another, so at most one is open per connection; what a client sends ahead waits, up to a bound. docs/adr/0005
// says why this is not node:http.
//
//   waiting ──bytes──▶ head ──complete──▶ body ──complete──▶ answering ──respond──▶ waiting (or closed)

import type { Socket } from 'node:net';
import { HTTP_AHEAD_BYTES_MAX, HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX } from '../../domain/limits.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import { encodeAnswer, errorAnswer, type HttpAnswer } from './answer.ts';
import { type Body, BodyReader, EMPTY_BODY, tooLarge } from './body-reader.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

export interface HttpExchange {
  readonly head: RequestHead;
  /** Cancelled when the client goes away before the answer. */
  readonly cancellation: Cancellation;
  /** Once; later calls and calls after the client has gone do nothing. */
  respond(answer: HttpAnswer): void;
  /** No more requests on this connection after the answer. */
  closeAfterAnswer(): void;
}

/** Decides on a head; the answer is what to do with the body, or with nothing when the body is not wanted. */
export interface HttpHandler {
  begin(exchange: HttpExchange): { readonly isBodyKept: boolean; onBody(body: Body): void };
}

const HEAD_END = Buffer.from('\r\n\r\n');
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const EMPTY = Buffer.alloc(0);

/** One per request, so that a late answer can never reach the next one. */
class Exchange implements HttpExchange {
  readonly head: RequestHead;
  readonly cancellation = new Cancellation();
  readonly #onAnswer: (exchange: Exchange, answer: HttpAnswer) => void;
  #isAnswered = false;
  isLast = false;

  constructor(head: RequestHead, onAnswer: (exchange: Exchange, answer: HttpAnswer) => void) {
    this.head = head;
    this.#onAnswer = onAnswer;
  }

  respond(answer: HttpAnswer): void {
    if (this.#isAnswered || this.cancellation.isCancelled) return;
    this.#isAnswered = true;
    this.#onAnswer(this, answer);
  }

  closeAfterAnswer(): void {
    this.isLast = true;
  }
}

export class HttpConnection {
  readonly #socket: Socket;
  readonly #handler: HttpHandler;
  readonly #onAnswer = (exchange: Exchange, answer: HttpAnswer): void => this.#write(exchange, answer);
  #rest: Buffer = EMPTY;
  #exchange: Exchange | undefined;
  #reader: BodyReader | undefined;
  #onBody: ((body: Body) => void) | undefined;
  /** The request is complete and its answer is not there yet. */
  #isAnswering = false;
  #isClosing = false;
  /** Nothing more is read: the connection ends or has ended. */
  #isLast = false;
  #isReading = false;
  /** When the first byte of the current request came; 0 between requests. */
  #requestStartMs = 0;

  constructor(socket: Socket, handler: HttpHandler) {
    this.#socket = socket;
    this.#handler = handler;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('end', () => this.#onEnd());
    socket.on('error', () => {});
    socket.on('close', () => this.#onClose());
    socket.on('drain', () => this.#readOn());
  }

  /** True between two requests. */
  get isIdle(): boolean {
    return this.#requestStartMs === 0;
  }

  /** For a server that closes: an idle connection ends now, a busy one after its answer. */
  endSoon(): void {
    if (this.isIdle) this.#socket.end();
    this.#isClosing = true;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends the connection if the client takes too long to send a request. */
  checkTime(nowMs: number, limits: { headMsMax: number; requestMsMax: number }): void {
    if (this.#requestStartMs === 0 || this.#isAnswering) return;
    const limitMs = this.#exchange === undefined ? limits.headMsMax : limits.requestMsMax;
    if (nowMs - this.#requestStartMs <= limitMs) return;
    this.#refuse(errorAnswer(408, 'the request did not arrive in time'));
  }

  #write(exchange: Exchange, answer: HttpAnswer): void {
    const { head } = exchange;
    const isKeptAlive = head.isKeepAlive && !exchange.isLast && !this.#isClosing;
    const parts = encodeAnswer(answer, { isKeptAlive, isBodySent: head.method !== 'HEAD' });
    const socket = this.#socket;
    if (parts.length === 1) socket.write(parts[0]!);
    else {
      socket.cork();
      for (const part of parts) socket.write(part);
      socket.uncork();
    }
    this.#isAnswering = false;
    this.#exchange = undefined;
    this.#reader = undefined;
    this.#requestStartMs = 0;
    if (!isKeptAlive) {
      this.#isLast = true;
      socket.end();
    } else if (this.#rest.length > 0 || socket.isPaused()) this.#readOn();
  }

  #onData(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#isAnswering) {
      if (this.#rest.length > HTTP_AHEAD_BYTES_MAX) this.#socket.pause();
      return;
    }
    this.#readOn();
  }

  /** Works on what has arrived until it is used up or a request is being answered. */
  #readOn(): void {
    if (this.#isReading || this.#isAnswering || this.#isLast) return;
    if (this.#socket.writableLength > HTTP_AHEAD_BYTES_MAX) return;
    this.#isReading = true;
    if (this.#socket.isPaused()) this.#socket.resume();
    while (this.#rest.length > 0 && !this.#isAnswering && !this.#isLast) {
      if (!(this.#reader === undefined ? this.#readHead() : this.#readBody())) break;
    }
    this.#isReading = false;
  }

  /** True when the head was complete. */
  #readHead(): boolean {
    if (this.#requestStartMs === 0) this.#requestStartMs = performance.now();
    const end = this.#rest.indexOf(HEAD_END);
    if (end === -1 || end > HTTP_HEAD_BYTES_MAX) {
      if (this.#rest.length > HTTP_HEAD_BYTES_MAX || hasBareLineFeed(this.#rest)) this.#socket.destroy();
      return false;
    }
    const head = parseRequestHead(this.#rest.toString('latin1', 0, end));
    if (head === undefined) {
      this.#socket.destroy();
      return false;
    }
    if (head.bodyLength > HTTP_BODY_BYTES_MAX) {
      this.#refuse(errorAnswer(400, tooLarge().message));
      return false;
    }
    this.#exchange = new Exchange(head, this.#onAnswer);
    this.#rest = this.#rest.subarray(end + HEAD_END.length);
    const { isBodyKept, onBody } = this.#handler.begin(this.#exchange);
    if (head.bodyLength === 0) {
      this.#answerBody(onBody, EMPTY_BODY);
      return true;
    }
    this.#onBody = onBody;
    this.#reader = new BodyReader({ bodyLength: head.bodyLength, isKept: isBodyKept });
    if (head.isContinueExpected) this.#socket.write(CONTINUE, 'latin1');
    return true;
  }

  /** True when the body was complete. */
  #readBody(): boolean {
    const reader = this.#reader!;
    const result = reader.push(this.#rest);
    if (result.kind === 'done') {
      this.#rest = result.used === this.#rest.length ? EMPTY : this.#rest.subarray(result.used);
      this.#answerBody(this.#onBody!, reader.body);
      return true;
    }
    this.#rest = EMPTY;
    if (result.kind === 'bad') this.#socket.destroy();
    if (result.kind === 'refused') this.#refuse(errorAnswer(400, result.error.message));
    return false;
  }

  #answerBody(onBody: (body: Body) => void, body: Body): void {
    this.#isAnswering = true;
    onBody(body);
  }

  /** Answers a request that will not be read to its end, and ends the connection. */
  #refuse(answer: HttpAnswer): void {
    this.#isLast = true;
    this.#socket.end(Buffer.concat(encodeAnswer(answer, { isKeptAlive: false, isBodySent: true })));
  }

  /** A client that closes its side counts as gone, as in Triton. */
  #onEnd(): void {
    if (this.#isAnswering || !this.isIdle) this.#socket.destroy();
    else this.#socket.end();
  }

  #onClose(): void {
    this.#isLast = true;
    this.#isAnswering = false;
    this.#rest = EMPTY;
    this.#exchange?.cancellation.cancel();
    this.#exchange = undefined;
  }
}

/** Lines end with CR LF; anything else before the head is complete will never become one. */
function hasBareLineFeed(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    if (at === 0 || bytes[at - 1] !== 0x0d) return true;
  }
  return false;
}
