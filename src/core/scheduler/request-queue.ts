// The waiting requests of one model: a FIFO per priority level, each with a second FIFO for requests whose
// timeout made them wait behind the others (timeout_action DELAY).
//
//   level 1: fresh ▸▸▸▸ delayed ▸▸     level 2: fresh ▸▸▸ delayed      … walked in this order
//
// Bounded in requests per level and in bytes overall. Answered entries stay in place until the walk passes them.

import { QUEUE_BYTES_MAX, QUEUE_REQUESTS_MAX } from '../../domain/limits.ts';
import type { ModelQueuePolicy } from '../../domain/model-config.ts';
import { Deque } from '../../lib/deque.ts';
import type { Entry } from './entry.ts';

export interface QueuePolicy {
  readonly isDelayAction: boolean;
  readonly timeoutMs: number;
  readonly isOverrideAllowed: boolean;
  readonly requestsMax: number;
}

interface Level {
  readonly policy: QueuePolicy;
  readonly fresh: Deque<Entry>;
  readonly delayed: Deque<Entry>;
  /** Entries that are not answered. */
  waitingCount: number;
  nextDeadlineMs: number;
}

export function toQueuePolicy(policy: ModelQueuePolicy | undefined): QueuePolicy {
  return {
    isDelayAction: policy?.timeout_action === 'DELAY',
    timeoutMs: (policy?.default_timeout_microseconds ?? 0) / 1000,
    isOverrideAllowed: policy?.allow_timeout_override ?? false,
    requestsMax: policy?.max_queue_size || QUEUE_REQUESTS_MAX,
  };
}

/** Places of answered entries that a level keeps beyond the number of waiting ones before it is swept. */
const ANSWERED_PLACES_MAX = 64;

export class RequestQueue {
  readonly #levels: readonly Level[];
  readonly #bytesMax: number;
  #byteCount = 0;

  /** `policies[i]` is the policy of level i; the bytes are bounded over all levels. */
  constructor(policies: readonly QueuePolicy[], bytesMax: number = QUEUE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
    this.#levels = policies.map((policy) => ({
      policy,
      fresh: new Deque<Entry>(),
      delayed: new Deque<Entry>(),
      waitingCount: 0,
      nextDeadlineMs: Number.POSITIVE_INFINITY,
    }));
  }

  /** Places, answered entries included; what formBatch walks. */
  get length(): number {
    let count = 0;
    for (const level of this.#levels) count += level.fresh.size + level.delayed.size;
    return count;
  }

  get waitingCount(): number {
    let count = 0;
    for (const level of this.#levels) count += level.waitingCount;
    return count;
  }

  at(index: number): Entry {
    let rest = index;
    for (const level of this.#levels) {
      if (rest < level.fresh.size) return level.fresh.at(rest)!;
      rest -= level.fresh.size;
      if (rest < level.delayed.size) return level.delayed.at(rest)!;
      rest -= level.delayed.size;
    }
    throw new RangeError(`queue has no place ${index}`);
  }

  /** Why it cannot wait here; undefined when it can. */
  refusalOf(entry: Entry): string | undefined {
    const level = this.#levels[entry.level]!;
    if (level.waitingCount >= level.policy.requestsMax) return 'Exceeds maximum queue size';
    if (this.#byteCount + entry.byteLength <= this.#bytesMax) return undefined;
    return (
      `Exceeds maximum queue size in bytes: ${this.#byteCount} bytes wait, ${entry.byteLength} more would be above ` +
      `the limit of ${this.#bytesMax} (parameter max_queue_bytes of the model)`
    );
  }

  push(entry: Entry, nowMs: number): void {
    const level = this.#levels[entry.level]!;
    entry.queueStartMs = nowMs;
    entry.deadlineMs = deadlineOf(level.policy, Number(entry.request.timeoutUs), nowMs);
    if (entry.deadlineMs < level.nextDeadlineMs) level.nextDeadlineMs = entry.deadlineMs;
    level.fresh.pushBack(entry);
    level.waitingCount++;
    this.#byteCount += entry.byteLength;
  }

  /** An entry in the queue was answered without being taken; its place is freed when the walk passes it. */
  forget(entry: Entry): void {
    const level = this.#levels[entry.level]!;
    this.#release(entry);
    // Clients that come and go while no instance is free must not fill the memory.
    if (level.fresh.size + level.delayed.size > 2 * level.waitingCount + ANSWERED_PLACES_MAX) {
      sweep(level.fresh);
      sweep(level.delayed);
    }
  }

  #release(entry: Entry): void {
    this.#levels[entry.level]!.waitingCount--;
    this.#byteCount -= entry.byteLength;
  }

  /** Takes `count` places from the head; answered entries among them vanish. */
  take(count: number): Entry[] {
    const taken: Entry[] = [];
    let left = count;
    for (const level of this.#levels) {
      for (const fifo of [level.fresh, level.delayed]) {
        for (; left > 0 && fifo.size > 0; left--) {
          const entry = fifo.popFront()!;
          if (entry.isAnswered) continue;
          this.#release(entry);
          taken.push(entry);
        }
      }
    }
    return taken;
  }

  /** The earliest deadline of any waiting request; Infinity when none has one. */
  nextDeadlineMs(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const level of this.#levels) {
      if (level.nextDeadlineMs < earliest) earliest = level.nextDeadlineMs;
    }
    return earliest;
  }

  /** Moves expired requests behind the fresh ones (DELAY), or returns them to be rejected. */
  expire(nowMs: number): Entry[] {
    const rejected: Entry[] = [];
    for (const level of this.#levels) {
      if (nowMs < level.nextDeadlineMs) continue;
      level.nextDeadlineMs = Number.POSITIVE_INFINITY;
      for (let left = level.fresh.size; left > 0; left--) {
        const entry = level.fresh.popFront()!;
        if (entry.isAnswered) continue;
        if (entry.deadlineMs > nowMs) {
          if (entry.deadlineMs < level.nextDeadlineMs) level.nextDeadlineMs = entry.deadlineMs;
          level.fresh.pushBack(entry);
        } else if (level.policy.isDelayAction) {
          entry.deadlineMs = Number.POSITIVE_INFINITY;
          level.delayed.pushBack(entry);
        } else {
          this.#release(entry);
          rejected.push(entry);
        }
      }
    }
    return rejected;
  }
}

function sweep(fifo: Deque<Entry>): void {
  for (let left = fifo.size; left > 0; left--) {
    const entry = fifo.popFront()!;
    if (!entry.isAnswered) fifo.pushBack(entry);
  }
}

/** An override counts only where it is allowed, and only if it shortens a timeout that exists. */
function deadlineOf(policy: QueuePolicy, timeoutUs: number, nowMs: number): number {
  if (policy.timeoutMs === 0) return Number.POSITIVE_INFINITY;
  const overrideMs = timeoutUs / 1000;
  const isShorter = policy.isOverrideAllowed && overrideMs > 0 && overrideMs < policy.timeoutMs;
  return nowMs + (isShorter ? overrideMs : policy.timeoutMs);
}
