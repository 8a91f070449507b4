// One run of the real step scheduler under a seed, against a model of the KV cache and a language model that is a hash: random
// limits, prompts that begin alike, priorities, adapters, proposals, cancels, failed steps. The invariants are checked
// after every step; they are listed in llm-scheduler.test.ts.
import assert from 'node:assert/strict';
import {
  type PlanRow,
  type SchedulerLimits,
  SchedulerRefusal,
  type SchedulerStats,
  type StepPlan,
  type StepResult,
} from '../../src/backends/llama/scheduler/step-plan.ts';
import { StepScheduler } from '../../src/backends/llama/scheduler/step-scheduler.ts';
import { ADAPTER_TURN_STEPS } from '../../src/backends/llama/scheduler/turns.ts';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import { KvCacheModel } from './llm-kv-cache.ts';
import { nextToken, RequestSource, randomLimits, type SimulatedRequest } from './llm-random-requests.ts';
import { underSeed } from './under-seed.ts';

export interface LlmSimulationResult {
  steps: number;
  finished: number;
  cancelled: number;
  failed: number;
  stuck: number;
  refused: number;
  resumed: number;
  /** Steps in which a request held back. */
  held: number;
  /** Steps that prompts had to themselves while others decoded. */
  apart: number;
  stats: SchedulerStats;
}

/** The most senior request has a row at least once in so many steps, even while others must end before it can begin. */
const SENIOR_STEPS_MAX = 3_000;

export function simulateLlmScheduler(seed: number, requests: number): Promise<LlmSimulationResult> {
  return underSeed(seed, requests, new LlmSchedulerSimulation(seed));
}

