// One run of the real Batcher under a seed: simulated time, simulated instances, Poisson arrivals in bursts,
// cancellations, deaths, and a drain at the end. Everything random comes from the seed.
import assert from 'node:assert/strict';
import { Batcher } from '../../src/core/scheduler/batcher.ts';
import type { Entry } from '../../src/core/scheduler/entry.ts';
import { makeEntry, makeRequest } from '../../src/core/scheduler/test-entry.ts';
import { StatusError } from '../../src/domain/status.ts';
import { type Clock, SimulatedClock } from '../../src/lib/clock.ts';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import { BatcherInvariants } from './batcher-invariants.ts';
import { countTimers } from './count-timers.ts';
import { type RandomPolicy, randomPolicy } from './random-policy.ts';
import { type InstanceWorld, SimulatedInstance } from './simulated-instance.ts';
import { underSeed } from './under-seed.ts';

export interface SimulationResult {
  readonly accepted: number;
  readonly refused: number;
  readonly succeeded: number;
  readonly failed: ReadonlyMap<string, number>;
  readonly batches: number;
  /** Of requests answered part by part: responses, and ends. */
  readonly responses: number;
  readonly finished: number;
}

export function simulateBatcher(seed: number, arrivals: number): Promise<SimulationResult> {
  return underSeed(seed, arrivals, new Simulation(seed));
}

class Simulation {
  readonly #prng: Prng;
  readonly #clock = new SimulatedClock();
  /** The batcher's own, which knows how many timers the batcher has set. */
  readonly #counted = countTimers(this.#eventClock());
  readonly #policy: RandomPolicy;
  readonly #book: BatcherInvariants;
  readonly #instances: SimulatedInstance[] = [];
  readonly #batcher: Batcher;
  readonly #deferred: (() => void)[] = [];
  readonly #failed = new Map<string, number>();
  readonly #cancelChance: number;
  readonly #keyCount: number;
  readonly #byteLengthMax: number;
  readonly #gapMsMean: number;
  #left = 0;
  #accepted = 0;
  #refused = 0;
  #succeeded = 0;
  #batches = 0;
  #responses = 0;
  #finished = 0;

