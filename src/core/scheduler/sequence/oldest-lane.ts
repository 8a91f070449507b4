// The oldest strategy: every slot issues one request at a time into a queue, from which batches are formed as the dynamic
// batcher forms them. Places are not fixed and none is filled up.

import { Deque } from '../../../lib/deque.ts';
import type { BatchPlace, Entry, InstancePort } from '../entry.ts';
import { type BatchPolicy, formBatch, type Waiting } from '../form-batch.ts';
import { createSlots, type Lane, type LaneBatch, type LaneHost, NO_BATCH } from './lane.ts';
import type { Slot } from './sequence.ts';

/** An issued request; its delay counts from the issue, its queue time from the arrival. */
class Candidate implements Waiting {
  readonly entry: Entry;
  readonly queueStartMs: number;

  constructor(entry: Entry, nowMs: number) {
    this.entry = entry;
    this.queueStartMs = nowMs;
  }

  get batchSize(): number {
    return this.entry.batchSize;
  }

  get batchKey(): string {
    return this.entry.batchKey;
  }

  get isAnswered(): boolean {
    return this.entry.isAnswered;
  }
}

/** Places of answered candidates that are kept before the queue is swept. */
const ANSWERED_PLACES_MAX = 64;

export interface OldestLaneOptions {
  readonly policy: BatchPolicy;
  readonly slotCount: number;
  readonly host: LaneHost;
  /** TRITONSERVER_DELAY_SCHEDULER: form no batch until this many requests were issued. */
  delayedStartCount(): number;
}

export class OldestLane implements Lane {
  readonly instance: InstancePort;
  readonly slots: readonly Slot[];
  readonly #options: OldestLaneOptions;
  readonly #candidates = new Deque<Candidate>();
  readonly #view: { readonly length: number; at(index: number): Candidate };
  #isStarted = false;

  constructor(instance: InstancePort, options: OldestLaneOptions) {
    this.instance = instance;
    this.slots = createSlots(this, options.slotCount);
    this.#options = options;
    const candidates = this.#candidates;
    this.#view = {
      get length() {
        return candidates.size;
      },
      at: (index) => candidates.at(index)!,
    };
  }

  onSlotChange(slot: Slot, nowMs: number): void {
    const { sequence } = slot;
    if (slot.inFlight !== undefined || sequence === undefined) return;
    const entry = sequence.waiting.popFront();
    if (entry === undefined) return;
    const ticket = entry.sequence!;
    if (ticket.slot === undefined) this.#options.host.issued(entry);
    ticket.slot = slot;
    slot.inFlight = entry;
    this.#candidates.pushBack(new Candidate(entry, nowMs));
    if (this.#candidates.size > 2 * this.slots.length + ANSWERED_PLACES_MAX) this.#sweep();
    this.#options.host.leaveIfOver(sequence);
  }

  nextBatch(nowMs: number): LaneBatch {
    if (!this.#isStarted && this.#candidates.size < this.#options.delayedStartCount()) return NO_BATCH;
    this.#isStarted = true;
    const { take, waitUntilMs } = formBatch(this.#view, this.#options.policy, nowMs);
    // Last, because the rate limiter takes the question for a wish.
    if (take > 0 && !this.instance.isAdmitted) return NO_BATCH;
    const places: BatchPlace[] = [];
    for (let i = 0; i < take; i++) {
      const { entry } = this.#candidates.popFront()!;
      if (entry.isAnswered) continue;
      places.push({ entry, sent: this.#options.host.requests.of(entry, entry.sequence!.slot!.number) });
    }
    return { places, waitUntilMs };
  }

  clear(): void {
    while (this.#candidates.popFront() !== undefined);
  }

  #sweep(): void {
    for (let left = this.#candidates.size; left > 0; left--) {
      const candidate = this.#candidates.popFront()!;
      if (!candidate.isAnswered) this.#candidates.pushBack(candidate);
    }
  }
}
