// One run of the real SequenceBatcher under a seed: simulated time and instances, clients that begin, go on with, end, abandon
// and restart sequences, cancellations, deaths, idle timeouts, and a drain at the end.
import assert from 'node:assert/strict';
import type { Entry } from '../../src/core/scheduler/entry.ts';
import { SequenceBatcher } from '../../src/core/scheduler/sequence/sequence-batcher.ts';
import { toSequencePolicy } from '../../src/core/scheduler/sequence/sequence-policy.ts';
import { createSequenceRequests } from '../../src/core/scheduler/sequence/sequence-requests.ts';
import { makeEntry, makeRequest } from '../../src/core/scheduler/test-entry.ts';
import { SEQUENCE_END, SEQUENCE_START } from '../../src/domain/request.ts';
import { StatusError } from '../../src/domain/status.ts';
import { type Clock, SimulatedClock } from '../../src/lib/clock.ts';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import { countTimers } from './count-timers.ts';
import { SequenceInvariants } from './sequence-invariants.ts';
import { type RandomSequenceConfig, randomSequenceConfig } from './sequence-random-config.ts';
import { type InstanceWorld, SimulatedInstance } from './simulated-instance.ts';
import { underSeed } from './under-seed.ts';

export interface SequenceResult {
  /** Arrivals, and turns of the event loop: bursts, replies, timers, cancellations. */
  readonly events: number;
  readonly accepted: number;
  /** By the beginning of the text. */
  readonly refused: ReadonlyMap<string, number>;
  readonly succeeded: number;
  readonly finished: number;
  readonly failed: ReadonlyMap<string, number>;
  readonly seatedFromBacklog: number;
  readonly filledPlaces: number;
  readonly idleEnds: number;
  readonly rescheduled: number;
}

export function simulateSequences(seed: number, arrivals: number): Promise<SequenceResult> {
  return underSeed(seed, arrivals, new Simulation(seed));
}

class Simulation {
  readonly #prng: Prng;
  readonly #clock = new SimulatedClock();
  /** The batcher's own, which knows how many timers the batcher has set. */
  readonly #counted = countTimers(this.#eventClock());
  readonly #random: RandomSequenceConfig;
  readonly #isIterative: boolean;
  readonly #book: SequenceInvariants;
  readonly #instances: SimulatedInstance[] = [];
  readonly #batcher: SequenceBatcher;
  readonly #deferred: (() => void)[] = [];
  readonly #refused = new Map<string, number>();
  readonly #failed = new Map<string, number>();
  /** Ids whose client believes that its sequence goes on. */
  readonly #begun = new Set<number>();
  readonly #idCount: number;
  readonly #cancelChance: number;
  readonly #keyCount: number;
  readonly #endChance: number;
  readonly #gapMsMean: number;
  /** What the book has found wrong with a batch. */
  #broken: unknown;
  #isDraining = false;
  #events = 0;
  #left = 0;
  #accepted = 0;
  #succeeded = 0;
  #finished = 0;
  #rescheduled = 0;

