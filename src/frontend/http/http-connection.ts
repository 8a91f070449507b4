// One HTTP/1.1 connection on a socket: head, body, answer, and again. Requests are handled strictly one after
// another, so at most one is open per connection; what a client sends ahead waits, up to a bound. docs/adr/0005
// says why this is not node:http.
//
//   waiting ──bytes──▶ head ──complete──▶ body ──complete──▶ answering ──respond──▶ waiting (or closed)
//                                                                └──begin, write …, end──▶

import type { Socket } from 'node:net';
import { HTTP_AHEAD_BYTES_MAX, HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX } from '../../domain/limits.ts';
import { StatusError } from '../../domain/status.ts';
import {
  encodeAnswer,
  encodeStreamHead,
  errorAnswer,
  type HttpAnswer,
  type HttpAnswerHead,
  statusAnswer,
  TEXT_TYPE,
} from './answer.ts';
import { AnswerStream, createGoneStream, type HttpStreamWriter } from './answer-stream.ts';
import { type Body, BodyReader, EMPTY_BODY, tooLarge } from './body-reader.ts';
import { Exchange, type ExchangeOwner, type HttpExchange } from './http-exchange.ts';
import { parseRequestHead } from './request-head.ts';

export type { HttpExchange } from './http-exchange.ts';

/** Decides on a head; the answer is what to do with the body, or with nothing when the body is not wanted. */
export interface HttpHandler {
  begin(exchange: HttpExchange): {
    readonly isBodyKept: boolean;
    /** A longer body is read and dropped; `onBody` sees its length. */
    readonly bodyBytesMax?: number | undefined;
    onBody(body: Body): void;
  };
  /** `begin` or `onBody` threw; the client has been told. */
  onDefect(thrown: unknown): void;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const EMPTY = Buffer.alloc(0);
/** Bytes ahead are kept in the pieces in which they came; a client that sends single bytes shall not fill memory. */
const AHEAD_PIECES_MAX = 1024;

export class HttpConnection {
  readonly #socket: Socket;
  readonly #handler: HttpHandler;
  readonly #owner: ExchangeOwner = {
    write: (exchange, answer) => this.#write(exchange, answer),
    beginStream: (exchange, head) => this.#beginStream(exchange, head),
  };
  /** Being read; what came after it waits in #ahead. */
  #rest: Buffer = EMPTY;
  readonly #ahead: Buffer[] = [];
  #aheadBytes = 0;
  #exchange: Exchange | undefined;
  #reader: BodyReader | undefined;
  #plan: ReturnType<HttpHandler['begin']> | undefined;
  /** The answer that is being written piece by piece. */
  #stream: AnswerStream | undefined;
  /** The request is complete and its answer is not there yet. */
  #isAnswering = false;
  #isClosing = false;
  /** Nothing more is read, what comes is dropped: the connection ends or has ended. */
  #isLast = false;
  #isReading = false;
  /** When the first byte of the current request came; 0 between requests. */
  #requestStartMs = 0;
  /** When our side was seen to have ended; 0 before. */
  #endedMs = 0;

