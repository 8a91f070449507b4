// Notices an execution that takes too long. A host executes one batch after another, so what counts is the time since
// the oldest open batch was sent, or since the answer before it. Instance makes one when the user sets a limit.

import { type CancelTimer, type Clock, systemClock } from '../lib/clock.ts';

export class ExecuteWatch {
  readonly #msMax: number;
  readonly #clock: Clock;
  readonly #onLate: () => void;
  #openCount = 0;
  #sinceMs = 0;
  #cancelTimer: CancelTimer | undefined;

  constructor(options: { readonly msMax: number; readonly clock?: Clock; onLate(): void }) {
    this.#msMax = options.msMax;
    this.#clock = options.clock ?? systemClock;
    this.#onLate = options.onLate;
  }

  begin(): void {
    if (this.#openCount++ === 0) this.#sinceMs = this.#clock.nowMs();
    // The timer outlives the batch it was set for: setting one per batch would cost more than a look now and then.
    this.#cancelTimer ??= this.#clock.setTimer(this.#msMax, () => this.#look());
  }

  end(): void {
    this.#openCount--;
    this.#sinceMs = this.#clock.nowMs();
  }

  /** The host has gone, and with it everything that was open. */
  reset(): void {
    this.#openCount = 0;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #look(): void {
    this.#cancelTimer = undefined;
    if (this.#openCount === 0) return;
    const leftMs = this.#sinceMs + this.#msMax - this.#clock.nowMs();
    if (leftMs <= 0) this.#onLate();
    else this.#cancelTimer = this.#clock.setTimer(leftMs, () => this.#look());
  }
}
