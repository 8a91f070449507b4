// Notices when the steps after a paused one have not got on for too long. One per request of an ensemble, with a timer
// only while something is paused.

import { ENSEMBLE_STALL_MS_MAX } from '../../domain/limits.ts';
import type { CancelTimer, Clock } from '../../lib/clock.ts';

export class StallWatch {
  readonly #clock: Clock;
  readonly #onStalled: () => void;
  #timer: CancelTimer | undefined;
  #progressMs = 0;
  /** Nothing has got on since it was noticed. */
  isStalled = false;

  constructor(clock: Clock, onStalled: () => void) {
    this.#clock = clock;
    this.#onStalled = onStalled;
  }

  /** Something has been paused. */
  watch(): void {
    if (this.#timer !== undefined) return;
    this.#progressMs = this.#clock.nowMs();
    this.#arm(ENSEMBLE_STALL_MS_MAX);
  }

  progress(): void {
    this.isStalled = false;
    if (this.#timer !== undefined) this.#progressMs = this.#clock.nowMs();
  }

  stop(): void {
    this.#timer?.();
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      const restMs = this.#progressMs + ENSEMBLE_STALL_MS_MAX - this.#clock.nowMs();
      if (restMs > 0) {
        this.#arm(restMs);
        return;
      }
      this.isStalled = true;
      this.#onStalled();
    });
  }
}
