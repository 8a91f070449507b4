// The invariants of the scheduler, checked from outside by a second, simpler book of what waits. ARCHITECTURE.md
// has the same list.
//
//   1  An accepted request is answered exactly once, a refused one never.
//   2  A batch holds at most max_batch_size rows, equal batch keys, and one request where batching is off.
//   3  A batch is a prefix of the order: higher priority first, within a level not expired before delayed, FIFO.
//   4  After every event: where an instance is idle, nothing has waited for the queue delay.
//   5  A request is refused if and only if its level or the bytes of the queue are full, though all that can run has
//      left it, or every instance has failed.
//   6  A request that REJECT has timed out is answered at its deadline and never executed after it.
//   7  A request cancelled while it waits is never executed.
//   8  Under preserve_ordering answers leave in the order of arrival.
//   9  An instance has at most two batches in flight, eight requests where batching is off, one where queue policies or
//      priorities are set, none unless it is ready.
//  10  After a drain nothing is open and no timer is left.
import assert from 'node:assert/strict';
import type { Entry, InstancePort } from '../../src/core/scheduler/entry.ts';
import { QUEUE_REQUESTS_MAX } from '../../src/domain/limits.ts';
import type { RandomPolicy } from './random-policy.ts';

/** What the book says about one request. */
export interface Booked {
  readonly entry: Entry;
  readonly level: number;
  readonly arrivalMs: number;
  readonly deadlineMs: number;
  readonly order: number;
  /** Left: cancelled or rejected; under preserve_ordering the answer may still have to wait for its turn. */
  state: 'waiting' | 'executing' | 'left';
  isDelayed: boolean;
}

/** Requests with the same timeout: their deadlines come in the order of arrival. */
interface Deadlines {
  readonly line: Booked[];
  head: number;
}

interface Level {
  /** In the order of arrival; what no longer waits is skipped when it comes to the front. */
  readonly fresh: Booked[];
  head: number;
  readonly delayed: Set<Booked>;
  waitingCount: number;
}

export class BatcherInvariants {
  readonly #policy: RandomPolicy;
  readonly #levels: readonly Level[];
  readonly #booked = new Map<Entry, Booked>();
  /** All waiting, by arrival. */
  readonly #line: Booked[] = [];
  #lineHead = 0;
  readonly #deadlines = new Map<number, Deadlines>();
  #bytes = 0;
  #nextOrder = 0;
  #answeredOrder = -1;
  #started: Entry[] = [];

