// One run of the real RateLimiter with several real Batchers under a seed. What is in use is counted here a second
// time, from what the instances do. After every event:
//
//   a  No pool is exceeded, and no instance has two batches.
//   b  No idle instance of a model that has work is passed by others more often than its bound.
//   c  Nothing stands still: what fits, has work and stands in nobody's way runs.
//   d  A model is told of its turn only after it was refused, once for each refusal.
//   e  At the end everything is answered and every resource is given back.
import assert from 'node:assert/strict';
import { overtakesMax } from '../../src/core/rate-limiter/choose-next.ts';
import { RateLimiter } from '../../src/core/rate-limiter/rate-limiter.ts';
import { Batcher } from '../../src/core/scheduler/batcher.ts';
import { toSchedulerPolicy } from '../../src/core/scheduler/scheduler-policy.ts';
import { makeEntry } from '../../src/core/scheduler/test-entry.ts';
import type { Admission } from '../../src/instance/admission.ts';
import { SimulatedClock } from '../../src/lib/clock.ts';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';
import { LimitedInstance, type LimitedWorld } from './limited-instance.ts';

export interface RateLimiterResult {
  readonly answered: number;
  readonly executions: number;
  readonly refusals: number;
  readonly deaths: number;
}

interface SimulatedModel {
  readonly instances: readonly LimitedInstance[];
  readonly batcher: Batcher;
  readonly hasDelay: boolean;
  refusalCount: number;
}

const RESOURCES = ['r', 's', 't'];

export class RateLimiterSimulation {
  readonly #prng: Prng;
  readonly #clock = new SimulatedClock();
  readonly #deferred: (() => void)[] = [];
  readonly #limiter: RateLimiter;
  readonly #models: SimulatedModel[] = [];
  readonly #sizes = new Map<string, number>();
  readonly #used = new Map<string, number>();
  readonly #running = new Set<LimitedInstance>();
  #left = 0;
  #accepted = 0;
  #answered = 0;
  #executions = 0;
  #refusals = 0;
  #deaths = 0;

