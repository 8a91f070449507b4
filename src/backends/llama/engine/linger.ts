// How long a step waits for successors. Who has just been answered often asks again at once: a batch job, an agent. The news
// reaches it while the next step begins, so its next request waits for that whole step; a moment's patience lets it join.
// Decides only; the engine waits. docs/adr/0010 has the numbers.

/** Of the step before. */
const SHARE = 0.1;
const MAX_MS = 8;
/** The way to a client and back takes about this long on a busy machine: less would be waited in vain. */
const MIN_MS = 3;
/** With shorter steps, who misses one has not lost much. */
const STEP_MS_MIN = 15;

export class Linger {
  #endedCount = 0;

  /** Generations that have ended and have no successor yet. */
  get expected(): number {
    return this.#endedCount;
  }

  noteEnd(): void {
    this.#endedCount++;
  }

  noteArrival(): void {
    if (this.#endedCount > 0) this.#endedCount--;
  }

  /** They have had their time. */
  reset(): void {
    this.#endedCount = 0;
  }

  /** 0 where nobody is expected, nothing runs that a step would be for, or others wait to join it anyway. */
  windowMs(stepMs: number, { running, waiting }: { running: number; waiting: number }): number {
    if (this.#endedCount === 0 || running === 0 || waiting > 0) return 0;
    return stepMs < STEP_MS_MIN ? 0 : Math.min(MAX_MS, Math.max(MIN_MS, stepMs * SHARE));
  }
}
