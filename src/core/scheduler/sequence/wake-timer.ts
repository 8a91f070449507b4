// One timer that calls at the last time it was given. The sequence batcher has a single one for delays, idle sequences and
// deadlines of the backlog.

import type { CancelTimer, Clock } from '../../../lib/clock.ts';

export class WakeTimer {
  readonly #clock: Clock;
  readonly #wake: () => void;
  #cancel: CancelTimer | undefined;
  #atMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Infinity: never. */
  set(atMs: number): void {
    if (atMs === this.#atMs) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#atMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    this.#cancel = this.#clock.setTimer(Math.max(0, atMs - this.#clock.nowMs()), () => {
      this.#atMs = Number.POSITIVE_INFINITY;
      this.#wake();
    });
  }
}
