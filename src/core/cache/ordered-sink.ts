// preserve_ordering where some answers come from the cache: a hit waits until every earlier request has its answer. Made by
// cached-model.ts for such models; the order itself is kept by OrderedAnswers.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import type { OrderedAnswers, Turn } from '../scheduler/ordered-answers.ts';

export class OrderedSink implements ResponseSink, Turn {
  held: (() => void)[] | undefined;
  isEnded = false;
  readonly #inner: ResponseSink;
  readonly #order: OrderedAnswers;

  /** Takes the next place in the order. */
  constructor(inner: ResponseSink, order: OrderedAnswers) {
    this.#inner = inner;
    this.#order = order;
    order.add(this);
  }

  get onRoom(): (() => void) | undefined {
    return this.#inner.onRoom;
  }

  set onRoom(listener: (() => void) | undefined) {
    this.#inner.onRoom = listener;
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    let hasRoom = true;
    this.#order.respond(this, () => {
      hasRoom = this.#inner.send(response, isFinal);
    });
    return hasRoom;
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    let hasRoom = true;
    this.#order.respond(this, () => {
      hasRoom = this.#inner.sendError(error, isFinal);
    });
    return hasRoom;
  }

  finish(): void {
    this.#order.answer(this, () => this.#inner.finish());
  }

  fail(error: StatusError): void {
    this.#order.answer(this, () => this.#inner.fail(error));
  }

  /** The request was refused, which its caller has been told otherwise. */
  leave(): void {
    this.#order.answer(this, () => {});
  }
}
