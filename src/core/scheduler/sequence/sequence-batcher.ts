// The scheduler of models with sequence_batching. Every sequence holds one slot of one instance from its START to its END;
// those for which none is free wait in the backlog. How the requests of the slots become batches is the lanes'
// (direct-lane.ts, oldest-lane.ts); what is given to instances is dispatched.ts's. spec: scheduler section 2.

import { OPEN_BATCHES_PER_INSTANCE_MAX } from '../../../domain/limits.ts';
import { SEQUENCE_END, SEQUENCE_START } from '../../../domain/request.ts';
import { StatusError, unavailable } from '../../../domain/status.ts';
import type { ReceivedPart } from '../../../instance/part-frame.ts';
import type { ReceivedReply } from '../../../instance/response-frame.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { FailureReason } from '../../stats/model-metrics.ts';
import { Dispatched } from '../dispatched.ts';
import type { Entry, EntryOwner, InstancePort } from '../entry.ts';
import { hopelessError } from '../hopeless-error.ts';
import type { DrainOptions, Scheduler } from '../scheduler.ts';
import { DirectLane } from './direct-lane.ts';
import type { Lane, LaneHost } from './lane.ts';
import { OldestLane } from './oldest-lane.ts';
import { Seating } from './seating.ts';
import { isInSequence, notStartedError, type Sequence } from './sequence.ts';
import type { SequencePolicy } from './sequence-policy.ts';
import type { SequenceRequests } from './sequence-requests.ts';
import type { SequenceTable } from './sequence-table.ts';
import { type SequenceBounds, WaitingRequests } from './waiting-requests.ts';
import { WakeTimer } from './wake-timer.ts';

export interface SequenceBatcherOptions {
  readonly policy: SequencePolicy;
  readonly requests: SequenceRequests;
  readonly clock: Clock;
  readonly owner: EntryOwner;
  readonly instances: readonly InstancePort[];
  /** Runs a function at the end of the current turn of the event loop. */
  readonly defer: (fn: () => void) => void;
  /** TRITONSERVER_DELAY_SCHEDULER: form no batch until this many requests wait in slots. */
  readonly delayedStartCount: number;
  /** TRITONSERVER_BACKLOG_DELAY_SCHEDULER: nor until this many wait in the backlog. */
  readonly delayedBacklogCount: number;
  readonly bounds: SequenceBounds;
}

const CANCELLED = new StatusError('CANCELLED', '');
const EXPIRED = unavailable('timeout of the corresponding sequence has been expired');

export class SequenceBatcher implements Scheduler {
  readonly #options: SequenceBatcherOptions;
  readonly #policy: SequencePolicy;
  readonly #lanes: readonly Lane[];
  readonly #seating: Seating;
  readonly #sequences: SequenceTable;
  readonly #dispatched: Dispatched;
  /** Requests that no instance has, in sequences and issued ones. */
  readonly #waiting: WaitingRequests;
  readonly #timer: WakeTimer;
  #nextId = 1n;
  #delayedStartCount: number;
  #isPumpDue = false;
  #isStopped = false;
  #isEnded = false;
  #isEndAwaited = false;
  #onIdle: (() => void) | undefined;

  constructor(options: SequenceBatcherOptions) {
    this.#options = options;
    this.#policy = options.policy;
    this.#waiting = new WaitingRequests(options.bounds);
    this.#timer = new WakeTimer(options.clock, () => this.#pump());
    this.#delayedStartCount = options.delayedStartCount;
    this.#lanes = options.instances.map((instance) => this.#createLane(instance));
    this.#seating = new Seating({ idleMs: options.policy.idleMs, lanes: this.#lanes });
    this.#sequences = this.#seating.sequences;
    this.#dispatched = new Dispatched({
      owner: options.owner,
      isOrderPreserved: options.policy.isOrderPreserved,
      onProgress: () => {
        this.#pumpSoon();
        this.#checkIdle();
      },
      onDone: (entry) => this.#done(entry),
      ...(options.policy.isIterative ? { onReschedule: (entry: Entry) => this.#reschedule(entry) } : {}),
    });
  }

  #createLane(instance: InstancePort): Lane {
    const { direct, oldest, slotCount } = this.#policy;
    const host: LaneHost = {
      requests: this.#options.requests,
      issued: (entry) => this.#dispatched.accept(entry),
      leaveIfOver: (sequence) => this.#seating.leaveIfOver(sequence),
    };
    if (direct !== undefined) return new DirectLane(instance, direct, host);
    const delayedStartCount = () => (this.#isStopped ? 0 : this.#delayedStartCount);
    return new OldestLane(instance, { policy: oldest!, slotCount, host, delayedStartCount });
  }

  /** Requests not yet answered, waiting or executing; a server that exits waits for sequences, too. */
  get openCount(): number {
    const requests = this.#waiting.count + this.#dispatched.openCount;
    return this.#isEndAwaited && !this.#isEnded ? Math.max(requests, this.#sequences.openCount) : requests;
  }

