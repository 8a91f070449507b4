// One run of the real router under a seed: models that answer, fail, hang and refuse, that are reloaded and unloaded;
// sequences, forced requests and clients that go away; weights and rules that change by reloads. After every event the
// invariants are checked; they are listed in router.test.ts.
import assert from 'node:assert/strict';
import { Catalog } from '../../src/core/repository/catalog.ts';
import { RouterMemory } from '../../src/core/router/router-memory.ts';
import type { RouterModel } from '../../src/core/router/router-model.ts';
import {
  type Behaviour,
  CountingSink,
  makeRequest,
  makeRouter,
  put,
  TestTarget,
  target,
} from '../../src/core/router/test-target.ts';
import type { ModelRouter } from '../../src/domain/model-config.ts';
import { type InferRequest, SEQUENCE_END, SEQUENCE_START } from '../../src/domain/request.ts';
import { invalidArgument, StatusError } from '../../src/domain/status.ts';
import { Cancellation } from '../../src/lib/cancellation.ts';
import { SimulatedClock } from '../../src/lib/clock.ts';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import { underSeed } from './under-seed.ts';

export interface RouterSimulationResult {
  accepted: number;
  refused: number;
  failed: number;
  cancelled: number;
  forced: number;
  /** Requests of sequences that were not the first one, and went to a target whose weight is 0 by now. */
  faithful: number;
  copies: number;
  reloads: number;
  rollbacks: number;
}

interface OpenRequest {
  readonly sink: CountingSink;
  readonly cancellation: Cancellation;
  readonly router: RouterModel;
}

const SHADOW = 'shadow';
const SHADOW_REQUESTS_MAX = 8;
const FORCE_HEADER = 'x-nereid-target';

export function simulateRouter(seed: number, events: number): Promise<RouterSimulationResult> {
  return underSeed(seed, events, new RouterSimulation(seed));
}

