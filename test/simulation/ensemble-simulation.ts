// One run of real Ensembles under a seed: a random graph, often with another inside it, over simulated models; clients
// that come in bursts, go away, and read slowly. What must always hold is checked at each event and at the end.
import assert from 'node:assert/strict';
import { Ensemble } from '../../src/core/ensemble/ensemble.ts';
import { planEnsemble } from '../../src/core/ensemble/load-ensemble.ts';
import type { InferCall } from '../../src/core/infer.ts';
import type { ServedModel } from '../../src/core/model/served-model.ts';
import { makeRequest } from '../../src/core/scheduler/test-entry.ts';
import { MetricsRegistry } from '../../src/core/stats/metrics-registry.ts';
import { ModelStats } from '../../src/core/stats/model-stats.ts';
import { DEFAULT_METRICS_CONFIG } from '../../src/domain/metrics-config.ts';
import type { InferResponse, ResponseSink } from '../../src/domain/request.ts';
import { StatusError } from '../../src/domain/status.ts';
import { Cancellation } from '../../src/lib/cancellation.ts';
import { SimulatedClock } from '../../src/lib/clock.ts';
import { createPrng } from '../../src/lib/prng.ts';
import { type RandomEnsemble, randomEnsemble } from './random-ensemble.ts';
import { type ModelFaults, type ModelWorld, SimulatedModel } from './simulated-model.ts';
import { underSeed } from './under-seed.ts';

export interface EnsembleResult {
  readonly events: number;
  readonly accepted: number;
  readonly refused: number;
  readonly finished: number;
  readonly failed: ReadonlyMap<string, number>;
  readonly responses: number;
  readonly pauses: number;
  readonly waits: number;
}

/** Which answer of which decoupled request a tensor comes from. */
type Roots = ReadonlyMap<InferCall, number>;

const LIMITS = { requestsMax: 100, bytesMax: 1_500, passesMax: 4 };

export function simulateEnsemble(seed: number, arrivals: number): Promise<EnsembleResult> {
  return underSeed(seed, arrivals, new Simulation(seed));
}

class Simulation {
  readonly #prng;
  readonly #clock = new SimulatedClock();
  readonly #models = new Map<string, ServedModel>();
  readonly #ensembles: Ensemble[] = [];
  readonly #top: Ensemble;
  readonly #roots = new Map<number, Roots>();
  readonly #buffers = new Map<number, Buffer>();
  readonly #open = new Set<Client>();
  readonly #failed = new Map<string, number>();
  readonly #succeeded = new Set<string>();
  readonly #gapMsMean: number;
  #nextValue = 1;
  #count = { events: 0, accepted: 0, refused: 0, finished: 0, responses: 0, pauses: 0, waits: 0 };

  constructor(seed: number) {
    this.#prng = createPrng(seed);
    const inner = this.#prng.boolean(0.6)
      ? this.#build(randomEnsemble('inner', this.#prng, undefined))
      : undefined;
    this.#top = this.#build(randomEnsemble('outer', this.#prng, inner));
    this.#gapMsMean = this.#prng.pick([0.2, 1, 4]);
  }

  get situation(): string {
    return JSON.stringify(this.#ensembles.map(({ config }) => config.ensemble_scheduling));
  }

  #build({ config, models }: RandomEnsemble): Ensemble {
    for (const model of models) {
      if (model === undefined) continue;
      this.#models.set(model.name, new SimulatedModel(model, this.#randomFaults(), this.#world()));
    }
    const find = (name: string) => this.#models.get(name);
    const steps = config.ensemble_scheduling!.step.map((step) => find(step.model_name)!);
    const ensemble = new Ensemble({
      config,
      version: 1,
      plan: planEnsemble(config, steps),
      labels: new Map(),
      models: steps,
      clock: this.#clock,
      limits: LIMITS,
      find,
      stats: new ModelStats({
        name: config.name,
        version: 1,
        metricTags: {},
        config: DEFAULT_METRICS_CONFIG,
        isCached: false,
        registry: new MetricsRegistry(this.#clock),
      }),
    });
    this.#models.set(config.name, ensemble);
    this.#ensembles.push(ensemble);
    return ensemble;
  }

  #randomFaults(): ModelFaults {
    const prng = this.#prng;
    return {
      computeMsMean: prng.pick([0.1, 1, 5]),
      error: prng.pick([0, 0, 0.01, 0.1]),
      lackingOutput: prng.pick([0, 0, 0, 0.02]),
      workerCount: prng.integer(1, 6),
      queueMax: prng.pick([2, 20, 1000]),
      responsesMax: prng.pick([2, 8, 30]),
    };
  }

