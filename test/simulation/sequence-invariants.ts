// The invariants of the sequence batcher, kept by a second book beside it:
//
//   1  An accepted request is answered exactly once, a refused one never.
//   2  The requests of a sequence are executed in the order in which they came, on one slot of one instance.
//   3  A slot belongs to one sequence at a time: the next one begins when the last takes no more requests and has none left.
//   4  Direct: a place of a batch is the slot of that number, and empty places say that they are not ready. Oldest: a slot has
//      one request on the instance at a time. Control tensors and the place of the state say what is true.
//   5  No starvation: while a sequence waits in the backlog no slot of a ready instance is free, and who waits longest is next.
//   6  Where an instance is idle, nothing that could run has waited for the queue delay.
//   7  A continuation is refused only if its sequence ended: by END, idleness, cancellation, a timeout, or the loss of its host.
//   8  A sequence is timed out exactly if it is in the backlog at its deadline.
//   9  A request cancelled while it waits takes its sequence along; none of it is executed. A lost host does the same.
//  10  The bounds hold: on requests and bytes that wait, and on sequences in the backlog.
//  11  Under preserve_ordering, with one instance, answers leave in the order of execution.
//  12  After a drain nothing is open and no timer is left.
import assert from 'node:assert/strict';
import type { Entry, InstancePort } from '../../src/core/scheduler/entry.ts';
import type { Sequence } from '../../src/core/scheduler/sequence/sequence.ts';
import { SEQUENCE_END, SEQUENCE_START } from '../../src/domain/request.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import {
  type BookedEntry,
  type BookedSequence,
  bookSequence,
  checkControls,
  checkInstance,
  checkSeats,
  type SequenceBookOptions,
} from './sequence-checks.ts';

export class SequenceInvariants {
  readonly #options: SequenceBookOptions;
  readonly #sequences = new Map<Sequence, BookedSequence>();
  readonly #byId = new Map<bigint | string, BookedSequence>();
  readonly #entries = new Map<Entry, BookedEntry>();
  readonly #occupants = new Map<string, BookedSequence>();
  readonly #batches = new Map<number, { instance: InstancePort; entries: BookedEntry[] }>();
  /** Under preserve_ordering: executed and not answered, in this order. */
  readonly #line: Entry[] = [];
  #started: Entry[] = [];
  #waitingCount = 0;
  #waitingBytes = 0;
  #nextOrder = 0;
  seatedFromBacklog = 0;
  filledPlaces = 0;
  idleEnds = 0;

  constructor(options: SequenceBookOptions) {
    this.#options = options;
  }

  get openCount(): number {
    return this.#entries.size;
  }

  backlogCount(): number {
    let count = 0;
    for (const { sequence, waiting } of this.#sequences.values()) {
      if (sequence.slot === undefined && waiting.length > 0) count++;
    }
    return count;
  }

