// The loop of the LLM engine: schedule → execute → update, one step after another as long as there is work. Requests join
// and leave at every step. Decisions are the scheduler's, numbers are libllama's; here they meet. The news of a step are told
// when the next one begins.

import { setImmediate } from 'node:timers/promises';
import { internal, StatusError, unavailable } from '../../../domain/status.ts';
import type { LlamaContext } from '../library/context.ts';
import type { SchedulerLimits, SchedulerStats, StepPlan, StepResult } from '../scheduler/step-plan.ts';
import { SchedulerRefusal } from '../scheduler/step-plan.ts';
import { StepScheduler } from '../scheduler/step-scheduler.ts';
import type { Choice } from './choice.ts';
import { DecodePlaces } from './decode-place.ts';
import type { Drafter } from './drafter.ts';
import { type Generation, isOver } from './generation.ts';
import { Linger } from './linger.ts';
import { type Proposals, propose } from './propose.ts';
import { refused, stuck } from './refusals.ts';
import type { SamplerPool } from './sampler-pool.ts';
import type { SideContextOptions } from './side-context.ts';
import { StepBatch } from './step-batch.ts';
import { StepPace } from './step-pace.ts';

export interface StepReport {
  readonly durationMs: number;
  /** Sequences that got a token, and those tokens: more than one each where proposals were accepted. */
  readonly sequences: number;
  readonly tokens: number;
  readonly stats: SchedulerStats;
  readonly statsBefore: SchedulerStats;
}

type StepWork = Pick<StepReport, 'durationMs' | 'sequences' | 'tokens'>;

export interface EngineOptions {
  readonly context: LlamaContext;
  /** Where long prompts are computed; undefined: with the others. */
  readonly side?: SideContextOptions | undefined;
  readonly limits: SchedulerLimits;
  readonly adapters: readonly bigint[];
  /** Greedy tokens are chosen on the device. */
  readonly isDeviceSampling: boolean;
  /** Chooses tokens on other threads. */
  readonly pool?: SamplerPool | undefined;
  readonly drafter: Drafter | undefined;
  readonly draftTokens: number;
  /** With more sequences than this a step is full without proposals. */
  readonly draftSequencesMax: number;
  /** Whether requests run in other contexts of the same device. */
  isShared?(): boolean;
  onStep(report: StepReport): void;
  warn(message: string): void;
}

interface Running {
  readonly id: number;
  readonly generation: Generation;
  readonly choice: Choice;
  sequence: number;
  isDecoding: boolean;
}

