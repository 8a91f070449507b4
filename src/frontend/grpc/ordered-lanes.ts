// Answers of the ordinary requests of one stream leave in the order of the requests: each request has a lane, and only
// the first lane writes; what the others write waits in them. Used by model-stream-infer.ts.

import { Deque } from '../../lib/deque.ts';
import type { OutgoingMessage } from './grpc-call.ts';

/** Where the answers of one request go. */
export interface Lane {
  /** False: the client reads too slowly. */
  write(encoded: OutgoingMessage): boolean;
  end(): void;
}

interface OrderedLane extends Lane {
  readonly waiting: OutgoingMessage[];
  isEnded: boolean;
}

export class OrderedLanes {
  readonly #write: (encoded: OutgoingMessage) => boolean;
  readonly #lanes = new Deque<OrderedLane>();

  constructor(write: (encoded: OutgoingMessage) => boolean) {
    this.#write = write;
  }

  /** Lanes that have not been written out; answers may wait in them. */
  get openCount(): number {
    return this.#lanes.size;
  }

  open(): Lane {
    const lane: OrderedLane = {
      waiting: [],
      isEnded: false,
      write: (encoded) => {
        if (this.#lanes.peekFront() === lane) return this.#write(encoded);
        lane.waiting.push(encoded);
        return true;
      },
      end: () => {
        lane.isEnded = true;
        this.#advance();
      },
    };
    this.#lanes.pushBack(lane);
    return lane;
  }

  #advance(): void {
    for (;;) {
      const first = this.#lanes.peekFront();
      if (first === undefined) return;
      for (const encoded of first.waiting.splice(0)) this.#write(encoded);
      if (!first.isEnded) return;
      this.#lanes.popFront();
    }
  }
}
