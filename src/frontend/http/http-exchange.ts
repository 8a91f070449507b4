// One request and its answer on a connection: what endpoints see, and the guard that lets one answer through and no
// more. http-connection.ts makes one per request.

import { Cancellation } from '../../lib/cancellation.ts';
import type { HttpAnswer, HttpAnswerHead } from './answer.ts';
import { createGoneStream, type HttpStreamWriter } from './answer-stream.ts';
import type { RequestHead } from './request-head.ts';

export interface HttpExchange {
  readonly head: RequestHead;
  /** Cancelled when the client goes away before the answer. */
  readonly cancellation: Cancellation;
  /**
   * Once; later calls and calls after the client has gone do nothing. Before the body is complete it ends the
   * connection, because what follows could not be told from the next request.
   */
  respond(answer: HttpAnswer): void;
  /**
   * In place of `respond`, and only once the body is complete: an answer that is written piece by piece. When the
   * client has gone the writer takes everything and drops it.
   */
  begin(head: HttpAnswerHead): HttpStreamWriter;
  /** No more requests on this connection after the answer. */
  closeAfterAnswer(): void;
}

/** What a connection does for its exchanges. */
export interface ExchangeOwner {
  write(exchange: Exchange, answer: HttpAnswer): void;
  beginStream(exchange: Exchange, head: HttpAnswerHead): HttpStreamWriter;
}

/** One per request, so that a late answer can never reach the next one. */
export class Exchange implements HttpExchange {
  readonly head: RequestHead;
  readonly cancellation = new Cancellation();
  readonly #owner: ExchangeOwner;
  #isAnswered = false;
  isLast = false;

  constructor(head: RequestHead, owner: ExchangeOwner) {
    this.head = head;
    this.#owner = owner;
  }

  respond(answer: HttpAnswer): void {
    if (this.#isAnswered || this.cancellation.isCancelled) return;
    this.#isAnswered = true;
    this.#owner.write(this, answer);
  }

  begin(head: HttpAnswerHead): HttpStreamWriter {
    if (this.#isAnswered || this.cancellation.isCancelled) return createGoneStream();
    this.#isAnswered = true;
    return this.#owner.beginStream(this, head);
  }

  closeAfterAnswer(): void {
    this.isLast = true;
  }
}