export class Engine {
  readonly #options: EngineOptions;
  #scheduler: StepScheduler;
  readonly #running = new Map<number, Running>();
  /** Generations with something to send, in the order in which it came up. */
  readonly #news = new Set<Generation>();
  readonly #started = new Set<Generation>();
  readonly #linger = new Linger();
  readonly #places: DecodePlaces;
  /** A CPU's steps are small as they are. */
  readonly #pace: StepPace | undefined;
  #batch: StepBatch;
  #stats: SchedulerStats;
  #nextId = 1;
  #stepMs = 0;
  /** What the last step has done, until it is reported. */
  #untold: StepWork | undefined;
  #wake: (() => void) | undefined;
  #isClosed = false;
  readonly #loop: Promise<void>;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#scheduler = new StepScheduler(options.limits);
    this.#batch = newBatch(options);
    this.#places = new DecodePlaces(options.context.hasDevice);
    this.#pace = options.context.hasDevice ? new StepPace() : undefined;
    this.#stats = this.#scheduler.stats;
    this.#loop = this.#run();
  }

  /** Texts that run or wait. */
  get openCount(): number {
    return this.#running.size;
  }

  /** Tokens of the prompt whose cells are here. */
  reusableTokens({ adapter, prompt }: Generation): number {
    return this.#scheduler.reusableTokens(adapter, prompt);
  }

  /** Throws when the queue is full or the prompt can never fit. */
  submit(generation: Generation): void {
    if (this.#isClosed) throw unavailable('the model is being unloaded');
    const ids: number[] = [];
    try {
      for (const choice of generation.choices) {
        const id = this.#nextId++;
        this.#scheduler.add({
          id,
          prompt: generation.prompt,
          priority: generation.priority,
          adapter: generation.adapter,
          maxTokens: generation.maxTokens,
        });
        ids.push(id);
        this.#running.set(id, { id, generation, choice, sequence: -1, isDecoding: false });
      }
    } catch (thrown) {
      for (const id of ids) this.#drop(id);
      throw thrown instanceof SchedulerRefusal ? refused(thrown) : thrown;
    }
    this.#linger.noteArrival();
    this.#wake?.();
  }

  /** Nobody waits for it any more; its cells are free at the next step. */
  cancel(generation: Generation): void {
    for (const { id, generation: owner } of [...this.#running.values()]) {
      if (owner === generation) this.#drop(id);
    }
    this.#news.delete(generation);
    this.#started.delete(generation);
    this.#wake?.();
  }

  /** Ends what runs with an error; resolves when no native call is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake?.();
    await this.#loop;
    this.#failAll(unavailable('the model is being unloaded'));
  }

  #drop(id: number): void {
    this.#running.delete(id);
    this.#scheduler.cancel(id);
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#step();
      } catch (thrown) {
        this.#reset(StatusError.from(thrown));
      }
    }
  }

  async #step(): Promise<void> {
    if (this.#linger.expected > 0) await this.#awaitSuccessors();
    const proposing = this.#propose();
    const plan = this.#scheduler.schedule(proposing && (await proposing), this.#pace?.rowsMax);
    if (plan === undefined) {
      this.#tellNews();
      // Who was cancelled has left without a step.
      this.#report({ durationMs: 0, sequences: 0, tokens: 0 });
      // When the news has left and nobody waits; the next request would.
      await setImmediate();
      this.#batch.applyOps(this.#scheduler.takeOps());
      if (this.#running.size === 0) await this.#idle();
      return;
    }
    this.#batch.applyMemory(plan, (id) => this.#running.get(id)?.choice);
    for (const id of plan.stuck) this.#fail(id, stuck(this.#options.limits.cellCount));
    for (const { id, reusedTokens } of plan.admitted) this.#begin(id, reusedTokens);
    for (const id of plan.preempted) {
      const preempted = this.#running.get(id);
      if (preempted !== undefined) preempted.isDecoding = false;
    }
    if (plan.rows.length === 0) {
      this.#scheduler.update(plan, new Map());
      return;
    }
    const startMs = performance.now();
    this.#batch.fill(plan);
    const shape = {
      rowCount: this.#batch.rowCount,
      isRepeated: this.#batch.isRepeated,
      isAlone: this.#running.size === 1,
      isShared: this.#options.isShared?.() ?? false,
    };
    const place = this.#places.choose(shape);
    // While a device computes there is time to tell the news; a CPU has all its cores in the decode.
    if (!this.#options.context.hasDevice) this.#tellNews();
    else if (place === 'here' && !shape.isRepeated) await this.#tellNewsNow();
    const decoding = this.#batch.decode(place);
    this.#tellNews();
    const code = await decoding;
    if (code !== 0)
      throw internal(`libllama could not decode a batch of ${plan.rows.length} rows (code ${code})`);
    this.#options.context.finishCompute();
    const results = this.#choose(plan);
    this.#scheduler.update(plan, results);
    this.#finish(results, startMs);
    this.#places.noteStep(shape, this.#stepMs);
  }

  /** Until a request comes or goes. */
  async #idle(): Promise<void> {
    if (this.#isClosed) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }

  async #awaitSuccessors(): Promise<void> {
    const windowMs = this.#linger.windowMs(this.#stepMs, this.#scheduler.stats);
    if (windowMs > 0) {
      this.#tellNews();
      const timer = setTimeout(() => {
        this.#linger.reset();
        this.#wake?.();
      }, windowMs);
      while (this.#linger.expected > 0 && !this.#isClosed) await this.#idle();
      clearTimeout(timer);
    }
    this.#linger.reset();
  }

  #propose(): Promise<Proposals | undefined> | undefined {
    if (this.#scheduler.isPromptsTurn) return undefined;
    return propose(
      [...this.#running.values()].filter(({ isDecoding }) => isDecoding),
      this.#options,
    );
  }

  #begin(id: number, cachedTokens: number): void {
    const generation = this.#running.get(id)?.generation;
    if (generation === undefined || this.#started.has(generation)) return;
    this.#started.add(generation);
    generation.onStarted(cachedTokens);
  }

  #choose({ rows }: StepPlan): Map<number, StepResult> {
    const results = new Map<number, StepResult>();
    for (const row of rows) {
      const running = this.#running.get(row.requestId);
      if (running === undefined) continue;
      running.sequence = row.sequence;
      running.isDecoding = row.outputs !== 'none';
    }
    this.#batch.chooseAll(
      rows,
      ({ requestId }) => this.#running.get(requestId)?.choice,
      ({ requestId }, result) => {
        if (result instanceof StatusError) this.#fail(requestId, result);
        else results.set(requestId, result);
      },
    );
    return results;
  }

  #finish(results: ReadonlyMap<number, StepResult>, startMs: number): void {
    let sequences = 0;
    let tokenCount = 0;
    for (const [id, { tokens, isFinished }] of results) {
      if (tokens.length === 0) continue;
      sequences++;
      tokenCount += tokens.length;
      const running = this.#running.get(id);
      if (running === undefined) continue;
      this.#news.add(running.generation);
      if (!isFinished) continue;
      this.#running.delete(id);
      // A device has more to lose by waiting than who comes a step later.
      if (!this.#options.context.hasDevice && isOver(running.generation)) this.#linger.noteEnd();
    }
    this.#stepMs = performance.now() - startMs;
    this.#pace?.noteStep(this.#batch.rowCount, this.#stepMs);
    this.#untold = { durationMs: this.#stepMs, sequences, tokens: tokenCount };
  }

  #report(done: StepWork): void {
    this.#untold = undefined;
    const { stats } = this.#scheduler;
    const statsBefore = this.#stats;
    this.#stats = stats;
    this.#options.onStep({ ...done, stats, statsBefore });
  }

  #tellNews(): void {
    if (this.#untold !== undefined) this.#report(this.#untold);
    const news = [...this.#news];
    this.#news.clear();
    for (const generation of news) {
      if (isOver(generation)) this.#started.delete(generation);
      try {
        generation.onNews();
      } catch (thrown) {
        // One that cannot be answered costs no other; and a step may be computing, which must not be left alone.
        this.cancel(generation);
        generation.onError(StatusError.from(thrown));
      }
    }
  }

  /** And has them leave: this thread will have no time for it. */
  async #tellNewsNow(): Promise<void> {
    if (this.#news.size === 0) return;
    this.#tellNews();
    await setImmediate();
  }

  #fail(id: number, error: StatusError): void {
    const generation = this.#running.get(id)?.generation;
    if (generation === undefined) return;
    this.cancel(generation);
    generation.onError(error);
  }

  #failAll(error: StatusError): void {
    this.#tellNews();
    for (const id of [...this.#running.keys()]) this.#fail(id, error);
  }

  /** After a failed decode nobody knows what is in the cells: all that runs is failed, and the cache begins anew. */
  #reset(error: StatusError): void {
    this.#options.warn(`the engine begins anew: ${error.message}`);
    this.#failAll(error);
    this.#options.context.clearCells();
    this.#scheduler = new StepScheduler(this.#options.limits);
    this.#batch = newBatch(this.#options);
    this.#stats = this.#scheduler.stats;
  }
}

function newBatch({ context, side, limits, isDeviceSampling, adapters, pool }: EngineOptions): StepBatch {
  const { sequenceCount } = limits;
  return new StepBatch(context, { sequenceCount, isDeviceSampling, adapters, pool, side });
}
