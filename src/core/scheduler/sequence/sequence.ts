// The vocabulary of the sequence batcher: a sequence of requests, the slot it holds on one instance, and the part that one
// request has in it. Plain data; sequence-batcher.ts and the tables beside it move it.
//
//   id ──▶ Sequence ── waiting: ▸▸▸ requests that no batch holds yet
//              │
//              └── slot ──▶ Slot 2 of instance m_0 ── inFlight: the one request the instance works on (oldest)
//
// A sequence without a slot waits in the backlog. One that takes no more requests has lost its id, so that the id can be
// used again while the last requests are on their way.

import { invalidArgument, type StatusError } from '../../../domain/status.ts';
import type { Deque } from '../../../lib/deque.ts';
import type { Entry } from '../entry.ts';
import type { Lane } from './lane.ts';

export type SequenceId = bigint | string;

export interface Sequence {
  readonly id: SequenceId;
  readonly waiting: Deque<Entry>;
  slot: Slot | undefined;
  /** When the last request came, or the slot if that was later. */
  idleSinceMs: number;
  /** When it must have left the backlog; Infinity when no request of it has a timeout. */
  deadlineMs: number;
  /** Takes no more requests: its END has come, it was idle, cancelled or lost. The slot is left after the last request. */
  isClosed: boolean;
}

export interface Slot {
  readonly number: number;
  readonly lane: Lane;
  sequence: Sequence | undefined;
  /** Oldest strategy: the request that was issued and is not done; the next one waits for it. */
  inFlight: Entry | undefined;
}

/** What an entry knows of its sequence. */
export interface SequenceTicket {
  readonly sequence: Sequence;
  /** Differ from the request's own where the scheduler made the id, or executes the request once more. */
  flags: number;
  /** The slot from which it was issued. */
  slot: Slot | undefined;
}

/** 0 and the empty text mean: in no sequence. */
export function isInSequence(id: SequenceId): boolean {
  return id !== 0n && id !== '';
}

/** Triton's words for a request whose sequence has not begun, or is over. */
export function notStartedError(id: SequenceId, modelName: string): StatusError {
  return invalidArgument(
    `inference request for sequence ${id} to model '${modelName}' must specify the START flag on the first request of the sequence`,
  );
}
