// The direct strategy: every slot is a fixed place of the batch. The next batch is formed when the last one has finished.

import type { BatchPlace, InstancePort } from '../entry.ts';
import { type DirectPolicy, formDirectBatch } from './form-direct-batch.ts';
import { createSlots, type Lane, type LaneBatch, type LaneHost, NO_BATCH } from './lane.ts';
import type { Sequence, Slot } from './sequence.ts';

export class DirectLane implements Lane {
  readonly instance: InstancePort;
  readonly slots: readonly Slot[];
  readonly #policy: DirectPolicy;
  readonly #host: LaneHost;

  constructor(instance: InstancePort, policy: DirectPolicy, host: LaneHost) {
    this.instance = instance;
    this.slots = createSlots(this, policy.slotCount);
    this.#policy = policy;
    this.#host = host;
  }

  /** Requests stay with their sequences until the batch is formed. */
  onSlotChange(): void {}

  nextBatch(nowMs: number): LaneBatch {
    const fronts = this.slots.map((slot) => slot.sequence?.waiting.peekFront());
    const { width, lead, waitUntilMs } = formDirectBatch(fronts, this.#policy, nowMs);
    const places: BatchPlace[] = [];
    if (width === 0) return { places, waitUntilMs };
    // Last, because the rate limiter takes the question for a wish.
    if (!this.instance.isAdmitted) return NO_BATCH;
    const leader = fronts[lead]!;
    const given: Sequence[] = [];
    let filling: BatchPlace | undefined;
    for (let i = 0; i < width; i++) {
      const entry = fronts[i];
      if (entry?.batchKey === leader.batchKey) {
        const { sequence } = entry.sequence!;
        sequence.waiting.popFront();
        given.push(sequence);
        if (entry.sequence!.slot === undefined) this.#host.issued(entry);
        entry.sequence!.slot = this.slots[i]!;
        places.push({ entry, sent: this.#host.requests.of(entry, i) });
      } else {
        filling ??= { entry: undefined, sent: this.#host.requests.filling(leader.sent) };
        places.push(filling);
      }
    }
    for (const sequence of given) this.#host.leaveIfOver(sequence);
    return { places, waitUntilMs };
  }

  clear(): void {}
}