class RouterSimulation {
  readonly #prng: Prng;
  readonly #clock = new SimulatedClock();
  readonly #catalog = new Catalog();
  readonly #memory = new RouterMemory();
  readonly #names: readonly string[];
  /** Those that are loaded, and old ones that still answer what they have. */
  #models: TestTarget[] = [];
  #open: OpenRequest[] = [];
  readonly #unloads: Promise<void>[] = [];
  /** Running sequences: where each began, undefined until its first request is accepted. */
  readonly #sequences = new Map<bigint, string>();
  readonly #result: RouterSimulationResult = {
    accepted: 0,
    refused: 0,
    failed: 0,
    cancelled: 0,
    forced: 0,
    faithful: 0,
    copies: 0,
    reloads: 0,
    rollbacks: 0,
  };
  #router: RouterModel;
  #nextId = 1;

  constructor(seed: number) {
    this.#prng = createPrng(seed);
    this.#names = Array.from({ length: this.#prng.integer(2, 5) }, (_, i) => `m${i}`);
    for (const name of [...this.#names, SHADOW]) this.#load(name);
    this.#router = this.#makeRouter();
    put(this.#catalog, this.#router);
  }

  get situation(): string {
    return `${this.#clock.nowMs()} ms`;
  }

  run(events: number): void {
    for (let i = 0; i < events; i++) this.#step();
  }

  #step(): void {
    const prng = this.#prng;
    const dice = prng.float();
    if (dice < 0.9) this.#send();
    else if (dice < 0.92) this.#cancelOne();
    else if (dice < 0.935) this.#changeBehaviour();
    else if (dice < 0.94) this.#load(prng.pick([...this.#names, SHADOW]));
    else if (dice < 0.943) this.#catalog.remove(prng.pick([...this.#names, SHADOW]), 1);
    else if (dice < 0.948) this.#reload();
    else if (dice < 0.95) for (const model of this.#models) model.release();
    else this.#clock.advance(prng.exponential(3));
    this.#check();
  }

  async end(): Promise<RouterSimulationResult> {
    this.#clock.run();
    for (const model of this.#models) model.release(new StatusError('UNAVAILABLE', 'end'));
    this.#sweep();
    assert.equal(this.#open.length, 0, 'requests without an end');
    assert.equal(this.#router.openCount, 0);
    this.#unloads.push(this.#router.unload());
    await Promise.all(this.#unloads);
    return this.#result;
  }

  #load(name: string): void {
    const model = new TestTarget(name, this.#clock);
    put(this.#catalog, model);
    const isLoaded = (known: TestTarget) => this.#catalog.findReady(known.name, 1) === known;
    this.#models = [...this.#models.filter((known) => known.openCount > 0 || isLoaded(known)), model];
  }

  #changeBehaviour(): void {
    const prng = this.#prng;
    const behaviours: Behaviour[] = [
      { kind: 'answer', delayMs: prng.exponential(5) },
      { kind: 'answer', delayMs: prng.exponential(5) },
      { kind: 'answer', delayMs: 60 },
      { kind: 'fail', delayMs: prng.exponential(5) },
      { kind: 'refuse', error: new StatusError('UNAVAILABLE', 'full') },
      { kind: 'refuse', error: invalidArgument('wrong') },
      { kind: 'hang' },
    ];
    const name = prng.pick([...this.#names, SHADOW]);
    const model = this.#catalog.findReady(name, 1);
    if (!(model instanceof TestTarget)) return;
    model.behaviour = prng.pick(behaviours);
    model.failure = prng.boolean(0.05) ? new StatusError('UNAVAILABLE', 'dead') : undefined;
  }

  #makeRouter(): RouterModel {
    const prng = this.#prng;
    const [first, ...others] = this.#names.map((name) => target(name, prng.pick([0, 1, 5, 20])));
    const targets = prng.shuffle([{ ...first!, weight: 50 }, ...others]);
    const canary = { target: 'm1', stable: 'm0', max_error_rate: 0.2, max_p99_ms: 50 };
    const sticky = prng.pick([
      undefined,
      { parameter: 'user' },
      { correlation_id: true },
      { header: 'x-user' },
    ]);
    const router: Partial<ModelRouter> = {
      target: targets,
      force_header: FORCE_HEADER,
      canary: [{ ...canary, window_seconds: 1, min_requests: 10 }],
      shadow: [
        {
          ...{ name: SHADOW, model: SHADOW, version: '' },
          ...{ percent: 50, max_inflight_requests: SHADOW_REQUESTS_MAX, max_inflight_bytes: 0 },
        },
      ],
      ...(sticky === undefined ? {} : { sticky }),
    };
    const random = () => prng.float();
    return makeRouter(router, { catalog: this.#catalog, clock: this.#clock, memory: this.#memory, random });
  }

  /** As control.ts swaps: the new one first, then the old one drains. */
  #reload(): void {
    const before = this.#router;
    if (before.isReloadWanted) this.#result.rollbacks++;
    this.#router = this.#makeRouter();
    put(this.#catalog, this.#router);
    this.#unloads.push(before.unload());
    this.#result.reloads++;
  }

  #send(): void {
    const prng = this.#prng;
    const request = this.#nextRequest();
    const forced = prng.boolean(0.02) ? prng.pick([...this.#names, 'nobody']) : undefined;
    const headers = new Map([['x-user', `u${prng.integer(0, 99)}`]]);
    if (forced !== undefined) headers.set(FORCE_HEADER, forced);
    const sink = new CountingSink();
    const cancellation = new Cancellation();
    const weights = new Map(this.#router.config.router!.target.map(({ name, weight }) => [name, weight]));
    for (const model of this.#models) model.seen.length = 0;
    try {
      this.#router.infer({ request, sink, cancellation, trace: undefined, headers });
    } catch (thrown) {
      assert.ok(thrown instanceof StatusError, String(thrown));
      assert.equal(sink.endCount, 0, 'a refused request has an end');
      this.#result.refused++;
      return;
    }
    this.#result.accepted++;
    this.#open.push({ sink, cancellation, router: this.#router });
    const takers = this.#models.filter(({ seen }) => seen.length > 0);
    const copies = takers.filter(({ name }) => name === SHADOW);
    const chosen = takers.filter(({ name }) => name !== SHADOW);
    assert.equal(chosen.length, 1, `${chosen.length} targets got the request`);
    assert.ok(copies.length <= 1 && takers.every(({ seen }) => seen.length === 1));
    this.#result.copies += copies.length;
    this.#checkChoice(request, { chosen: chosen[0]!.name, forced, weights });
  }

  #nextRequest(): InferRequest {
    const prng = this.#prng;
    const fields = { id: String(this.#nextId++), parameters: new Map([['user', `u${prng.integer(0, 99)}`]]) };
    if (!prng.boolean(0.3)) return makeRequest(fields);
    const running = [...this.#sequences.keys()];
    if (running.length < 20 || prng.boolean(0.1)) {
      return makeRequest({ ...fields, correlationId: BigInt(this.#nextId), sequenceFlags: SEQUENCE_START });
    }
    const sequenceFlags = prng.boolean(0.1) ? SEQUENCE_END : 0;
    return makeRequest({ ...fields, correlationId: prng.pick(running), sequenceFlags });
  }

  #checkChoice(
    { correlationId, sequenceFlags }: InferRequest,
    route: { chosen: string; forced: string | undefined; weights: ReadonlyMap<string, number> },
  ): void {
    const { chosen, forced, weights } = route;
    const home = typeof correlationId === 'bigint' ? this.#sequences.get(correlationId) : undefined;
    if (forced !== undefined) {
      assert.equal(chosen, forced);
      this.#result.forced++;
    } else if (home !== undefined) {
      assert.equal(chosen, home, 'a sequence has moved');
      if (weights.get(chosen) === 0) this.#result.faithful++;
    } else assert.ok(weights.get(chosen)! > 0, `'${chosen}' has no weight and was chosen`);
    if (typeof correlationId !== 'bigint' || correlationId === 0n) return;
    if ((sequenceFlags & SEQUENCE_END) !== 0) this.#sequences.delete(correlationId);
    else this.#sequences.set(correlationId, chosen);
  }

  #cancelOne(): void {
    if (this.#open.length > 0) this.#prng.pick(this.#open).cancellation.cancel();
  }

  #check(): void {
    this.#sweep();
    const open = this.#open.filter(({ router }) => router === this.#router).length;
    assert.equal(this.#router.openCount, open);
    const copies = this.#models
      .filter(({ name }) => name === SHADOW)
      .reduce((sum, m) => sum + m.openCount, 0);
    assert.ok(copies <= SHADOW_REQUESTS_MAX, `${copies} copies`);
  }

  #sweep(): void {
    this.#open = this.#open.filter(({ sink }) => {
      assert.ok(sink.endCount <= 1, 'a request was answered twice');
      if (sink.endCount === 0) return true;
      if (sink.error?.code === 'CANCELLED') this.#result.cancelled++;
      else if (sink.error !== undefined) this.#result.failed++;
      else assert.equal(sink.response?.modelName, 'ab');
      return false;
    });
  }
}