  constructor(seed: number) {
    const prng = createPrng(seed);
    this.#prng = prng;
    this.#policy = randomPolicy(prng);
    this.#book = new BatcherInvariants(this.#policy);
    this.#cancelChance = prng.pick([0, 0.01, 0.3]);
    this.#keyCount = prng.pick([1, 1, 3]);
    // Some runs are about the bound in bytes; a length is only a number here.
    this.#byteLengthMax = prng.pick([100, 100, 1e9]);
    const world = this.#createWorld();
    const instanceCount = prng.integer(1, 4);
    for (let i = 0; i < instanceCount; i++) this.#instances.push(new SimulatedInstance(`m_${i}`, world));
    // From half idle to overloaded.
    this.#gapMsMean = (world.faults.computeMsMean / instanceCount) * prng.pick([0.1, 0.5, 0.9, 2]);
    this.#batcher = new Batcher({
      policy: this.#policy.policy,
      clock: this.#counted.clock,
      owner: {
        entryStarted: (entry) => this.#book.started(entry),
        entryRequeued: () => {},
        succeed: (entry) => {
          this.#succeeded++;
          this.#book.answered(entry);
        },
        respond: (entry) => {
          this.#responses++;
          this.#book.responded(entry);
          return this.#prng.boolean(0.9);
        },
        finish: (entry) => {
          this.#finished++;
          this.#book.answered(entry);
        },
        executed: () => {},
        fail: (entry, _, reason) => {
          this.#failed.set(reason, (this.#failed.get(reason) ?? 0) + 1);
          if (reason === 'REJECTED') this.#book.rejected(entry, this.nowMs);
          this.#book.answered(entry);
        },
        batchExecuted: () => this.#batches++,
      },
      instances: this.#instances,
      defer: (fn) => this.#deferred.push(fn),
      delayedStartCount: 0,
    });
  }

  get nowMs(): number {
    return this.#clock.nowMs();
  }

  get situation(): string {
    return `${this.nowMs} ms, ${this.#policy.text}`;
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
  async end(): Promise<SimulationResult> {
    for (const instance of this.#instances) instance.canDie = false;
    let isDrained = false;
    const drained = this.#batcher.drain().then(() => {
      isDrained = true;
      this.#book.drained({ openCount: this.#batcher.openCount, timerCount: this.#counted.timerCount() });
    });
    this.#event(() => assert.throws(() => this.#batcher.enqueue(this.#createEntry()), /Server is stopping/));
    if (this.#prng.boolean(0.2)) {
      this.#event(() => this.#batcher.failAll(new StatusError('UNAVAILABLE', 'the server exits')));
      assert.equal(this.#book.openCount, 0, '10: open after failAll');
    }
    for (let ran = 1; ran > 0; ran = this.#clock.run(1)) {
      await new Promise((resolve) => setImmediate(resolve));
      if (!isDrained) assert.ok(this.#clock.nextTimerMs() !== undefined, '10: never drained');
    }
    await drained;
    return {
      accepted: this.#accepted,
      refused: this.#refused,
      succeeded: this.#succeeded,
      failed: this.#failed,
      batches: this.#batches,
      responses: this.#responses,
      finished: this.#finished,
    };
  }

  /** One turn of the event loop: the event, then what was deferred, then the checks. */
  #event(fn: () => void): void {
    fn();
    for (let next = this.#deferred.shift(); next !== undefined; next = this.#deferred.shift()) next();
    this.#book.afterEvent(this.#instances, this.nowMs);
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
    const { setTimer } = this.#eventClock();
    const faults = {
      computeMsMean: this.#prng.pick([0.1, 1, 10]),
      death: this.#prng.pick([0, 0.001, 0.05]),
      error: this.#prng.pick([0, 0.05]),
      decoupled: this.#prng.pick([0, 0, 0.3, 1]),
    };
    return {
      prng: this.#prng,
      faults,
      setTimer,
      onExecute: (instance, _, requests) => this.#book.executed(instance, requests.length, this.nowMs),
      onReply: (reply) => this.#batcher.onReply(reply),
      onPart: (part) => this.#batcher.onPart(part),
      onLost: (instance, error) => this.#batcher.onLost(instance, error),
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
    const entry = this.#createEntry();
    const isHopeless = this.#instances.every((instance) => instance.state === 'failed');
    try {
      this.#batcher.enqueue(entry);
    } catch (thrown) {
      const reason = isHopeless ? /no instance of the model is running/ : /Exceeds maximum queue size/;
      assert.match(StatusError.from(thrown).message, reason);
      // What came before it in this turn has left, if it could.
      assert.ok(isHopeless || !this.#book.hasRoomFor(entry), '5: refused though there was room');
      if (!isHopeless) this.#book.afterEvent(this.#instances, this.nowMs);
      this.#refused++;
      return;
    }
    const isRoomy = this.#book.hasRoomFor(entry);
    assert.ok(isRoomy && !isHopeless, '5: accepted though the queue was full or no instance could serve');
    this.#accepted++;
    this.#book.accepted(entry, this.nowMs);
    if (!this.#prng.boolean(this.#cancelChance)) return;
    const delayMs = this.#prng.exponential(this.#gapMsMean * 10);
    this.#clock.setTimer(delayMs, () => this.#event(() => this.#cancel(entry)));
  }

  #cancel(entry: Entry): void {
    this.#book.cancelled(entry);
    this.#batcher.cancel(entry);
    assert.ok(entry.isAnswered, '7: open after its cancellation');
  }

  #createEntry(): Entry {
    const prng = this.#prng;
    return makeEntry({
      request: makeRequest({
        priority: prng.integer(0, this.#policy.priorityLevels + 1),
        timeoutUs: prng.pick([0, 300, 3_000, 1e9]),
      }),
      batchSize: prng.integer(1, Math.max(1, this.#policy.batchSizeMax >> prng.integer(0, 3))),
      byteLength: prng.integer(1, this.#byteLengthMax),
      batchKey: String(prng.integer(1, this.#keyCount)),
    });
  }
}
