// preserve_ordering: answers leave in the order in which the requests came, whichever instance was faster.
// Holds finished answers until every earlier request has been answered.

import { Deque } from '../../lib/deque.ts';
import type { Entry } from './entry.ts';

export class OrderedAnswers {
  readonly #order = new Deque<Entry>();

  add(entry: Entry): void {
    this.#order.pushBack(entry);
  }

  /** `send` runs when it is this entry's turn. */
  answer(entry: Entry, send: () => void): void {
    entry.release = send;
    for (;;) {
      const first = this.#order.peekFront();
      if (first?.release === undefined) return;
      this.#order.popFront();
      const release = first.release;
      first.release = undefined;
      release();
    }
  }
}