  constructor(policy: RandomPolicy) {
    this.#policy = policy;
    this.#levels = policy.queuePolicies.map(() => ({
      fresh: [],
      head: 0,
      delayed: new Set(),
      waitingCount: 0,
    }));
  }

  get openCount(): number {
    return this.#booked.size;
  }

  stateOf(entry: Entry): Booked['state'] | undefined {
    return this.#booked.get(entry)?.state;
  }

  hasRoomFor(entry: Entry): boolean {
    const level = this.#levelOf(entry);
    const requestsMax = this.#policy.queuePolicies[level]?.max_queue_size || QUEUE_REQUESTS_MAX;
    return (
      this.#levels[level]!.waitingCount < requestsMax &&
      this.#bytes + entry.byteLength <= this.#policy.queueBytesMax
    );
  }

  accepted(entry: Entry, nowMs: number): void {
    const level = this.#levelOf(entry);
    const timeoutMs = this.#timeoutMs(level, Number(entry.request.timeoutUs));
    const booked: Booked = {
      entry,
      level,
      arrivalMs: nowMs,
      deadlineMs: nowMs + timeoutMs,
      order: this.#nextOrder++,
      state: 'waiting',
      isDelayed: false,
    };
    if (Number.isFinite(timeoutMs)) {
      const deadlines = this.#deadlines.get(timeoutMs) ?? { line: [], head: 0 };
      deadlines.line.push(booked);
      this.#deadlines.set(timeoutMs, deadlines);
    }
    this.#booked.set(entry, booked);
    this.#levels[level]!.fresh.push(booked);
    this.#levels[level]!.waitingCount++;
    this.#line.push(booked);
    this.#bytes += entry.byteLength;
  }

  started(entry: Entry): void {
    this.#started.push(entry);
  }

  /** Called by the instance; the entries are those that were reported started just before. */
  executed(instance: InstancePort, requestCount: number, nowMs: number): void {
    const entries = this.#started;
    this.#started = [];
    this.#passDeadlines(nowMs);
    assert.equal(entries.length, requestCount, '2: the batch holds what was started');
    const rows = entries.reduce((sum, entry) => sum + entry.batchSize, 0);
    assert.ok(rows <= this.#policy.batchSizeMax, `2: ${rows} rows of ${this.#policy.batchSizeMax}`);
    if (!this.#policy.hasDynamicBatching) assert.equal(entries.length, 1, '2: one request without batching');
    const isLimited =
      this.#policy.priorityLevels > 0 || this.#policy.queuePolicies.some((policy) => policy !== undefined);
    const inFlightMax = isLimited ? 1 : this.#policy.policy.isBatching ? 2 : 8;
    assert.ok(instance.inFlightCount < inFlightMax, '9: too many batches in flight');
    assert.equal(instance.state, 'ready', '9: a batch for an instance that is not ready');
    for (const entry of entries) {
      assert.equal(entry.batchKey, entries[0]!.batchKey, '2: different batch keys');
      this.#dispatched(entry, nowMs);
    }
  }

  /** One response of several. */
  responded(entry: Entry): void {
    const booked = this.#booked.get(entry);
    assert.ok(booked !== undefined, '1: a response after the end');
    assert.equal(booked.state, 'executing', '1: a response to a request that was never executed');
    if (!this.#policy.policy.isOrderPreserved) return;
    assert.equal(booked.order, this.#answeredOrder + 1, '8: a response overtook another request');
  }

  answered(entry: Entry): void {
    const booked = this.#booked.get(entry);
    assert.ok(booked !== undefined, '1: answered twice, or though it was refused');
    if (booked.state === 'waiting') this.#leave(booked);
    this.#booked.delete(entry);
    if (!this.#policy.policy.isOrderPreserved) return;
    assert.equal(booked.order, this.#answeredOrder + 1, '8: an answer overtook another');
    this.#answeredOrder = booked.order;
  }

  /** About to be answered, because its timeout has passed. */
  rejected(entry: Entry, nowMs: number): void {
    const booked = this.#booked.get(entry);
    assert.ok(booked !== undefined && this.#isReject(booked), '6: rejected without a REJECT timeout');
    assert.notEqual(booked.state, 'executing', '6: rejected though it executes');
    assert.ok(nowMs >= booked.deadlineMs, '6: rejected before its deadline');
  }

  /** It will be answered when its turn comes; from now on it may not be executed. */
  cancelled(entry: Entry): void {
    const booked = this.#booked.get(entry);
    if (booked?.state === 'waiting') this.#leave(booked);
  }

  afterEvent(instances: readonly InstancePort[], nowMs: number): void {
    this.#passDeadlines(nowMs);
    const oldest = this.#oldestWaiting();
    if (oldest === undefined) return;
    const isIdle = instances.some((instance) => instance.state === 'ready' && instance.inFlightCount === 0);
    if (!isIdle) return;
    const delayMs = this.#policy.policy.isBatching ? this.#policy.policy.queueDelayMs : 0;
    assert.ok(nowMs < oldest.arrivalMs + delayMs, `4: waits since ${nowMs - oldest.arrivalMs} ms`);
  }

  drained(batcher: { openCount: number; timerCount: number }): void {
    assert.equal(batcher.openCount, 0, '10: open after the drain');
    assert.equal(batcher.timerCount, 0, '10: a timer is left after the drain');
    assert.equal(this.#booked.size, 0, '10: not answered after the drain');
  }

  #dispatched(entry: Entry, nowMs: number): void {
    const booked = this.#booked.get(entry);
    assert.equal(booked?.state, 'waiting', '7: executed though it was cancelled, answered or refused');
    const own = this.#levels[booked!.level]!;
    for (let i = 0; i < booked!.level; i++) {
      assert.equal(this.#levels[i]!.waitingCount, 0, `3: level ${i} waits while ${booked!.level} goes`);
    }
    const first = this.#firstFresh(own);
    const isNext = first === undefined ? own.delayed.has(booked!) : first === booked;
    assert.ok(isNext, `3: out of order in level ${booked!.level}`);
    if (this.#isReject(booked!)) assert.ok(nowMs < booked!.deadlineMs, '6: executed after its deadline');
    this.#leave(booked!);
    booked!.state = 'executing';
  }

  #leave(booked: Booked): void {
    booked.state = 'left';
    const level = this.#levels[booked.level]!;
    level.delayed.delete(booked);
    level.waitingCount--;
    this.#bytes -= booked.entry.byteLength;
  }

  #firstFresh(level: Level): Booked | undefined {
    for (; level.head < level.fresh.length; level.head++) {
      const booked = level.fresh[level.head]!;
      if (booked.state === 'waiting' && !booked.isDelayed) return booked;
    }
    return undefined;
  }

  /** What still waits at its deadline is answered by now, or goes behind the others of its level. */
  #passDeadlines(nowMs: number): void {
    for (const deadlines of this.#deadlines.values()) {
      const { line } = deadlines;
      for (; deadlines.head < line.length && line[deadlines.head]!.deadlineMs <= nowMs; deadlines.head++) {
        const booked = line[deadlines.head]!;
        if (booked.state !== 'waiting') continue;
        if (this.#isReject(booked)) {
          assert.ok(
            booked.entry.isAnswered,
            `6: still waits ${nowMs - booked.deadlineMs} ms after its deadline`,
          );
          this.#leave(booked);
        } else {
          booked.isDelayed = true;
          this.#levels[booked.level]!.delayed.add(booked);
        }
      }
    }
  }

  #oldestWaiting(): Booked | undefined {
    for (; this.#lineHead < this.#line.length; this.#lineHead++) {
      const booked = this.#line[this.#lineHead]!;
      if (booked.state === 'waiting') return booked;
    }
    return undefined;
  }

  #isReject(booked: Booked): boolean {
    const policy = this.#policy.queuePolicies[booked.level];
    return policy?.timeout_action === 'REJECT' && Number.isFinite(booked.deadlineMs);
  }

  #levelOf(entry: Entry): number {
    return this.#policy.policy.levelOf(entry.request.priority);
  }

  #timeoutMs(level: number, overrideUs: number): number {
    const policy = this.#policy.queuePolicies[level];
    const defaultUs = policy?.default_timeout_microseconds ?? 0;
    if (defaultUs === 0) return Number.POSITIVE_INFINITY;
    const isShorter = policy!.allow_timeout_override && overrideUs > 0 && overrideUs < defaultUs;
    return (isShorter ? overrideUs : defaultUs) / 1000;
  }
}
