// What the scheduler knows of one open request, and the order between requests. The lists of waiting and of running
// requests are both kept in this order: lower priority value first, then arrival. Used by StepScheduler.
import type { KvSequence } from './prefix-tree.ts';

export interface RequestState {
  readonly id: number;
  readonly priority: number;
  readonly arrival: number;
  readonly adapter: number;
  readonly maxTokens: number;
  /** Negative when more has been forgotten than the prompt was long. */
  promptLength: number;
  /** The prompt and all that was generated, without what the context has no room for. */
  readonly tokens: number[];
  /** Present while it runs. */
  sequence: KvSequence | undefined;
  /** Tokens known when it was last admitted: computing these is prefill. */
  replayLength: number;
  preemptionCount: number;
  isCancelled: boolean;
  /** While it holds back: who computes the prefix that it waits for, and how long that is. */
  leader: RequestState | undefined;
  sharedLength: number;
  holdCount: number;
}

export function isSenior(one: RequestState, other: RequestState): boolean {
  if (one.priority !== other.priority) return one.priority < other.priority;
  return one.arrival < other.arrival;
}

export function insertBySeniority(list: RequestState[], request: RequestState): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isSenior(list[middle]!, request)) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, request);
}

export function removeFrom(list: RequestState[], request: RequestState): boolean {
  const at = list.indexOf(request);
  if (at >= 0) list.splice(at, 1);
  return at >= 0;
}

/** Known tokens that have no cell yet: 1 for a request that only decodes. */
export function remainingCount({ tokens, sequence }: RequestState): number {
  return tokens.length - (sequence?.computed ?? 0);
}
