// One instance as the sequence batcher sees it: slots for sequences, and the rule by which their requests become batches.
// direct-lane.ts and oldest-lane.ts are the two strategies.

import type { BatchPlace, Entry, InstancePort } from '../entry.ts';
import type { Sequence, Slot } from './sequence.ts';
import type { SequenceRequests } from './sequence-requests.ts';

/** No places: look again at waitUntilMs (Infinity when nothing waits, or the rate limiter says when). */
export interface LaneBatch {
  readonly places: readonly BatchPlace[];
  readonly waitUntilMs: number;
}

export const NO_BATCH: LaneBatch = { places: [], waitUntilMs: Number.POSITIVE_INFINITY };

export interface Lane {
  readonly instance: InstancePort;
  readonly slots: readonly Slot[];
  /** A request has come, one is done, or another sequence has moved in. */
  onSlotChange(slot: Slot, nowMs: number): void;
  /** Takes requests from their sequences for the next batch; asked only while the instance is ready and idle. */
  nextBatch(nowMs: number): LaneBatch;
  /** All that was issued and not sent is forgotten; the instance was lost. */
  clear(): void;
}

/** What a lane needs of the batcher. */
export interface LaneHost {
  readonly requests: SequenceRequests;
  /** Called for every request the first time it leaves its sequence. */
  issued(entry: Entry): void;
  /** Called whenever a sequence has given a request away; one that is over leaves its slot to another. */
  leaveIfOver(sequence: Sequence): void;
}

export function createSlots(lane: Lane, count: number): Slot[] {
  return Array.from({ length: count }, (_, number) => ({
    number,
    lane,
    sequence: undefined,
    inFlight: undefined,
  }));
}