  constructor(socket: Socket, handler: HttpHandler) {
    this.#socket = socket;
    this.#handler = handler;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('end', () => this.#onEnd());
    socket.on('error', () => {});
    socket.on('close', () => this.#onClose());
    socket.on('drain', () => {
      this.#stream?.drained();
      this.#readOn();
    });
  }

  /** True between two requests. */
  get isIdle(): boolean {
    return this.#requestStartMs === 0;
  }

  /** For a server that closes: an idle connection ends now, a busy one after its answer. */
  endSoon(): void {
    this.#isClosing = true;
    if (this.isIdle) this.#end();
  }

  destroy(): void {
    this.#isLast = true;
    this.#socket.destroy();
  }

  /** Ends the connection if the client takes too long to send a request, or to close when we have. */
  checkTime(nowMs: number, limits: { headMsMax: number; requestMsMax: number }): void {
    if (this.#isLast) {
      if (!this.#socket.writableFinished) return;
      if (this.#endedMs === 0) this.#endedMs = nowMs;
      else if (nowMs - this.#endedMs > limits.headMsMax) this.destroy();
      return;
    }
    if (this.#requestStartMs === 0 || this.#isAnswering) return;
    const limitMs = this.#exchange === undefined ? limits.headMsMax : limits.requestMsMax;
    if (nowMs - this.#requestStartMs <= limitMs) return;
    this.#refuse(errorAnswer(408, 'the request did not arrive in time'));
  }

  #write(exchange: Exchange, answer: HttpAnswer): void {
    if (this.#isLast) return;
    const { head } = exchange;
    const isKeptAlive = this.#isKeptAlive(exchange);
    const keptAlive = head.isOld ? 'keep-alive' : '';
    const connection = isKeptAlive ? keptAlive : 'close';
    const parts = encodeAnswer(answer, { connection, isBodySent: head.method !== 'HEAD' });
    const socket = this.#socket;
    if (parts.length === 1) socket.write(parts[0]!);
    else {
      socket.cork();
      for (const part of parts) socket.write(part);
      socket.uncork();
    }
    this.#answered(isKeptAlive);
  }

  #isKeptAlive(exchange: Exchange): boolean {
    return this.#isAnswering && exchange.head.isKeepAlive && !exchange.isLast && !this.#isClosing;
  }

  /** The answer is written: on to the next request. */
  #answered(isKeptAlive: boolean): void {
    this.#isAnswering = false;
    this.#exchange = undefined;
    this.#reader = undefined;
    this.#requestStartMs = 0;
    if (!isKeptAlive) this.#end();
    else if (this.#rest.length > 0 || this.#ahead.length > 0) this.#readOn();
  }

  /** HTTP/1.0 knows no chunks: there the end of the connection is the end of the answer. */
  #beginStream(exchange: Exchange, head: HttpAnswerHead): HttpStreamWriter {
    if (this.#isLast) return createGoneStream();
    if (!this.#isAnswering) throw new Error('a stream begins only once the body is complete');
    const isChunked = !exchange.head.isOld;
    const isKeptAlive = isChunked && this.#isKeptAlive(exchange);
    const stream = new AnswerStream(this.#socket, {
      head: encodeStreamHead(head, { connection: isKeptAlive ? '' : 'close', isChunked }),
      isChunked,
      isBodySent: exchange.head.method !== 'HEAD',
      onEnd: () => {
        this.#stream = undefined;
        if (!this.#isLast) this.#answered(isKeptAlive && !this.#isClosing);
      },
    });
    this.#stream = stream;
    return stream;
  }

  #onData(chunk: Buffer): void {
    if (this.#isLast) return;
    if (this.#rest.length === 0 && this.#ahead.length === 0) this.#rest = chunk;
    else {
      this.#ahead.push(chunk);
      this.#aheadBytes += chunk.length;
    }
    this.#readOn();
    if (this.#isFarAhead) this.#socket.pause();
  }

  get #isFarAhead(): boolean {
    return this.#aheadBytes > HTTP_AHEAD_BYTES_MAX || this.#ahead.length > AHEAD_PIECES_MAX;
  }

  /** Works on what has arrived until it is used up, a request is being answered, or answers pile up unread. */
  #readOn(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    while (!this.#isAnswering && !this.#isLast && this.#socket.writableLength <= HTTP_AHEAD_BYTES_MAX) {
      if (!this.#readStep() && !this.#takeAhead()) break;
    }
    this.#isReading = false;
    if (this.#socket.isPaused() && !this.#isFarAhead) this.#socket.resume();
  }

  /** False: more bytes are needed. */
  #readStep(): boolean {
    if (this.#rest.length === 0) return false;
    return this.#reader === undefined ? this.#readHead() : this.#readBody(this.#reader);
  }

  /** Only a head that is not complete is copied, and that is short. */
  #takeAhead(): boolean {
    const next = this.#isLast ? undefined : this.#ahead.shift();
    if (next === undefined) return false;
    this.#aheadBytes -= next.length;
    this.#rest = this.#rest.length === 0 ? next : Buffer.concat([this.#rest, next]);
    return true;
  }

  /** True when the head was complete. */
  #readHead(): boolean {
    if (!this.#skipEmptyLines()) return false;
    const end = this.#rest.indexOf(HEAD_END);
    if (end === -1 || end > HTTP_HEAD_BYTES_MAX) {
      if (this.#rest.length > HTTP_HEAD_BYTES_MAX || hasBareLineFeed(this.#rest)) this.destroy();
      return false;
    }
    const head = parseRequestHead(this.#rest.toString('latin1', 0, end));
    if (head === undefined) {
      this.destroy();
      return false;
    }
    if (head.bodyLength > HTTP_BODY_BYTES_MAX) {
      this.#refuse(errorAnswer(400, tooLarge().message));
      return false;
    }
    this.#rest = this.#rest.subarray(end + HEAD_END.length);
    this.#begin(new Exchange(head, this.#owner));
    return true;
  }

  /** RFC 9112, 2.2: empty lines before a request are no part of it. True when something else is there. */
  #skipEmptyLines(): boolean {
    let at = 0;
    while (this.#rest[at] === 0x0d && this.#rest[at + 1] === 0x0a) at += 2;
    if (at > 0) this.#rest = this.#rest.subarray(at);
    if (this.#rest.length === 0) {
      this.#requestStartMs = 0;
      return false;
    }
    if (this.#requestStartMs === 0) this.#requestStartMs = performance.now();
    return true;
  }

  #begin(exchange: Exchange): void {
    const { head } = exchange;
    this.#exchange = exchange;
    let plan: ReturnType<HttpHandler['begin']>;
    try {
      plan = this.#handler.begin(exchange);
    } catch (thrown) {
      this.#fail(exchange, thrown);
      return;
    }
    if (this.#isLast) return;
    if (head.bodyLength === 0) {
      this.#answerBody(exchange, plan, EMPTY_BODY);
      return;
    }
    this.#plan = plan;
    this.#reader = new BodyReader({
      bodyLength: head.bodyLength,
      isKept: plan.isBodyKept,
      keptBytesMax: plan.bodyBytesMax,
    });
    if (head.isContinueExpected) this.#socket.write(CONTINUE, 'latin1');
  }

  /** True when the body was complete. */
  #readBody(reader: BodyReader): boolean {
    const result = reader.push(this.#rest);
    if (result.kind === 'done') {
      this.#rest = result.used === this.#rest.length ? EMPTY : this.#rest.subarray(result.used);
      this.#answerBody(this.#exchange!, this.#plan!, reader.body);
      return true;
    }
    this.#rest = EMPTY;
    if (result.kind === 'bad') this.destroy();
    if (result.kind === 'refused') this.#refuse(errorAnswer(400, result.error.message));
    return false;
  }

  #answerBody(exchange: Exchange, plan: ReturnType<HttpHandler['begin']>, body: Body): void {
    this.#isAnswering = true;
    this.#plan = undefined;
    try {
      plan.onBody(body);
    } catch (thrown) {
      this.#fail(exchange, thrown);
    }
  }

  /** A defect of the handler costs one request, not the process. */
  #fail(exchange: Exchange, thrown: unknown): void {
    exchange.respond(statusAnswer(StatusError.from(thrown), TEXT_TYPE));
    this.#handler.onDefect(thrown);
  }

  /** Answers a request that will not be read to its end, and ends the connection. */
  #refuse(answer: HttpAnswer): void {
    const parts = encodeAnswer(answer, { connection: 'close', isBodySent: true });
    for (const part of parts) this.#socket.write(part);
    this.#end();
  }

  /** What the client still sends is read and dropped: closing with unread bytes would take the answer with it. */
  #end(): void {
    this.#isLast = true;
    this.#dropRest();
    this.#socket.end();
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #dropRest(): void {
    this.#rest = EMPTY;
    this.#ahead.length = 0;
    this.#aheadBytes = 0;
  }

  /** A client that closes its side counts as gone: it cannot be told from one that has closed (docs/parity.md). */
  #onEnd(): void {
    if (this.#isLast) return;
    if (this.isIdle) this.#end();
    else this.destroy();
  }

  #onClose(): void {
    this.#isLast = true;
    this.#isAnswering = false;
    this.#dropRest();
    const stream = this.#stream;
    const exchange = this.#exchange;
    this.#stream = undefined;
    this.#exchange = undefined;
    stream?.gone();
    exchange?.cancellation.cancel();
    // Who waits for room must not wait forever.
    stream?.drained();
  }
}

/** Lines end with CR LF; anything else before the head is complete will never become one. */
function hasBareLineFeed(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    if (at === 0 || bytes[at - 1] !== 0x0d) return true;
  }
  return false;
}