class LlmSchedulerSimulation {
  readonly #prng: Prng;
  readonly #limits: SchedulerLimits;
  readonly #scheduler: StepScheduler;
  readonly #cache: KvCacheModel;
  readonly #source: RequestSource;
  readonly #open = new Map<number, SimulatedRequest>();
  readonly #openMax: number;
  readonly #result = {
    steps: 0,
    finished: 0,
    cancelled: 0,
    failed: 0,
    stuck: 0,
    refused: 0,
    resumed: 0,
    held: 0,
    apart: 0,
  };
  /** Running requests that have had an output since they began. */
  readonly #decoding = new Set<number>();
  /** Adapters whose last step was of prompts alone. */
  readonly #aloneLast = new Set<number>();
  #seniorId = -1;
  #seniorSince = 0;

  constructor(seed: number) {
    this.#prng = createPrng(seed);
    this.#limits = randomLimits(this.#prng);
    this.#scheduler = new StepScheduler(this.#limits);
    this.#cache = new KvCacheModel(this.#limits.cellCount);
    this.#source = new RequestSource(this.#prng, this.#limits);
    this.#openMax = this.#prng.integer(2, 2 * this.#limits.waitingMax);
  }

  get situation(): string {
    return `step ${this.#result.steps} of ${JSON.stringify(this.#limits)}`;
  }

  run(requests: number): void {
    for (let made = 0; made < requests; ) {
      const count = this.#prng.boolean(0.2) ? this.#prng.integer(1, 8) : 0;
      for (let i = 0; i < count && this.#open.size < this.#openMax; i++, made++) this.#add();
      if (this.#prng.boolean(0.02)) this.#cancelOne();
      if (this.#prng.boolean(0.001)) this.#clearCache();
      if (this.#prng.boolean(0.1)) this.#applyOps();
      this.#step();
    }
  }

  end(): Promise<LlmSimulationResult> {
    while (this.#step());
    assert.equal(this.#open.size, 0, 'requests without an end');
    this.#clearCache();
    assert.equal(this.#cache.usedCount, 0, 'cells have leaked');
    const { stats } = this.#scheduler;
    assert.deepEqual(
      [stats.cellsUsed, stats.cellsCached, stats.sequencesUsed, stats.running, stats.waiting],
      [0, 0, 0, 0, 0],
    );
    return Promise.resolve({ ...this.#result, stats });
  }

  #add(): void {
    const request = this.#source.make(this.#result.steps);
    const { waiting } = this.#scheduler.stats;
    try {
      this.#scheduler.add(request);
      this.#open.set(request.id, request);
    } catch (thrown) {
      assert.ok(thrown instanceof SchedulerRefusal, String(thrown));
      if (thrown.reason === 'queue-full') assert.ok(waiting >= this.#limits.waitingMax);
      else assert.ok(request.prompt.length >= this.#limits.cellCount);
      this.#result.refused++;
    }
  }

  #cancelOne(): void {
    if (this.#open.size === 0) return;
    const request = this.#prng.pick([...this.#open.values()]);
    this.#scheduler.cancel(request.id);
    this.#endRequest(request, 'cancelled');
  }

  #clearCache(): void {
    this.#scheduler.clearCache();
    this.#applyOps();
    assert.equal(this.#scheduler.stats.cellsCached, 0);
  }

  /** As the engine does when it has nothing else to do. */
  #applyOps(): void {
    for (const op of this.#scheduler.takeOps()) this.#cache.apply(op);
    assert.equal(this.#cache.usedCount, this.#scheduler.stats.cellsUsed);
  }

  /** Whether there was anything to do. */
  #step(): boolean {
    const sharedRowsMax = this.#limits.runningMax + this.#prng.integer(0, this.#limits.stepTokensMax);
    const plan = this.#scheduler.schedule(this.#proposals(), sharedRowsMax);
    if (plan === undefined) {
      assert.equal(this.#open.size, 0, 'nothing is scheduled though requests are open');
      return false;
    }
    this.#result.steps++;
    this.#follow(plan);
    for (const op of plan.memory) this.#cache.apply(op);
    const isFailing = this.#prng.boolean(0.002);
    // A decode that fails has done some of its rows.
    const rows = isFailing ? plan.rows.slice(0, this.#prng.integer(0, plan.rows.length)) : plan.rows;
    const contexts = this.#cache.decode(rows, plan.adapter);
    if (isFailing) {
      this.#scheduler.abandon(plan);
      for (const { requestId } of plan.rows) this.#endRequest(this.#open.get(requestId)!, 'failed');
      return true;
    }
    this.#checkCache(plan);
    const results = new Map<number, StepResult>();
    for (const row of plan.rows) this.#answer(row, contexts.get(row.requestId)!, results);
    if (this.#prng.boolean(0.01)) this.#cancelOne();
    this.#scheduler.update(plan, results);
    this.#checkSenior(plan);
    return true;
  }

  /** Some right, some wrong, some for requests that only wait. */
  #proposals(): Map<number, readonly number[]> {
    const proposals = new Map<number, readonly number[]>();
    for (const { id, expected, generated } of this.#open.values()) {
      if (!this.#prng.boolean(0.3)) continue;
      const right = expected.slice(generated.length, generated.length + this.#prng.integer(1, 5));
      proposals.set(
        id,
        right.map((token) => (this.#prng.boolean(0.8) ? token : this.#prng.integer(0, 5))),
      );
    }
    return proposals;
  }

  /** Keeps up with who runs, and checks whether the plan keeps its bounds. */
  #follow(plan: StepPlan): void {
    const { stepTokensMax, prefillChunkMax, runningMax, isPrefixReuse } = this.#limits;
    for (const id of plan.preempted) {
      this.#open.get(id)!.state = 'waiting';
      this.#decoding.delete(id);
    }
    for (const { id, isResumed, reusedTokens, sequence } of plan.admitted) {
      const request = this.#open.get(id);
      assert.ok(request !== undefined && request.state === 'waiting', `request ${id} is admitted`);
      request.state = 'running';
      request.sequence = sequence;
      request.lastProgressStep = this.#result.steps;
      if (isResumed) this.#result.resumed++;
      assert.ok(reusedTokens < request.text.tokens.length, 'nothing left to compute');
      if (!isPrefixReuse) assert.equal(reusedTokens, 0);
    }
    for (const id of plan.stuck) this.#checkStuck(this.#open.get(id)!);
    this.#checkPreempted(plan);
    const total = plan.rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
    assert.ok(total <= stepTokensMax, `${total} rows`);
    assert.ok(this.#scheduler.stats.running <= runningMax);
    assert.ok(this.#scheduler.stats.cellsCached <= this.#limits.keptCellsMax, 'too many cells are kept');
    this.#result.held += this.#scheduler.stats.held;
    const isAnyDecoding = plan.rows.some((row) => this.#remaining(row) === 1);
    for (const row of plan.rows) {
      const request = this.#open.get(row.requestId);
      assert.equal(request?.state, 'running', `a row for request ${row.requestId}, which does not run`);
      assert.equal(request!.adapter, plan.adapter, 'two adapters in a step');
      assert.equal(request!.sequence, row.sequence, 'a request has changed its sequence');
      const isPrefill = this.#remaining(row) > 1;
      if (isPrefill && isAnyDecoding) assert.ok(row.tokens.length <= prefillChunkMax, 'too long a chunk');
      request!.lastProgressStep = this.#result.steps;
    }
    this.#checkProgress(plan);
  }

  #remaining({ requestId, firstPosition }: PlanRow): number {
    return this.#open.get(requestId)!.text.tokens.length - firstPosition;
  }

  #checkStuck(request: SimulatedRequest): void {
    const { length } = request.text.tokens;
    assert.ok(length > this.#limits.cellCount, `request ${request.id} is stuck with ${length} tokens`);
    this.#endRequest(request, 'stuck');
  }

  #checkPreempted({ preempted, admitted }: StepPlan): void {
    const begun = new Set(admitted.map(({ id }) => id));
    for (const id of preempted) {
      const victim = this.#open.get(id)!;
      for (const other of this.#open.values()) {
        if (other.state !== 'running' || begun.has(other.id) || begun.has(id)) continue;
        assert.ok(isSenior(other, victim), `${id} is preempted before its junior ${other.id}`);
      }
    }
    if (this.#limits.isPrefixReuse) return;
    // Without reuse nobody holds back, so nobody is overtaken.
    for (const { id } of admitted) {
      for (const other of this.#open.values()) {
        const isPassed = other.state === 'waiting' && isSenior(other, this.#open.get(id)!);
        assert.ok(!isPassed || preempted.includes(other.id), `${id} has overtaken ${other.id}`);
      }
    }
  }

  /** A request that decodes has a row in each step of its adapter but those of prompts alone, and each adapter has its turn. */
  #checkProgress({ adapter, rows }: StepPlan): void {
    const isAlone = this.#checkApart(adapter, rows);
    const served = new Set(rows.map(({ requestId }) => requestId));
    for (const id of this.#decoding) {
      const request = this.#open.get(id)!;
      if (request.adapter === adapter && !isAlone) {
        assert.ok(served.has(id), `request ${id} decodes and has no row`);
      }
      const waited = this.#result.steps - request.lastProgressStep;
      const waitedMax = (this.#source.adapterCount - 1) * ADAPTER_TURN_STEPS + 1;
      assert.ok(waited <= waitedMax, `request ${id} decodes and waited ${waited} steps`);
    }
  }

  /** Whether prompts have the step to themselves while others decode: only where they are many, and never twice in a row. */
  #checkApart(adapter: number, rows: readonly PlanRow[]): boolean {
    const prompts = rows.filter((row) => this.#remaining(row) > 1);
    const promptRows = prompts.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const isMany = promptRows >= this.#limits.apartRowsMin;
    const isMixed = prompts.length > 0 && prompts.length < rows.length;
    assert.ok(!(isMany && isMixed), `${promptRows} rows of prompts beside decodes`);
    const isAnyDecoding = [...this.#decoding].some((id) => this.#open.get(id)!.adapter === adapter);
    const isAlone = isMany && isAnyDecoding;
    assert.ok(!(isAlone && this.#aloneLast.has(adapter)), 'prompts have two steps to themselves');
    if (isAlone) {
      this.#aloneLast.add(adapter);
      this.#result.apart++;
    } else this.#aloneLast.delete(adapter);
    return isAlone;
  }

  #checkCache(plan: StepPlan): void {
    assert.equal(this.#cache.usedCount, this.#scheduler.stats.cellsUsed, 'the books are wrong');
    assert.ok(this.#scheduler.stats.sequencesUsed <= this.#limits.sequenceCount);
    const sequences = this.#cache.readSequences();
    const seen = new Set<number>();
    for (const { requestId, sequence, tokens, firstPosition } of plan.rows) {
      assert.ok(!seen.has(sequence), `two requests on sequence ${sequence}`);
      seen.add(sequence);
      const known = this.#open.get(requestId)!.text.tokens.slice(0, firstPosition);
      assert.deepEqual(sequences.get(sequence), [...known, ...tokens]);
    }
  }

  #answer(row: PlanRow, contexts: readonly number[], results: Map<number, StepResult>): void {
    const request = this.#open.get(row.requestId)!;
    if (row.outputs === 'none') return;
    const { salt, expected, generated } = request;
    const tokens: number[] = [];
    let isShifted = false;
    for (let i = row.outputs === 'all' ? 0 : row.tokens.length - 1; i < row.tokens.length; i++) {
      const token = nextToken(contexts[i]!, salt);
      assert.equal(
        token,
        expected[generated.length],
        `request ${request.id} does not say what it says alone`,
      );
      tokens.push(token);
      generated.push(token);
      isShifted = request.text.push(token);
      if (generated.length === expected.length || row.tokens[i + 1] !== token) break;
    }
    const isFinished = generated.length === expected.length;
    results.set(row.requestId, { tokens, isFinished });
    this.#decoding.add(request.id);
    if (isFinished) this.#endRequest(request, 'finished');
    else if (isShifted) {
      // It has left its sequence and begins again.
      request.state = 'waiting';
      this.#decoding.delete(request.id);
    }
  }

  #checkSenior({ rows }: StepPlan): void {
    let senior: SimulatedRequest | undefined;
    for (const request of this.#open.values()) {
      if (senior === undefined || isSenior(request, senior)) senior = request;
    }
    const id = senior?.id ?? -1;
    if (id !== this.#seniorId || rows.some(({ requestId }) => requestId === id)) {
      this.#seniorId = id;
      this.#seniorSince = this.#result.steps;
    }
    assert.ok(this.#result.steps - this.#seniorSince < SENIOR_STEPS_MAX, `request ${id} starves`);
  }

  #endRequest(request: SimulatedRequest, how: 'finished' | 'cancelled' | 'failed' | 'stuck'): void {
    assert.ok(this.#open.delete(request.id), `request ${request.id} ends twice`);
    request.state = 'ended';
    this.#decoding.delete(request.id);
    this.#result[how]++;
    this.#source.remember(request);
  }
}

function isSenior(one: SimulatedRequest, other: SimulatedRequest): boolean {
  return one.priority === other.priority ? one.id < other.id : one.priority < other.priority;
}
