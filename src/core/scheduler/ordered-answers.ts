// preserve_ordering: answers leave in the order in which the requests came, whichever instance was faster.
// Holds responses until every earlier request has had its last.

import { Deque } from '../../lib/deque.ts';
import type { Entry } from './entry.ts';

export class OrderedAnswers {
  readonly #order = new Deque<Entry>();

  add(entry: Entry): void {
    this.#order.pushBack(entry);
  }

  /** One response of several: `send` runs now, or when it is this entry's turn. True: now. */
  respond(entry: Entry, send: () => void): boolean {
    if (this.#order.peekFront() === entry) {
      send();
      return true;
    }
    entry.held ??= [];
    entry.held.push(send);
    return false;
  }

  /** The last one. */
  answer(entry: Entry, send: () => void): void {
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
