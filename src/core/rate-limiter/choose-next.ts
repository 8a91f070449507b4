// The decision of the rate limiter, pure: given who waits and what is free, who may begin now. spec: scheduler
// section 4. The lowest execution count times priority goes first, and what it still lacks is kept for it, so
// that small requests cannot pass it for ever; who needs other resources goes on meanwhile.

import type { ResourceNeeds } from './resources.ts';

export interface Candidate {
  readonly needs: ResourceNeeds;
  readonly priority: number;
  readonly executionCount: number;
  /** Executions that began while it waited and took of a resource it needs. */
  readonly overtakenCount: number;
  /** Grows with every wait. */
  readonly waitOrder: number;
}

export interface Situation {
  /** By resource key; may be negative after a pool has shrunk. */
  readonly free: ReadonlyMap<string, number>;
  /** Instances that take part, waiting or not. */
  readonly instanceCount: number;
}

/** Those that may begin, in the order of their turns. */
export function chooseNext<C extends Candidate>(waiting: Iterable<C>, situation: Situation): C[] {
  const { instanceCount } = situation;
  const sorted = [...waiting].sort((a, b) => compareTurns(a, b, instanceCount));
  const left = new Map(situation.free);
  const chosen: C[] = [];
  for (const candidate of sorted) {
    if (fits(candidate.needs, left)) chosen.push(candidate);
    for (const [key, { count }] of candidate.needs) left.set(key, (left.get(key) ?? 0) - count);
  }
  return chosen;
}

/**
 * Counts alone would let an instance that has rested for long, or was just loaded, run until it has caught up with all
 * the others. In balance an instance is overtaken `priority` times by each other one; past twice that it goes first.
 */
export function overtakesMax(priority: number, instanceCount: number): number {
  return 2 * priority * instanceCount;
}

function compareTurns(a: Candidate, b: Candidate, instanceCount: number): number {
  const isOverdueA = a.overtakenCount >= overtakesMax(a.priority, instanceCount);
  const isOverdueB = b.overtakenCount >= overtakesMax(b.priority, instanceCount);
  if (isOverdueA !== isOverdueB) return isOverdueA ? -1 : 1;
  const byScore = a.executionCount * a.priority - b.executionCount * b.priority;
  if (!isOverdueA && byScore !== 0) return byScore;
  return a.waitOrder - b.waitOrder;
}

function fits(needs: ResourceNeeds, left: ReadonlyMap<string, number>): boolean {
  for (const [key, { count }] of needs) {
    // Needing none of a resource that is over-committed is no hindrance.
    if (count > 0 && count > (left.get(key) ?? 0)) return false;
  }
  return true;
}
