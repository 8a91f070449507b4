// The decision of the dynamic batcher, pure: given what waits, the policy and the time, how many requests from
// the head of the queue go out now, or until when to wait. spec: scheduler section 1, rules 2 to 8.

/** A waiting request, as far as the decision needs it. */
export interface Waiting {
  readonly batchSize: number;
  readonly batchKey: string;
  readonly queueStartMs: number;
  /** Already answered (cancelled, expired): takes a place in the queue but no row in a batch. */
  readonly isAnswered: boolean;
}

export interface QueueView {
  readonly length: number;
  at(index: number): Waiting;
}

export interface BatchPolicy {
  /** False: every request is a batch of its own. */
  readonly isBatching: boolean;
  readonly batchSizeMax: number;
  readonly preferredSizes: ReadonlySet<number>;
  readonly preferredSizeMax: number;
  readonly queueDelayMs: number;
}

/** take > 0: that many places from the head. take = 0: look again at waitUntilMs (Infinity when empty). */
export interface BatchDecision {
  readonly take: number;
  readonly waitUntilMs: number;
}

const NOTHING: BatchDecision = { take: 0, waitUntilMs: Number.POSITIVE_INFINITY };

export function formBatch(queue: QueueView, policy: BatchPolicy, nowMs: number): BatchDecision {
  const head = firstWaiting(queue);
  if (head === queue.length) return NOTHING;
  const first = queue.at(head);
  if (!policy.isBatching) return { take: head + 1, waitUntilMs: nowMs };

  let size = first.batchSize;
  // With priorities or delayed requests the head need not be the one that waits longest.
  let oldestMs = first.queueStartMs;
  let take = head + 1;
  let preferredTake = policy.preferredSizes.has(size) ? take : 0;
  let canGrow = size < policy.batchSizeMax;
  for (let i = take; i < queue.length; i++) {
    const next = queue.at(i);
    if (next.isAnswered) continue;
    const grown = size + next.batchSize;
    if (grown > policy.batchSizeMax || next.batchKey !== first.batchKey) {
      canGrow = false;
      break;
    }
    if (grown > policy.preferredSizeMax && preferredTake === 0) preferredTake = take;
    size = grown;
    if (next.queueStartMs < oldestMs) oldestMs = next.queueStartMs;
    take = i + 1;
    if (policy.preferredSizes.has(size)) preferredTake = take;
  }

  const delayEndMs = oldestMs + policy.queueDelayMs;
  const isDelayExceeded = policy.queueDelayMs > 0 && nowMs >= delayEndMs;
  if (preferredTake > 0 && !isDelayExceeded) return { take: preferredTake, waitUntilMs: nowMs };
  const isFull = !canGrow || size >= policy.preferredSizeMax;
  if (isFull || isDelayExceeded || policy.queueDelayMs === 0) return { take, waitUntilMs: nowMs };
  return { take: 0, waitUntilMs: delayEndMs };
}

function firstWaiting(queue: QueueView): number {
  let index = 0;
  while (index < queue.length && queue.at(index).isAnswered) index++;
  return index;
}
