// Which decoupled steps of one request are paused, so that a slow step after them, or a slow client, does not fill
// memory with what they send. A pause ends when there is room; it never lasts when nothing else could make room.
// Used by ensemble-run.ts.

import type { Clock } from '../../lib/clock.ts';
import { StallWatch } from './stall-watch.ts';
import type { StepRun } from './step-run.ts';

export interface BackPressureOptions {
  readonly clock: Clock;
  /** Passes that one decoupled step may have begun and that go on. */
  readonly passesMax: number;
  /** Steps that wait at a gate or run. */
  openCount(): number;
  /** The tensors of all requests fill the ensemble. */
  isFull(): boolean;
  /** Full, and no step gets on. */
  onStuck(): void;
}

export class BackPressure {
  readonly #options: BackPressureOptions;
  readonly #paused = new Set<StepRun>();
  readonly #stall: StallWatch;
  #isClientSlow = false;
  /** Steps that wait at a gate. */
  waitingCount = 0;

  constructor(options: BackPressureOptions) {
    this.#options = options;
    this.#stall = new StallWatch(options.clock, () => this.#onStalled());
  }

  /** A decoupled step has sent a response; false when it is paused now. */
  admit(run: StepRun): boolean {
    if (this.#hasRoom(run)) return true;
    if (this.#stall.isStalled && this.#options.isFull()) {
      this.#options.onStuck();
      return true;
    }
    this.#paused.add(run);
    this.#stall.watch();
    return false;
  }

  setClientSlow(isSlow: boolean): void {
    this.#isClientSlow = isSlow;
    if (!isSlow) this.resume();
  }

  ended(run: StepRun): void {
    this.#stall.progress();
    this.#paused.delete(run);
  }

  /** Something has got on: whoever has room goes on. */
  resume(): void {
    for (const run of this.#paused) {
      if (!this.#hasRoom(run)) continue;
      this.#paused.delete(run);
      run.onRoom?.();
    }
  }

  /** The request has ended. */
  stop(): void {
    this.#paused.clear();
    this.#stall.stop();
  }

  /**
   * A step waits while what it has caused is much, or waits itself; but not when nothing else is on its way, for then
   * only it can change that.
   */
  #hasRoom(run: StepRun): boolean {
    if (this.#isClientSlow) return false;
    const { passesMax, isFull, openCount } = this.#options;
    const isMuch = this.waitingCount > 0 || run.passesBegun.size >= passesMax || isFull();
    if (!isMuch || (this.#stall.isStalled && !isFull())) return true;
    const others = openCount() - this.#paused.size - (this.#paused.has(run) ? 0 : 1);
    return others <= 0;
  }

  /** What is after a paused step does not get on: the step goes on if there is room, else the request cannot. */
  #onStalled(): void {
    if (this.#isClientSlow) this.#stall.watch();
    else if (this.#options.isFull()) this.#options.onStuck();
    else this.resume();
  }
}
