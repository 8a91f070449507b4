// What the book of sequence-invariants.ts knows of a sequence and of a request, and the checks that need nothing else: of the
// seats after every event, of instances that are idle, of control tensors. The numbers are those of the invariants.
import assert from 'node:assert/strict';
import type { Entry, InstancePort } from '../../src/core/scheduler/entry.ts';
import type { Sequence } from '../../src/core/scheduler/sequence/sequence.ts';
import type { SequencePolicy } from '../../src/core/scheduler/sequence/sequence-policy.ts';
import type { SequenceBounds } from '../../src/core/scheduler/sequence/waiting-requests.ts';
import { SEQUENCE_END, SEQUENCE_START } from '../../src/domain/request.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import { CORRID_INDEX, END_INDEX, READY_INDEX, START_INDEX } from './sequence-random-config.ts';

export interface BookedSequence {
  readonly sequence: Sequence;
  readonly order: number;
  /** Not yet executed, in the order of arrival. */
  readonly waiting: Entry[];
  lastArrivalMs: number;
  deadlineMs: number;
  /** END, a cancellation, a timeout or a lost host has ended it, so far as the book knows. */
  isEnded: boolean;
  isSeated: boolean;
  wasInBacklog: boolean;
  /** `<instance>/<slot>` */
  place: string | undefined;
  /** The request that was executed last. */
  last: BookedEntry | undefined;
  /** Its requests that were executed, as long as the book knows the sequence. */
  readonly executed: Entry[];
  /** Oldest: its request that waits to be sent, and since when. */
  issued: Entry | undefined;
  issuedMs: number;
}

export interface BookedEntry {
  readonly entry: Entry;
  readonly booked: BookedSequence;
  /** Left: it waited and has failed; under preserve_ordering the answer may still have to wait for its turn. */
  state: 'waiting' | 'executing' | 'left';
  isReplied: boolean;
  isAnswered: boolean;
}

export interface SequenceBookOptions {
  readonly policy: SequencePolicy;
  readonly bounds: SequenceBounds;
  readonly batchSizeMax: number;
  readonly hasState: boolean;
  readonly instances: readonly InstancePort[];
}

export function bookSequence(
  sequence: Sequence,
  { order, nowMs }: { order: number; nowMs: number },
): BookedSequence {
  return {
    sequence,
    order,
    waiting: [],
    lastArrivalMs: nowMs,
    deadlineMs: Number.POSITIVE_INFINITY,
    isEnded: false,
    isSeated: false,
    wasInBacklog: false,
    place: undefined,
    last: undefined,
    executed: [],
    issued: undefined,
    issuedMs: nowMs,
  };
}

/** How many sequences have got a slot since the last time, after they had to wait for it. */
export function checkSeats(
  booked: Iterable<BookedSequence>,
  options: SequenceBookOptions,
  nowMs: number,
): number {
  const { bounds, policy } = options;
  let firstInBacklog = Number.POSITIVE_INFINITY;
  let lastSeated = -1;
  let backlogCount = 0;
  let seatedFromBacklog = 0;
  const seatedCounts = new Map<InstancePort, number>();
  for (const one of booked) {
    const { slot } = one.sequence;
    if (slot === undefined) {
      backlogCount++;
      one.wasInBacklog = true;
      firstInBacklog = Math.min(firstInBacklog, one.order);
      assert.ok(nowMs < one.deadlineMs, '8: in the backlog after its deadline');
      continue;
    }
    if (!one.isSeated) {
      lastSeated = Math.max(lastSeated, one.order);
      one.isSeated = true;
      assert.equal(slot.lane.instance.state, 'ready', '5: seated where nothing runs');
      if (one.wasInBacklog) seatedFromBacklog++;
    }
    const isIdle = !one.sequence.isClosed && nowMs >= one.sequence.idleSinceMs + policy.idleMs;
    assert.ok(!isIdle, '7: idle for too long');
    const { instance } = slot.lane;
    if (slot.sequence === one.sequence) seatedCounts.set(instance, (seatedCounts.get(instance) ?? 0) + 1);
  }
  assert.ok(lastSeated < firstInBacklog, '5: a sequence overtook another in the backlog');
  assert.ok(backlogCount <= bounds.backlogMax, '10: too many sequences wait');
  for (const instance of backlogCount > 0 ? options.instances : []) {
    const isFull = (seatedCounts.get(instance) ?? 0) === policy.slotCount;
    assert.ok(isFull || instance.state !== 'ready', '5: a slot is free while sequences wait');
  }
  return seatedFromBacklog;
}

export function checkInstance(
  instance: InstancePort,
  booked: Iterable<BookedSequence>,
  policy: SequencePolicy,
  nowMs: number,
): void {
  const { direct, oldest } = policy;
  let readyCount = 0;
  let longestMs = -1;
  for (const one of booked) {
    const { sequence, waiting } = one;
    if (waiting.length === 0 || sequence.slot?.lane.instance !== instance) continue;
    if (oldest !== undefined) {
      const { inFlight } = sequence.slot;
      assert.ok(inFlight !== undefined, '6: a slot has issued nothing');
      // Another request of the slot may still be answered part by part.
      if (inFlight !== waiting[0]) continue;
      if (one.issued !== inFlight) one.issuedMs = nowMs;
      one.issued = inFlight;
    }
    readyCount++;
    const sinceMs = direct === undefined ? one.issuedMs : waiting[0]!.queueStartMs;
    longestMs = Math.max(longestMs, nowMs - sinceMs);
  }
  if (readyCount === 0 || instance.state !== 'ready' || instance.inFlightCount > 0) return;
  const mayWait =
    direct === undefined
      ? longestMs < oldest!.queueDelayMs
      : longestMs < direct.queueDelayMs && readyCount / direct.slotCount < direct.slotUtilizationMin;
  assert.ok(mayWait, `6: ${readyCount} wait for an idle instance, for up to ${longestMs} ms`);
}

export function checkControls(request: SentRequest, entry: Entry | undefined): void {
  const bytesOf = (index: number) => request.inputs.find((input) => input.index === index)!.data[0]!;
  const flags = entry?.sequence?.flags ?? 0;
  assert.equal(bytesOf(START_INDEX).readInt32LE(), flags & SEQUENCE_START ? 1 : 0, '4: START');
  assert.equal(bytesOf(END_INDEX).readUInt8(), flags & SEQUENCE_END ? 1 : 0, '4: END');
  assert.equal(bytesOf(READY_INDEX).readFloatLE(), entry === undefined ? 0 : 1, '4: READY');
  assert.equal(bytesOf(CORRID_INDEX).readBigUInt64LE(), entry?.sequence?.sequence.id ?? 0n, '4: CORRID');
}
