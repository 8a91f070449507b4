// The sequences of a model: which id belongs to which, who waits for a slot, who has been idle for how long. Decides nothing
// about requests; sequence-batcher.ts does.

import { Deque } from '../../../lib/deque.ts';
import type { Sequence, SequenceId } from './sequence.ts';

export class SequenceTable {
  readonly #idleMs: number;
  /** Those that take further requests. */
  readonly #byId = new Map<SequenceId, Sequence>();
  /** Those without a slot, first come first. */
  readonly #backlog = new Set<Sequence>();
  /** Those that have a slot and take further requests, the longest idle first. */
  readonly #idle = new Set<Sequence>();
  /** No sequence of the backlog has to leave it before this. */
  #backlogDeadlineMs = Number.POSITIVE_INFINITY;

  constructor(options: { idleMs: number }) {
    this.#idleMs = options.idleMs;
  }

  /** Sequences that take further requests. */
  get openCount(): number {
    return this.#byId.size;
  }

  get backlogCount(): number {
    return this.#backlog.size;
  }

  get backlogRequestCount(): number {
    let count = 0;
    for (const sequence of this.#backlog) count += sequence.waiting.size;
    return count;
  }

  find(id: SequenceId): Sequence | undefined {
    return this.#byId.get(id);
  }

  /** A new sequence, at first without a slot. */
  open(id: SequenceId, nowMs: number): Sequence {
    const sequence: Sequence = {
      id,
      waiting: new Deque(),
      slot: undefined,
      idleSinceMs: nowMs,
      deadlineMs: Number.POSITIVE_INFINITY,
      isClosed: false,
    };
    this.#byId.set(id, sequence);
    this.#backlog.add(sequence);
    return sequence;
  }

  /** A request has come, or a slot; the idle time counts anew. */
  touch(sequence: Sequence, nowMs: number): void {
    sequence.idleSinceMs = nowMs;
    this.#idle.delete(sequence);
    if (sequence.slot !== undefined && !sequence.isClosed) this.#idle.add(sequence);
  }

  /** A request of a sequence in the backlog has this timeout. */
  shortenDeadline(sequence: Sequence, deadlineMs: number): void {
    sequence.deadlineMs = Math.min(sequence.deadlineMs, deadlineMs);
    this.#backlogDeadlineMs = Math.min(this.#backlogDeadlineMs, deadlineMs);
  }

  /** The sequence that has waited longest for a slot. */
  firstOfBacklog(): Sequence | undefined {
    for (const sequence of this.#backlog) return sequence;
    return undefined;
  }

  leaveBacklog(sequence: Sequence): void {
    this.#backlog.delete(sequence);
  }

  /** It takes no more requests; its id may begin another sequence. */
  close(sequence: Sequence): void {
    sequence.isClosed = true;
    if (this.#byId.get(sequence.id) === sequence) this.#byId.delete(sequence.id);
    this.#idle.delete(sequence);
  }

  /** Sequences of the backlog whose time is over. */
  expired(nowMs: number): Sequence[] {
    if (nowMs < this.#backlogDeadlineMs) return [];
    const expired: Sequence[] = [];
    this.#backlogDeadlineMs = Number.POSITIVE_INFINITY;
    for (const sequence of this.#backlog) {
      if (sequence.deadlineMs <= nowMs) expired.push(sequence);
      else this.#backlogDeadlineMs = Math.min(this.#backlogDeadlineMs, sequence.deadlineMs);
    }
    return expired;
  }

  /** Sequences with a slot that have been idle for too long. */
  idle(nowMs: number): Sequence[] {
    const idle: Sequence[] = [];
    for (const sequence of this.#idle) {
      if (nowMs < sequence.idleSinceMs + this.#idleMs) break;
      idle.push(sequence);
    }
    return idle;
  }

  /** When `expired` or `idle` may have something to say. */
  nextWakeMs(): number {
    for (const sequence of this.#idle) {
      return Math.min(sequence.idleSinceMs + this.#idleMs, this.#backlogDeadlineMs);
    }
    return this.#backlogDeadlineMs;
  }
}