  constructor(seed: number) {
    const prng = createPrng(seed);
    this.#prng = prng;
    this.#random = randomSequenceConfig(prng);
    const { config } = this.#random;
    const policy = toSequencePolicy(config);
    this.#isIterative = policy.isIterative;
    this.#cancelChance = prng.pick([0, 0.01, 0.1]);
    this.#keyCount = prng.pick([1, 1, 3]);
    this.#endChance = prng.pick([0.05, 0.3, 0.6]);
    const world = this.#createWorld();
    const instanceCount = prng.integer(1, 4);
    for (let i = 0; i < instanceCount; i++) this.#instances.push(new SimulatedInstance(`m_${i}`, world));
    // From fewer sequences than slots to many more.
    this.#idCount = Math.ceil(policy.slotCount * instanceCount * prng.pick([0.5, 1.5, 3])) + 1;
    this.#gapMsMean = (world.faults.computeMsMean / instanceCount) * prng.pick([0.2, 0.5, 1, 3]);
    const bounds = {
      requestsMax: prng.pick([20, 1_000, 1_000]),
      bytesMax: prng.pick([2_000, 1_000_000, 1_000_000]),
      backlogMax: prng.pick([3, 1_000, 1_000]),
    };
    this.#book = new SequenceInvariants({
      policy,
      bounds,
      batchSizeMax: Math.max(1, config.max_batch_size),
      hasState: config.sequence_batching!.state.length > 0,
      instances: this.#instances,
    });
    this.#batcher = new SequenceBatcher({
      policy,
      bounds,
      requests: createSequenceRequests(config),
      clock: this.#counted.clock,
      owner: {
        entryStarted: (entry) => this.#book.started(entry),
        entryRequeued: (entry) => {
          this.#rescheduled++;
          this.#book.requeued(entry, this.nowMs);
        },
        succeed: (entry) => {
          this.#succeeded++;
          this.#book.answered(entry, this.nowMs);
        },
        respond: (entry) => {
          this.#book.responded(entry);
          return this.#prng.boolean(0.9);
        },
        finish: (entry) => {
          this.#finished++;
          this.#book.answered(entry, this.nowMs);
        },
        executed: () => {},
        fail: (entry, _, reason) => {
          count(this.#failed, reason);
          this.#book.answered(entry, this.nowMs, reason);
        },
        batchExecuted: () => {},
      },
      instances: this.#instances,
      defer: (fn) => this.#deferred.push(fn),
      delayedStartCount: 0,
      delayedBacklogCount: 0,
    });
  }

  get nowMs(): number {
    return this.#clock.nowMs();
  }

  get situation(): string {
    return `${this.nowMs} ms, ${this.#random.text}`;
  }

  run(arrivals: number): void {
    this.#left = arrivals;
    this.#scheduleArrival();
    while (this.#left > 0) {
      const ran = this.#clock.run(10_000);
      assert.ok(ran > 0, 'the simulation stands still');
    }
  }

  /** Drains, or gives up as a server does whose exit timeout has passed. */
  async end(): Promise<SequenceResult> {
    for (const instance of this.#instances) instance.canDie = false;
    let isDrained = false;
    this.#isDraining = true;
    const areSequencesAwaited = this.#prng.boolean();
    const drained = this.#batcher.drain({ areSequencesAwaited }).then(() => {
      isDrained = true;
      this.#book.drained({ openCount: this.#batcher.openCount, timerCount: this.#counted.timerCount() });
    });
    const start = this.#createEntry(1, SEQUENCE_START);
    this.#event(() => assert.throws(() => this.#batcher.enqueue(start), /Server is stopping/));
    if (areSequencesAwaited) for (const id of this.#begun) this.#event(() => this.#continueLast(id));
    if (this.#prng.boolean(0.2)) {
      this.#event(() => {
        const expected = this.#book.expectEndOfAll();
        this.#batcher.failAll(new StatusError('UNAVAILABLE', 'the server exits'));
        this.#book.expectAnswered(expected);
      });
      assert.equal(this.#book.openCount, 0, '12: open after failAll');
    }
    for (let ran = 1; ran > 0; ran = this.#clock.run(1)) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!isDrained) assert.ok(this.#clock.nextTimerMs() !== undefined, '12: never drained');
    }
    await drained;
    assert.throws(() => this.#batcher.enqueue(this.#createEntry(1, 0)), /Server is stopping/);
    return {
      events: this.#events,
      accepted: this.#accepted,
      refused: this.#refused,
      succeeded: this.#succeeded,
      finished: this.#finished,
      failed: this.#failed,
      seatedFromBacklog: this.#book.seatedFromBacklog,
      filledPlaces: this.#book.filledPlaces,
      idleEnds: this.#book.idleEnds,
      rescheduled: this.#rescheduled,
    };
  }

  /** During the drain: what has begun may go on. */
  #continueLast(id: number): void {
    if (this.#book.openSequence(BigInt(id)) !== undefined) this.#send(this.#createEntry(id, SEQUENCE_END));
  }

  /** One turn of the event loop: the event, then what was deferred, then the checks. */
  #event(fn: () => void): void {
    this.#events++;
    fn();
    for (let next = this.#deferred.shift(); next !== undefined; next = this.#deferred.shift()) next();
    if (this.#broken !== undefined) throw this.#broken;
    this.#book.afterEvent(this.nowMs);
    if (!this.#isDraining)
      assert.ok(this.#batcher.openCount <= this.#book.openCount, '1: more open than accepted');
  }

  #eventClock(): Clock {
    return {
      nowMs: () => this.#clock.nowMs(),
      wallMs: () => this.#clock.wallMs(),
      setTimer: (delayMs, fn) => this.#clock.setTimer(delayMs, () => this.#event(fn)),
    };
  }

  #createWorld(): InstanceWorld {
    const prng = this.#prng;
    return {
      prng,
      faults: {
        computeMsMean: prng.pick([0.1, 1, 10]),
        death: prng.pick([0, 0.001, 0.02]),
        error: prng.pick([0, 0.05]),
        decoupled: prng.pick([0, 0, 0.3, 1]),
        ...(this.#isIterative || prng.boolean(0.1) ? { reschedule: prng.pick([0.1, 0.5]) } : {}),
      },
      setTimer: this.#eventClock().setTimer,
      onExecute: (instance, batchId, requests) => {
        try {
          this.#book.executed(instance, batchId, requests);
        } catch (thrown) {
          // The batcher takes what an instance throws for a failed batch.
          this.#broken ??= thrown;
        }
      },
      onReply: (reply) => {
        this.#book.replied(reply.batchId);
        this.#batcher.onReply(reply);
      },
      onPart: (part) => this.#batcher.onPart(part),
      onLost: (instance, error) => {
        const expected = this.#book.expectLossOf(instance);
        this.#batcher.onLost(instance, error);
        this.#book.expectAnswered(expected);
      },
      onInstanceChange: () => this.#batcher.onInstanceChange(),
    };
  }

  #scheduleArrival(): void {
    this.#clock.setTimer(this.#prng.exponential(this.#gapMsMean), () =>
      this.#event(() => {
        const burst = this.#prng.boolean(0.1) ? this.#prng.integer(1, 20) : 1;
        for (let i = 0; i < burst && this.#left > 0; i++, this.#left--) this.#arrive();
        if (this.#left > 0) this.#scheduleArrival();
      }),
    );
  }

  #arrive(): void {
    this.#events++;
    const prng = this.#prng;
    // An iterative model mostly gets requests that name no sequence.
    const id = this.#isIterative && prng.boolean(0.9) ? 0 : prng.integer(1, this.#idCount);
    const isStart = this.#begun.has(id) ? prng.boolean(0.02) : prng.boolean(0.95);
    const isEnd = prng.boolean(this.#endChance);
    const entry = this.#createEntry(id, (isStart ? SEQUENCE_START : 0) | (isEnd ? SEQUENCE_END : 0));
    const isAccepted = this.#send(entry);
    // Some clients go away without a word.
    if (isAccepted && !isEnd && prng.boolean(0.97)) this.#begun.add(id);
    else this.#begun.delete(id);
    if (!isAccepted || !prng.boolean(this.#cancelChance)) return;
    const delayMs = prng.exponential(this.#gapMsMean * 10);
    this.#clock.setTimer(delayMs, () => this.#event(() => this.#cancel(entry)));
  }

  #send(entry: Entry): boolean {
    const isHopeless = this.#instances.every((instance) => instance.state === 'failed');
    const isFull = this.#book.isFull(entry);
    try {
      this.#batcher.enqueue(entry);
    } catch (thrown) {
      const { message } = StatusError.from(thrown);
      count(this.#refused, message.slice(0, 9));
      if (message.includes('START flag')) this.#book.notStarted(entry.request.correlationId, this.nowMs);
      else if (isHopeless) assert.match(message, /no instance of the model is running/);
      else {
        assert.match(message, /Exceeds maximum queue size/);
        assert.ok(isFull, '10: refused though there was room');
      }
      return false;
    }
    assert.ok(!isFull && !isHopeless, '10: accepted though it was full or no instance could serve');
    this.#accepted++;
    this.#book.accepted(entry, this.nowMs);
    return true;
  }

  #cancel(entry: Entry): void {
    const expected = this.#book.expectEndOf(entry);
    this.#batcher.cancel(entry);
    this.#book.expectAnswered(expected);
  }

  #createEntry(id: number, flags: number): Entry {
    const prng = this.#prng;
    return makeEntry({
      request: makeRequest({
        correlationId: BigInt(id),
        sequenceFlags: flags,
        timeoutUs: prng.pick([0, 0, 300, 30_000, 1e9]),
      }),
      byteLength: prng.integer(1, 100),
      batchKey: String(prng.integer(1, this.#keyCount)),
    });
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
