// Tries again what a PassingError ended, each time after twice the wait. Progress made in between begins the count anew, so
// that a long download over a poor line goes on as long as it gets on. Called by hub.ts and download.ts.

import { setTimeout as sleep } from 'node:timers/promises';
import { PassingError, PullError } from './pull-error.ts';

export interface RetryRules {
  /** Tries without progress, the first among them. */
  readonly triesMax: number;
  /** Before the second try. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Told before each wait. */
  onWait(reason: string, waitMs: number): void;
}

/** `progress` grows when something was achieved: the number of bytes, say. */
export async function withRetries<T>(
  rules: RetryRules,
  task: () => Promise<T>,
  progress: () => number = () => 0,
): Promise<T> {
  let failures = 0;
  let reached = progress();
  for (;;) {
    try {
      return await task();
    } catch (thrown) {
      rules.signal.throwIfAborted();
      if (!(thrown instanceof PassingError)) throw thrown;
      failures = progress() > reached ? 1 : failures + 1;
      reached = Math.max(reached, progress());
      if (failures >= rules.triesMax) {
        throw new PullError(`${thrown.message} (after ${failures} tries)`, { cause: thrown });
      }
      const waitMs = thrown.waitMs ?? rules.waitMs * 2 ** (failures - 1);
      rules.onWait(thrown.message, waitMs);
      await sleep(waitMs, undefined, { signal: rules.signal });
    }
  }
}