  constructor(seed: number) {
    this.#prng = createPrng(seed);
    const limits = this.#prng.boolean()
      ? RESOURCES.map((name) => ({ name, count: this.#prng.integer(3, 6), device: -1 }))
      : [];
    this.#limiter = new RateLimiter({ limits, defer: (fn) => this.#deferred.push(fn) });
    const modelCount = this.#prng.integer(2, 6);
    for (let i = 0; i < modelCount; i++) this.#models.push(this.#createModel(`m${i}`));
    for (const name of RESOURCES) {
      const needed = this.#instances().map((instance) => instance.needs[name] ?? 0);
      const limit = limits.find((candidate) => candidate.name === name)?.count;
      this.#sizes.set(name, limit ?? Math.max(...needed));
    }
  }

  run(arrivals: number): void {
    this.#left = arrivals;
    // From half idle to overloaded.
    const gapMsMean = this.#prng.pick([0.1, 0.3, 1, 3]);
    const arrive = () =>
      this.#event(() => {
        const burst = this.#prng.boolean(0.1) ? this.#prng.integer(1, 10) : 1;
        for (let i = 0; i < burst && this.#left > 0; i++, this.#left--) {
          this.#prng.pick(this.#models).batcher.enqueue(makeEntry());
          this.#accepted++;
        }
        if (this.#left > 0) this.#clock.setTimer(this.#prng.exponential(gapMsMean), arrive);
      });
    arrive();
    while (this.#left > 0) assert.ok(this.#clock.run(1_000) > 0, 'c: the simulation stands still');
  }

  async end(): Promise<RateLimiterResult> {
    for (const instance of this.#instances()) instance.canDie = false;
    const drained = this.#models.map((model) => model.batcher.drain());
    this.#event(() => {});
    while (this.#clock.run(1_000) > 0);
    await Promise.all(drained);
    assert.equal(this.#answered, this.#accepted, 'e: not everything was answered');
    assert.equal(this.#running.size, 0, 'e: something runs');
    this.#checkAllIsFree();
    return {
      answered: this.#answered,
      executions: this.#executions,
      refusals: this.#refusals,
      deaths: this.#deaths,
    };
  }

  /** Another model that needs all there is may run at once. */
  #checkAllIsFree(): void {
    const needs = new Map(
      [...this.#sizes].map(([name, count]) => [`0:${name}`, { name, device: 0, count }] as const),
    );
    const [probe] = this.#limiter.register([{ needs, priority: 1 }], () => {});
    assert.ok(probe!.ask(), 'e: a resource was not given back');
  }

  #createModel(name: string): SimulatedModel {
    const prng = this.#prng;
    const world: LimitedWorld = {
      prng,
      death: prng.pick([0, 0.01, 0.1]),
      computeMsMean: prng.pick([0.1, 1, 5]),
      setTimer: (delayMs, fn) => {
        this.#clock.setTimer(delayMs, () => this.#event(fn));
      },
      onBegin: (instance) => this.#begin(instance),
      onEnd: (instance) => this.#end(instance),
    };
    const instances = Array.from(
      { length: prng.integer(1, 3) },
      (_, i) =>
        new LimitedInstance(
          { name: `${name}_${i}`, needs: this.#randomNeeds(), priority: prng.integer(1, 5) },
          world,
        ),
    );
    const config = parseModelConfig('max_batch_size: 4');
    const hasDelay = prng.boolean(0.3);
    if (prng.boolean(0.7)) {
      const text = `max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: ${hasDelay ? 2000 : 0} }`;
      Object.assign(config, parseModelConfig(text));
    }
    const batcher = new Batcher({
      policy: toSchedulerPolicy(config),
      clock: { ...this.#eventClock(), wallMs: () => 0 },
      owner: {
        entryStarted: () => {},
        entryRequeued: () => {},
        succeed: () => this.#answered++,
        respond: () => true,
        finish: () => {},
        executed: () => {},
        fail: () => this.#answered++,
        batchExecuted: () => {},
      },
      instances,
      defer: (fn) => this.#deferred.push(fn),
      delayedStartCount: 0,
    });
    const model: SimulatedModel = { instances, batcher, hasDelay, refusalCount: 0 };
    this.#register(model);
    return model;
  }

  #register(model: SimulatedModel): void {
    const limits = model.instances.map(({ needs, priority }) => ({
      priority,
      needs: new Map(
        Object.entries(needs).map(([name, count]) => [`0:${name}`, { name, device: 0, count }] as const),
      ),
    }));
    const admissions = this.#limiter.register(limits, () => {
      assert.ok(model.refusalCount > 0, 'd: told though it was not refused');
      model.refusalCount--;
      model.batcher.onInstanceChange();
    });
    for (let i = 0; i < admissions.length; i++) {
      const instance = model.instances[i]!;
      instance.admission = this.#watched(admissions[i]!, model);
      instance.batcher = model.batcher;
    }
  }

  #watched(admission: Admission, model: SimulatedModel): Admission {
    return {
      ask: () => {
        const isAdmitted = admission.ask();
        if (!isAdmitted) {
          model.refusalCount++;
          this.#refusals++;
        }
        return isAdmitted;
      },
      begin: () => admission.begin(),
      end: () => admission.end(),
      leave: () => admission.leave(),
    };
  }

  #randomNeeds(): Record<string, number> {
    const needs: Record<string, number> = {};
    for (const name of RESOURCES) {
      if (this.#prng.boolean(0.5)) needs[name] = this.#prng.integer(1, 3);
    }
    return needs;
  }

  #begin(instance: LimitedInstance): void {
    this.#executions++;
    this.#running.add(instance);
    for (const [name, count] of Object.entries(instance.needs)) {
      const used = (this.#used.get(name) ?? 0) + count;
      this.#used.set(name, used);
      const size = this.#sizes.get(name)!;
      assert.ok(used <= size, `a: ${used} of ${size} ${name}`);
    }
    instance.passedCount = 0;
    for (const other of this.#instances()) {
      if (other !== instance && this.#isHarmed(other, instance)) other.passedCount++;
    }
  }

  /** What another one took keeps it from running; taking of plenty does not. */
  #isHarmed(instance: LimitedInstance, taker: LimitedInstance): boolean {
    return Object.entries(instance.needs).some(
      ([name, needed]) =>
        taker.needs[name] !== undefined && (this.#used.get(name) ?? 0) + needed > this.#sizes.get(name)!,
    );
  }

  #end(instance: LimitedInstance): void {
    if (instance.state !== 'ready') this.#deaths++;
    assert.ok(this.#running.delete(instance), 'e: ended twice');
    for (const [name, count] of Object.entries(instance.needs)) {
      this.#used.set(name, this.#used.get(name)! - count);
    }
  }

  #event(fn: () => void): void {
    fn();
    for (let next = this.#deferred.shift(); next !== undefined; next = this.#deferred.shift()) next();
    for (const model of this.#models) this.#checkModel(model);
  }

  #checkModel(model: SimulatedModel): void {
    // A batch that may still grow is no work yet.
    const hasWork = model.batcher.waitingCount > 0 && !model.hasDelay;
    for (const instance of model.instances) {
      if (hasWork && instance.state === 'ready' && instance.inFlightCount === 0)
        this.#checkWaiting(instance, model);
      else instance.passedCount = 0;
    }
  }

  #checkWaiting(instance: LimitedInstance, model: SimulatedModel): void {
    const count = this.#instances().length;
    // Those that are overdue as well may be before it.
    const bound = overtakesMax(instance.priority, count) + count;
    const { passedCount } = instance;
    assert.ok(passedCount <= bound, `b: passed ${passedCount} times, ${bound} are allowed`);
    const isFree = Object.entries(instance.needs).every(
      ([name, needed]) => (this.#used.get(name) ?? 0) + needed <= this.#sizes.get(name)!,
    );
    const rivals = this.#models.filter((other) => other !== model && other.batcher.waitingCount > 0);
    const isRivalled = [...rivals.flatMap((other) => other.instances), ...model.instances].some(
      (other) => other !== instance && isSharing(other, instance),
    );
    assert.ok(!isFree || isRivalled, `c: ${instance.name} stands still`);
  }

  #instances(): LimitedInstance[] {
    return this.#models.flatMap((model) => model.instances);
  }

  #eventClock() {
    return {
      nowMs: () => this.#clock.nowMs(),
      setTimer: (delayMs: number, fn: () => void) => this.#clock.setTimer(delayMs, () => this.#event(fn)),
    };
  }
}

function isSharing(a: LimitedInstance, b: LimitedInstance): boolean {
  return Object.keys(a.needs).some((name) => b.needs[name] !== undefined);
}
