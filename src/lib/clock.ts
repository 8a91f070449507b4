// Time as a value that is passed in. Schedulers, statistics and timeouts take a Clock, so that a test or a
// seeded simulation can run hours of arrivals in milliseconds. Nothing in core calls Date.now or setTimeout.

import { performance } from 'node:perf_hooks';

export type CancelTimer = () => void;

export interface Clock {
  /** Milliseconds of a monotonic clock, with a fraction below one microsecond; only differences mean something. */
  nowMs(): number;
  /** Milliseconds since the epoch. */
  wallMs(): number;
  /**
   * Calls `fn` once, about `delayMs` from now; the answer cancels it and may be called at any time. System
   * timers have whole milliseconds and may come a fraction early: what must not be early looks at nowMs again.
   */
  setTimer(delayMs: number, fn: () => void): CancelTimer;
}

/** A longer setTimeout fires at once; 24 days are as good as never. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimer(delayMs, fn) {
    const timer = setTimeout(fn, Math.min(Math.ceil(delayMs), TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

interface SimulatedTimer {
  readonly atMs: number;
  readonly order: number;
  readonly fn: () => void;
  isCancelled: boolean;
}

/**
 * A clock that moves only when told to. Timers run in order of their time, and of their creation when the
 * times are equal, so that the same program gives the same run.
 */
export class SimulatedClock implements Clock {
  #nowMs = 0;
  #nextOrder = 0;
  readonly #wallStartMs: number;
  /** A binary heap: the timer at 0 is due first, the children of i are 2i+1 and 2i+2. */
  readonly #heap: SimulatedTimer[] = [];

  constructor(options: { wallStartMs?: number } = {}) {
    this.#wallStartMs = options.wallStartMs ?? Date.UTC(2024, 0, 1);
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return Math.floor(this.#wallStartMs + this.#nowMs);
  }

  setTimer(delayMs: number, fn: () => void): CancelTimer {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const timer: SimulatedTimer = { atMs, order: this.#nextOrder++, fn, isCancelled: false };
    this.#push(timer);
    return () => {
      timer.isCancelled = true;
    };
  }

  /** When the next timer is due; undefined when there is none. */
  nextTimerMs(): number | undefined {
    while (this.#heap.length > 0 && this.#heap[0]!.isCancelled) this.#pop();
    return this.#heap[0]?.atMs;
  }

  /** Runs every timer due within `deltaMs`, each at its own time, then stands at now + deltaMs. */
  advance(deltaMs: number): void {
    const endMs = this.#nowMs + deltaMs;
    for (let atMs = this.nextTimerMs(); atMs !== undefined && atMs <= endMs; atMs = this.nextTimerMs()) {
      this.#runNext();
    }
    this.#nowMs = endMs;
  }

  /** Runs timers until none is left, or `timersMax` have run; answers how many ran. */
  run(timersMax = 1_000_000): number {
    let count = 0;
    while (count < timersMax && this.nextTimerMs() !== undefined) {
      this.#runNext();
      count++;
    }
    return count;
  }

  /** As `advance`, and lets promise callbacks settle between timers; for programs that await. */
  async advanceAsync(deltaMs: number): Promise<void> {
    const endMs = this.#nowMs + deltaMs;
    await settle();
    for (let atMs = this.nextTimerMs(); atMs !== undefined && atMs <= endMs; atMs = this.nextTimerMs()) {
      this.#runNext();
      await settle();
    }
    this.#nowMs = endMs;
  }

  #runNext(): void {
    const timer = this.#pop();
    // never backwards: a timer set with no delay inside another one is due "now"
    this.#nowMs = Math.max(this.#nowMs, timer.atMs);
    timer.fn();
  }

  #push(timer: SimulatedTimer): void {
    const heap = this.#heap;
    let i = heap.push(timer) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(timer, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = timer;
  }

  #pop(): SimulatedTimer {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}

function isBefore(a: SimulatedTimer, b: SimulatedTimer): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** One turn of the event loop: every promise that can settle has settled. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