  #world(): ModelWorld {
    return {
      prng: this.#prng,
      setTimer: (delayMs, fn) =>
        this.#clock.setTimer(delayMs, () => {
          this.#count.events++;
          fn();
        }),
      onAnswered: (call, isCancelled) => {
        // Only the failure of another step may cancel it; then its request has ended.
        if (isCancelled) assert.ok(!this.#succeeded.has(call.request.id), 'a step was cancelled by success');
      },
      derive: (inputs, response) => this.#derive(inputs, response),
    };
  }

  /** Tensors that meet in a step, or in a response, come from the same answer of each decoupled request. */
  #derive(inputs: readonly Buffer[], response: { call: InferCall; number: number } | undefined): Buffer {
    const roots = new Map<InferCall, number>();
    for (const input of inputs) this.#gather(input, roots);
    if (response !== undefined) roots.set(response.call, response.number);
    return this.#newTensor(roots);
  }

  #gather(bytes: Buffer, into: Map<InferCall, number>): void {
    const value = bytes.readUInt32LE();
    assert.ok(this.#buffers.get(value) === bytes, 'a tensor is handed on as the buffer it came in');
    for (const [call, number] of this.#roots.get(value)!) {
      assert.equal(into.get(call) ?? number, number, 'tensors of different passes met');
      into.set(call, number);
    }
  }

  #newTensor(roots: Roots): Buffer {
    const value = this.#nextValue++;
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.#roots.set(value, roots);
    this.#buffers.set(value, bytes);
    return bytes;
  }

  run(arrivals: number): void {
    for (let i = 0; i < arrivals; i++) {
      this.#arrive(String(i));
      if (!this.#prng.boolean(0.3)) this.#clock.advance(this.#prng.exponential(this.#gapMsMean));
      this.#check();
      // Values are only looked at while their request goes on.
      if (this.#open.size === 0) {
        this.#roots.clear();
        this.#buffers.clear();
      }
    }
  }

  #arrive(id: string): void {
    const prng = this.#prng;
    this.#count.events++;
    const inputs = this.#top.inputs
      .filter((input) => !input.optional || prng.boolean())
      .map(({ name }) => ({
        name,
        datatype: 'UINT32' as const,
        shape: [1],
        data: [this.#newTensor(new Map())],
        byteLength: 4,
      }));
    const requestedOutputs = this.#top.outputs.map(({ name }) => name).filter(() => prng.boolean(0.7));
    const cancellation = new Cancellation();
    const client = new Client(id, requestedOutputs, {
      isSlow: () => this.#top.isDecoupled && prng.boolean(0.05),
      later: (fn) => this.#world().setTimer(prng.exponential(3), fn),
      onResponse: (response) => this.#onResponse(response),
      onPause: () => this.#count.pauses++,
      onEnd: (error) => this.#onEnd(client, error),
    });
    this.#open.add(client);
    try {
      this.#top.infer({
        request: makeRequest({ id, inputs, requestedOutputs }),
        sink: client,
        cancellation,
        trace: undefined,
      });
      this.#count.accepted++;
    } catch (thrown) {
      assert.ok(thrown instanceof StatusError, String(thrown));
      assert.ok(!client.isEnded, 'a refused request was answered');
      assert.match(thrown.message, /Exceeds maximum queue size/);
      assert.ok(this.#top.openCount >= LIMITS.requestsMax || this.#top.heldBytes + 8 > LIMITS.bytesMax);
      this.#open.delete(client);
      this.#count.refused++;
    }
    if (prng.boolean(0.05)) this.#world().setTimer(prng.exponential(5), () => cancellation.cancel());
  }

  #onResponse(response: InferResponse): void {
    this.#count.events++;
    this.#count.responses++;
    const roots = new Map<InferCall, number>();
    for (const output of response.outputs) {
      assert.ok(output.shape.join() === '1');
      this.#gather(output.data[0]!, roots);
    }
  }

  #onEnd(client: Client, error: StatusError | undefined): void {
    this.#open.delete(client);
    if (error === undefined) {
      this.#count.finished++;
      this.#succeeded.add(client.id);
      if (!this.#top.isDecoupled) assert.equal(client.responseCount, 1);
      return;
    }
    if (error.code !== 'CANCELLED') assert.match(error.message, /^in ensemble 'outer', /);
    const kind = /Exceeds|deadlock|raised|failed|but got/.exec(error.message)?.[0] ?? error.code;
    this.#failed.set(kind, (this.#failed.get(kind) ?? 0) + 1);
  }

  #check(): void {
    assert.equal(this.#top.openCount, this.#open.size);
    assert.ok(this.#top.openCount <= LIMITS.requestsMax);
    for (const { config, plan, gates, heldBytes } of this.#ensembles) {
      const max = config.ensemble_scheduling!.max_inflight_requests;
      for (const { index } of plan.steps) {
        const inFlight = gates.inFlightCountOf(index);
        assert.ok(inFlight >= 0);
        if (max > 0) assert.ok(inFlight <= max, `${inFlight} of step ${index} are in flight`);
        if (max > 0 && inFlight === max) this.#count.waits++;
      }
      assert.ok(heldBytes >= 0);
    }
  }

  async end(): Promise<EnsembleResult> {
    const unloaded = this.#top.unload();
    this.#clock.run();
    this.#check();
    assert.equal(this.#open.size, 0, 'requests are stuck');
    await unloaded;
    for (const ensemble of this.#ensembles) {
      assert.equal(ensemble.openCount, 0);
      assert.equal(ensemble.heldBytes, 0, 'bytes were not given back');
      for (const { index } of ensemble.plan.steps) assert.equal(ensemble.gates.inFlightCountOf(index), 0);
    }
    for (const model of this.#models.values())
      assert.equal(model.openCount, 0, `${model.name} has work left`);
    return { ...this.#count, failed: this.#failed };
  }
}

interface ClientWorld {
  isSlow(): boolean;
  later(fn: () => void): void;
  onResponse(response: InferResponse): void;
  onPause(): void;
  onEnd(error: StatusError | undefined): void;
}

class Client implements ResponseSink {
  readonly id: string;
  readonly #requested: readonly string[];
  readonly #world: ClientWorld;
  responseCount = 0;
  isEnded = false;
  onRoom: (() => void) | undefined;

  constructor(id: string, requested: readonly string[], world: ClientWorld) {
    this.id = id;
    this.#requested = requested;
    this.#world = world;
  }

  send(response: InferResponse): boolean {
    assert.ok(!this.isEnded, 'a response after the end');
    this.responseCount++;
    if (this.#requested.length > 0) {
      const names = response.outputs.map(({ name }) => name);
      assert.equal(names.sort().join(), [...this.#requested].sort().join());
    }
    this.#world.onResponse(response);
    if (!this.#world.isSlow()) return true;
    this.#world.onPause();
    this.#world.later(() => this.onRoom?.());
    return false;
  }

  sendError(): boolean {
    throw new Error('an ensemble ends with its first error');
  }

  finish(): void {
    this.#end(undefined);
  }

  fail(error: StatusError): void {
    this.#end(error);
  }

  #end(error: StatusError | undefined): void {
    assert.ok(!this.isEnded, 'a second end');
    this.isEnded = true;
    this.#world.onEnd(error);
  }
}
