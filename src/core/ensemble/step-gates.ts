// How many requests of each step are on their way, over all requests of one ensemble: `max_inflight_requests` of its
// config. A step that finds its gate closed waits here, first in first out.

import { Deque } from '../../lib/deque.ts';

/** Something that waits for its turn at a gate. */
export interface GateWaiter {
  /** It has been given up; it takes no turn. */
  readonly isEnded: boolean;
  enter(): void;
}

interface Gate {
  inFlightCount: number;
  readonly waiting: Deque<GateWaiter>;
}

export class StepGates {
  readonly #max: number;
  readonly #gates: readonly Gate[];
  /** Steps whose waiters are being let in; an entry that fails at once must not begin another round inside it. */
  readonly #opening = new Set<number>();

  /** `max` 0 is no limit. */
  constructor(stepCount: number, max: number) {
    this.#max = max === 0 ? Number.POSITIVE_INFINITY : max;
    this.#gates = Array.from({ length: stepCount }, () => ({ inFlightCount: 0, waiting: new Deque() }));
  }

  inFlightCountOf(step: number): number {
    return this.#gates[step]!.inFlightCount;
  }

  /** False when the waiter's `enter` is called later, or never once it has ended. */
  tryEnter(step: number, waiter: GateWaiter): boolean {
    const gate = this.#gates[step]!;
    if (gate.inFlightCount >= this.#max || gate.waiting.size > 0) {
      gate.waiting.pushBack(waiter);
      return false;
    }
    gate.inFlightCount++;
    return true;
  }

  /** Without waiting: for what must not wait for itself. */
  enterNow(step: number): void {
    this.#gates[step]!.inFlightCount++;
  }

  leave(step: number): void {
    const gate = this.#gates[step]!;
    gate.inFlightCount--;
    this.letIn(step);
  }

  /** Lets in who may, and forgets who has ended. */
  letIn(step: number): void {
    if (this.#opening.has(step)) return;
    const gate = this.#gates[step]!;
    this.#opening.add(step);
    while (gate.waiting.size > 0) {
      if (gate.waiting.peekFront()!.isEnded) {
        gate.waiting.popFront();
        continue;
      }
      if (gate.inFlightCount >= this.#max) break;
      gate.inFlightCount++;
      gate.waiting.popFront()!.enter();
    }
    this.#opening.delete(step);
  }
}