  /** Throws when the request cannot be accepted; then it was never counted. */
  enqueue(entry: Entry): void {
    let { correlationId: id, sequenceFlags: flags } = entry.request;
    if (this.#policy.isIterative && !isInSequence(id)) {
      id = this.#freshId();
      flags = SEQUENCE_START;
    }
    const isStart = (flags & SEQUENCE_START) !== 0;
    if (this.#isEnded || (this.#isStopped && isStart)) {
      throw unavailable(
        'Server is stopping, scheduler for model has stopped accepting new inference requests',
      );
    }
    const known = this.#sequences.find(id);
    if (known === undefined && !isStart) throw notStartedError(id, this.#policy.modelName);
    const hopeless = hopelessError(this.#options.instances);
    if (hopeless !== undefined) throw hopeless;
    const { backlogCount } = this.#sequences;
    this.#waiting.checkRoom(entry, { isNewSequence: known === undefined, backlogCount });
    const nowMs = this.#options.clock.nowMs();
    const sequence = known ?? this.#sequences.open(id, nowMs);
    entry.sequence = { sequence, flags, slot: undefined };
    this.#put(entry, sequence, nowMs);
  }

  /** Ids of requests that came without one, as Triton counts them. */
  #freshId(): bigint {
    while (this.#sequences.find(this.#nextId) !== undefined) this.#nextId++;
    return this.#nextId++;
  }

  #put(entry: Entry, sequence: Sequence, nowMs: number): void {
    entry.queueStartMs = nowMs;
    sequence.waiting.pushBack(entry);
    this.#waiting.add(entry);
    if ((entry.sequence!.flags & SEQUENCE_END) !== 0) this.#sequences.close(sequence);
    if (sequence.slot === undefined) this.#seating.fill(nowMs);
    if (sequence.slot === undefined) {
      const timeoutMs = Number(entry.request.timeoutUs) / 1000;
      if (timeoutMs > 0) this.#sequences.shortenDeadline(sequence, nowMs + timeoutMs);
    } else {
      this.#sequences.touch(sequence, nowMs);
      sequence.slot.lane.onSlotChange(sequence.slot, nowMs);
    }
    this.#pumpSoon();
  }

  /** The request has had its end, and the instance is through with it. */
  #done(entry: Entry): void {
    const { sequence, slot } = entry.sequence!;
    // One iterative request is a whole sequence.
    if (this.#policy.isIterative) this.#seating.close(sequence);
    if (slot?.inFlight === entry) {
      slot.inFlight = undefined;
      slot.lane.onSlotChange(slot, this.#options.clock.nowMs());
    }
    this.#pumpSoon();
  }

  #reschedule(entry: Entry): void {
    const ticket = entry.sequence!;
    const { sequence, slot } = ticket;
    if (slot?.inFlight === entry) slot.inFlight = undefined;
    ticket.flags = 0;
    if (sequence.isClosed) {
      this.#dispatched.fail(entry, notStartedError(sequence.id, this.#policy.modelName), 'OTHER');
      if (slot !== undefined) slot.lane.onSlotChange(slot, this.#options.clock.nowMs());
    } else this.#put(entry, sequence, this.#options.clock.nowMs());
  }

  /** The client has gone. A request that waits takes its whole sequence along, as what follows cannot be right without it. */
  cancel(entry: Entry): void {
    if (entry.isAnswered) return;
    if (entry.payload !== undefined) this.#dispatched.cancel(entry);
    else this.#failSequence(entry.sequence!.sequence, CANCELLED, 'CANCELED');
    this.#pumpSoon();
    this.#checkIdle();
  }

  /** The instances that wait for a request which an instance was given. */
  ancestorsOf(parent: { batchId: number; request: number }): readonly object[] {
    return this.#dispatched.entryOf(parent.batchId, parent.request)?.ancestors ?? [];
  }

  onReply(reply: ReceivedReply): void {
    this.#dispatched.onReply(reply);
  }

  onPart(part: ReceivedPart): void {
    this.#dispatched.onPart(part);
  }

  /** What the host knew of its sequences is gone with it: they end here, those without a request too. */
  onLost(instance: InstancePort, error: StatusError): void {
    const lane = this.#lanes.find((candidate) => candidate.instance === instance);
    const lost: Entry[] = [];
    for (const slot of lane?.slots ?? []) {
      const { inFlight, sequence } = slot;
      slot.inFlight = undefined;
      if (inFlight !== undefined && inFlight.payload === undefined) lost.push(inFlight);
      if (sequence === undefined) continue;
      this.#sequences.close(sequence);
      while (!sequence.waiting.isEmpty) lost.push(sequence.waiting.popFront()!);
      this.#seating.leave(sequence);
    }
    lane?.clear();
    this.#dispatched.onLost(instance, error);
    for (const entry of lost) if (!entry.isAnswered) this.#failWaiting(entry, error, 'BACKEND');
    this.#checkIdle();
  }

  /** An instance became ready, or went away for good. */
  onInstanceChange(): void {
    const hopeless = hopelessError(this.#options.instances);
    if (hopeless !== undefined) this.#failBacklog(hopeless, 'BACKEND');
    this.#pumpSoon();
  }

  /** Sequences that have begun may go on; new ones are refused. */
  drain(options: DrainOptions = {}): Promise<void> {
    this.#isStopped = true;
    this.#isEndAwaited = options.areSequencesAwaited === true;
    this.#pumpSoon();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#checkIdle();
    });
  }

  /** Answers everything that still waits or runs with `error`; the end of a drain that took too long. */
  failAll(error: StatusError): void {
    this.#isStopped = true;
    this.#isEnded = true;
    this.#timer.set(Number.POSITIVE_INFINITY);
    for (const lane of this.#lanes) {
      for (const slot of lane.slots) {
        const { inFlight, sequence } = slot;
        slot.inFlight = undefined;
        if (inFlight !== undefined && inFlight.payload === undefined)
          this.#failWaiting(inFlight, error, 'OTHER');
        if (sequence !== undefined) this.#failSequence(sequence, error, 'OTHER');
      }
      lane.clear();
    }
    this.#failBacklog(error, 'OTHER');
    this.#dispatched.failAll(error);
    this.#checkIdle();
  }

  #failBacklog(error: StatusError, reason: FailureReason): void {
    let first = this.#sequences.firstOfBacklog();
    for (; first !== undefined; first = this.#sequences.firstOfBacklog()) {
      this.#failSequence(first, error, reason);
    }
    this.#checkIdle();
  }

