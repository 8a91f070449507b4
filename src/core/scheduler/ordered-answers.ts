// preserve_ordering: answers leave in the order in which the requests came, whichever instance was faster.
// Holds responses until every earlier request has had its last.

import { Deque } from '../../lib/deque.ts';

/** What it keeps of a request: an entry of a scheduler, or a sink of the response cache. */
export interface Turn {
  /** Responses and the end that came before its turn. */
  held: (() => void)[] | undefined;
  isEnded: boolean;
}

export class OrderedAnswers {
  readonly #order = new Deque<Turn>();

  add(entry: Turn): void {
    this.#order.pushBack(entry);
  }

  /** One response of several: `send` runs now, or when it is this entry's turn. True: now. */
  respond(entry: Turn, send: () => void): boolean {
    if (this.#order.peekFront() === entry) {
      send();
      return true;
    }
    entry.held ??= [];
    entry.held.push(send);
    return false;
  }

  /** The last one. */
  answer(entry: Turn, send: () => void): void {
    entry.isEnded = true;
    if (!this.respond(entry, send)) return;
    for (;;) {
      const first = this.#order.peekFront();
      if (first === undefined) return;
      const { held } = first;
      first.held = undefined;
      if (held !== undefined) for (const run of held) run();
      if (!first.isEnded) return;
      this.#order.popFront();
    }
  }
}