  isFull(entry: Entry): boolean {
    const { requestsMax, bytesMax, backlogMax } = this.#options.bounds;
    if (this.#waitingCount >= requestsMax || this.#waitingBytes + entry.byteLength > bytesMax) return true;
    return this.openSequence(entry.request.correlationId) === undefined && this.backlogCount() >= backlogMax;
  }

  /** As far as the book knows: idleness is the batcher's to find. */
  openSequence(id: bigint | string): BookedSequence | undefined {
    const booked = this.#byId.get(id);
    return booked?.isEnded === false && !booked.sequence.isClosed ? booked : undefined;
  }

  accepted(entry: Entry, nowMs: number): void {
    const { sequence, flags } = entry.sequence!;
    const isStart = (flags & SEQUENCE_START) !== 0;
    let booked = this.#sequences.get(sequence);
    const before = this.#byId.get(sequence.id);
    if (booked === undefined) {
      assert.ok(isStart, '7: a new sequence without START');
      if (before !== undefined) this.#checkEnd(before, nowMs);
      booked = this.#open(sequence, nowMs);
    } else {
      assert.equal(before, booked, '7: the request joined a sequence that is not the newest of its id');
      assert.ok(!booked.isEnded, '7: the request joined a sequence that has ended');
      const isIdle =
        sequence.slot !== undefined && nowMs > booked.lastArrivalMs + this.#options.policy.idleMs;
      if (isIdle) assert.ok(sequence.idleSinceMs > booked.lastArrivalMs, '7: joined an idle sequence');
    }
    this.#wait(entry, booked, nowMs);
    if ((flags & SEQUENCE_END) !== 0) booked.isEnded = true;
    const timeoutMs = Number(entry.request.timeoutUs) / 1000;
    if (sequence.slot === undefined && timeoutMs > 0)
      booked.deadlineMs = Math.min(booked.deadlineMs, nowMs + timeoutMs);
  }

  #open(sequence: Sequence, nowMs: number): BookedSequence {
    const booked = bookSequence(sequence, { order: this.#nextOrder++, nowMs });
    this.#sequences.set(sequence, booked);
    this.#byId.set(sequence.id, booked);
    return booked;
  }

  #wait(entry: Entry, booked: BookedSequence, nowMs: number): void {
    booked.lastArrivalMs = nowMs;
    booked.waiting.push(entry);
    this.#entries.set(entry, { entry, booked, state: 'waiting', isReplied: false, isAnswered: false });
    this.#waitingCount++;
    this.#waitingBytes += entry.byteLength;
  }

  /** The id is unknown to the batcher: its last sequence has ended, and the book knows why. */
  notStarted(id: bigint | string, nowMs: number): void {
    const before = this.#byId.get(id);
    if (before !== undefined) this.#checkEnd(before, nowMs);
  }

  #checkEnd(booked: BookedSequence, nowMs: number): void {
    if (booked.isEnded) return;
    booked.isEnded = true;
    // An iterative sequence is over with its request.
    if (this.#options.policy.isIterative && booked.executed.some(({ isAnswered }) => isAnswered)) return;
    this.idleEnds++;
    assert.ok(nowMs >= booked.lastArrivalMs + this.#options.policy.idleMs, '7: ended without a reason');
  }

  /** The model executes it once more. */
  requeued(entry: Entry, nowMs: number): void {
    const old = this.#entries.get(entry);
    assert.equal(old?.state, 'executing', '1: requeued though it was not executed');
    old!.isReplied = true;
    old!.isAnswered = true;
    this.#sequences.set(old!.booked.sequence, old!.booked);
    this.#wait(entry, old!.booked, nowMs);
  }

  started(entry: Entry): void {
    this.#started.push(entry);
  }

  executed(instance: InstancePort, batchId: number, requests: readonly SentRequest[]): void {
    const entries = this.#started;
    this.#started = [];
    assert.equal(instance.state, 'ready', '4: a batch for an instance that is not ready');
    assert.equal(instance.inFlightCount, 0, '4: a batch before the last one has finished');
    assert.ok(requests.length <= this.#options.batchSizeMax, '4: a batch is too large');
    const isDirect = this.#options.policy.direct !== undefined;
    if (isDirect) assert.equal(this.#fronts(instance), requests.length, '4: the width of a direct batch');
    else assert.equal(requests.length, entries.length, '4: a place was filled up');
    const byPlace = new Map(entries.map((entry) => [entry.index, entry]));
    for (let place = 0; place < requests.length; place++) {
      const entry = byPlace.get(place);
      checkControls(requests[place]!, entry);
      if (entry === undefined) {
        this.filledPlaces++;
        assert.equal(requests[place]!.state, undefined, '4: a state for a place that is filled up');
        continue;
      }
      assert.equal(entry.batchKey, entries[0]!.batchKey, '4: different batch keys');
      this.#executed(entry, { instance, sent: requests[place]!, place: isDirect ? place : undefined });
    }
    this.#batches.set(batchId, { instance, entries: entries.map((entry) => this.#entries.get(entry)!) });
  }

  /** The highest slot of the instance that had something to do, counted from 1; looked at before the entries are taken. */
  #fronts(instance: InstancePort): number {
    let width = 0;
    for (const { sequence, waiting } of this.#sequences.values()) {
      if (waiting.length > 0 && sequence.slot?.lane.instance === instance) {
        width = Math.max(width, sequence.slot.number + 1);
      }
    }
    return width;
  }

  #executed(
    entry: Entry,
    where: { instance: InstancePort; sent: SentRequest; place: number | undefined },
  ): void {
    const own = this.#entries.get(entry);
    assert.equal(own?.state, 'waiting', '9: executed though it was cancelled, answered or refused');
    const { booked } = own!;
    const slot = entry.sequence!.slot!;
    assert.equal(slot.lane.instance, where.instance, '2: executed by another instance');
    if (where.place !== undefined) assert.equal(slot.number, where.place, '4: not in the place of its slot');
    assert.equal(booked.waiting.shift(), entry, '2: out of order');
    const place = `${where.instance.name}/${slot.number}`;
    assert.ok(booked.place === undefined || booked.place === place, '2: the sequence has moved');
    booked.place = place;
    const before = this.#occupants.get(place);
    if (before !== undefined && before !== booked) {
      this.#settle(before);
      assert.ok(before.sequence.isClosed && before.waiting.length === 0, '3: two sequences in one slot');
    }
    this.#occupants.set(place, booked);
    if (this.#options.policy.oldest !== undefined) {
      for (const { last } of [before, booked].filter((one) => one !== undefined)) {
        const isDone = last === undefined || (last.isReplied && (last.isAnswered || last.entry.isAnswered));
        assert.ok(isDone, '4: two requests of one slot');
      }
    }
    const { flags } = entry.sequence!;
    if (this.#options.hasState) {
      const isStart = (flags & SEQUENCE_START) !== 0;
      assert.deepEqual(where.sent.state, { slot: slot.number, isStart, isEnd: (flags & SEQUENCE_END) !== 0 });
    } else assert.equal(where.sent.state, undefined);
    own!.state = 'executing';
    booked.last = own;
    booked.issued = undefined;
    if (this.#options.policy.isIterative) booked.executed.push(entry);
    this.#left(entry);
    const isOrdered = this.#options.policy.isOrderPreserved && this.#options.instances.length === 1;
    // What is executed once more keeps its turn.
    if (isOrdered && !this.#line.includes(entry)) this.#line.push(entry);
  }

  /** Without having been executed. */
  #fail(own: BookedEntry): void {
    const { waiting } = own.booked;
    const at = waiting.indexOf(own.entry);
    assert.ok(at >= 0, '1: failed though it does not wait');
    waiting.splice(at, 1);
    own.booked.isEnded = true;
    own.state = 'left';
    this.#left(own.entry);
  }

  /** Under preserve_ordering a request may have failed before anybody is told. */
  #settle(booked: BookedSequence): void {
    for (const entry of booked.waiting.filter(({ isAnswered }) => isAnswered)) {
      this.#fail(this.#entries.get(entry)!);
    }
  }

  /** After what `expectEndOf` and `expectLossOf` were asked about. */
  expectAnswered(entries: readonly Entry[]): void {
    for (const entry of entries) {
      assert.ok(entry.isAnswered, '9: open though its sequence was cancelled or its host lost');
      const own = this.#entries.get(entry);
      if (own?.state === 'waiting') this.#fail(own);
    }
  }

  #left(entry: Entry): void {
    this.#waitingCount--;
    this.#waitingBytes -= entry.byteLength;
  }

  replied(batchId: number): void {
    for (const own of this.#batches.get(batchId)?.entries ?? []) own.isReplied = true;
    this.#batches.delete(batchId);
  }

  responded(entry: Entry): void {
    assert.equal(
      this.#entries.get(entry)?.state,
      'executing',
      '1: a response to a request that does not run',
    );
    if (this.#line.length > 0) assert.equal(this.#line[0], entry, '11: a response overtook another request');
  }

  answered(entry: Entry, nowMs: number, reason?: string): void {
    const own = this.#entries.get(entry);
    assert.ok(own !== undefined, '1: answered twice, or though it was refused');
    this.#entries.delete(entry);
    own.isAnswered = true;
    const { booked } = own;
    if (own.state === 'waiting') this.#fail(own);
    if (own.state === 'left') {
      assert.notEqual(reason, undefined, '1: answered without being executed');
    }
    const turn = this.#line.indexOf(entry);
    assert.ok(turn <= 0, '11: an answer overtook another');
    if (turn === 0) this.#line.shift();
    if (reason === 'REJECTED') {
      assert.equal(booked.sequence.slot, undefined, '8: timed out though it has a slot');
      assert.ok(nowMs >= booked.deadlineMs, '8: timed out too early');
    }
  }

  /** Before the batcher hears of it; the answer are the requests that must be answered after it. */
  expectEndOf(entry: Entry): Entry[] {
    const own = this.#entries.get(entry);
    if (own === undefined) return [];
    if (own.state === 'executing') return [entry];
    own.booked.isEnded = true;
    return [...own.booked.waiting];
  }

  /** As above, for a server that exits. */
  expectEndOfAll(): Entry[] {
    return [...this.#entries.keys()];
  }

  /** As above, for a host that is lost. */
  expectLossOf(instance: InstancePort): Entry[] {
    const expected: Entry[] = [];
    for (const { entry, booked, state } of this.#entries.values()) {
      const isThere = entry.sequence!.slot?.lane.instance === instance;
      const isSeatedThere = booked.sequence.slot?.lane.instance === instance;
      if ((state === 'executing' && isThere) || (state === 'waiting' && isSeatedThere)) expected.push(entry);
    }
    for (const booked of this.#sequences.values()) {
      if (booked.sequence.slot?.lane.instance === instance) booked.isEnded = true;
    }
    for (const [place, booked] of this.#occupants) {
      if (booked.last?.entry.sequence?.slot?.lane.instance === instance) this.#occupants.delete(place);
    }
    for (const [batchId, batch] of this.#batches)
      if (batch.instance === instance) this.#batches.delete(batchId);
    return expected;
  }

  afterEvent(nowMs: number): void {
    const { bounds, policy, instances } = this.#options;
    // What is executed once more was accepted long ago.
    if (!policy.isIterative) {
      assert.ok(this.#waitingCount <= bounds.requestsMax, '10: too many requests wait');
      assert.ok(this.#waitingBytes <= bounds.bytesMax, '10: too many bytes wait');
    }
    for (const booked of this.#sequences.values()) {
      if (policy.isOrderPreserved) this.#settle(booked);
      if (booked.waiting.length === 0 && booked.sequence.isClosed) this.#forget(booked);
    }
    this.seatedFromBacklog += checkSeats(this.#sequences.values(), this.#options, nowMs);
    for (const instance of instances) checkInstance(instance, this.#sequences.values(), policy, nowMs);
  }

  #forget(booked: BookedSequence): void {
    this.#sequences.delete(booked.sequence);
    if (this.#byId.get(booked.sequence.id) !== booked) return;
    // Kept until the id is used again when the book has yet to learn why it ended.
    if (booked.isEnded) this.#byId.delete(booked.sequence.id);
  }

  drained(state: { openCount: number; timerCount: number }): void {
    assert.equal(state.openCount, 0, '12: open after the drain');
    assert.equal(state.timerCount, 0, '12: a timer is left after the drain');
    assert.equal(this.#entries.size, 0, '12: not answered after the drain');
  }
}