  /** Ends the sequence and all of its requests that no instance has. */
  #failSequence(sequence: Sequence, error: StatusError, reason: FailureReason): void {
    const { slot, waiting } = sequence;
    this.#sequences.close(sequence);
    const issued = slot?.inFlight;
    if (issued?.payload === undefined && issued?.sequence?.sequence === sequence) {
      slot!.inFlight = undefined;
      this.#failWaiting(issued, error, reason);
    }
    while (!waiting.isEmpty) this.#failWaiting(waiting.popFront()!, error, reason);
    this.#seating.leave(sequence);
    // Another sequence may have the slot already and have waited for the issued request.
    slot?.lane.onSlotChange(slot, this.#options.clock.nowMs());
  }

  #failWaiting(entry: Entry, error: StatusError, reason: FailureReason): void {
    this.#waiting.remove(entry);
    if (entry.sequence!.slot !== undefined) {
      this.#dispatched.fail(entry, error, reason);
      return;
    }
    // Never issued: it has no place in the order of answers.
    entry.isAnswered = true;
    this.#options.owner.fail(entry, error, reason);
  }

  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#options.defer(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#isEnded) return;
    const nowMs = this.#options.clock.nowMs();
    for (const sequence of this.#sequences.expired(nowMs)) {
      this.#failSequence(sequence, EXPIRED, 'REJECTED');
    }
    for (const sequence of this.#sequences.idle(nowMs)) this.#seating.close(sequence);
    this.#seating.fill(nowMs);
    let waitUntilMs = Number.POSITIVE_INFINITY;
    if (!this.#isHeld()) {
      for (const lane of this.#lanes) {
        waitUntilMs = Math.min(waitUntilMs, this.#pumpLane(lane, nowMs));
      }
      this.#seating.fill(nowMs);
    }
    this.#timer.set(Math.min(waitUntilMs, this.#sequences.nextWakeMs()));
    this.#checkIdle();
  }

  /** The test hooks of Triton; the oldest strategy looks at its own queues. */
  #isHeld(): boolean {
    if (this.#delayedStartCount === 0 || this.#policy.direct === undefined || this.#isStopped) return false;
    const backlogCount = this.#sequences.backlogRequestCount;
    const isHeld =
      this.#waiting.count - backlogCount < this.#delayedStartCount ||
      backlogCount < this.#options.delayedBacklogCount;
    if (!isHeld) this.#delayedStartCount = 0;
    return isHeld;
  }

  #pumpLane(lane: Lane, nowMs: number): number {
    const { instance } = lane;
    const isFree =
      instance.state === 'ready' &&
      instance.inFlightCount === 0 &&
      this.#dispatched.lingeringCountOf(instance) < OPEN_BATCHES_PER_INSTANCE_MAX;
    if (!isFree) return Number.POSITIVE_INFINITY;
    const { places, waitUntilMs } = lane.nextBatch(nowMs);
    if (places.length === 0) return waitUntilMs;
    for (const { entry } of places) if (entry !== undefined) this.#waiting.remove(entry);
    this.#dispatched.sendPlaces(instance, places, nowMs);
    return Number.POSITIVE_INFINITY;
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined || !this.#dispatched.isEmpty || this.#waiting.count > 0) return;
    if (this.#isEndAwaited && !this.#isEnded && this.#sequences.openCount > 0) return;
    this.#isEnded = true;
    this.#timer.set(Number.POSITIVE_INFINITY);
    this.#onIdle();
    this.#onIdle = undefined;
  }
}
