// Threads that choose tokens side by side, for models on a GPU: there a step takes a few milliseconds, and one thread would
// need as long again for the tokens of many sequences. The main thread is one of the lanes, so that few requests wait for no
// other thread. Each sampler lives on one lane from its first token on. Made by llama-backend.ts, used by step-batch.ts.
// When a thread fails the pool is closed for good: requests that it had begun fail, others stay on the main thread.

import { Worker } from 'node:worker_threads';
import { internal, type StatusError, unavailable } from '../../../domain/status.ts';
import type { SamplerWorkerData } from './sampler-pool-worker.ts';
import {
  type SamplerMessage,
  type SamplerReport,
  type SamplerRow,
  type SamplerSpec,
  SamplerStep,
  WORKERS_MAX,
} from './sampler-step.ts';

export interface SamplerPoolOptions {
  readonly threadCount: number;
  readonly tokenCount: number;
  /** Requests that may be in one step. */
  readonly rowsMax: number;
  logError(message: string): void;
}

/**
 * A step's tokens take a few milliseconds, and a thread that throws says so: after this it has ended without a word (its heap
 * was full). Long enough for a machine that stands still for a while.
 */
const STEP_MS_MAX = 10_000;
const START_MS_MAX = 30_000;
const MAIN = 0;

/** The place of one choice's sampler. */
export class PooledSampler {
  readonly spec: SamplerSpec;
  readonly #pool: SamplerPool;
  /** Undefined before its first token; MAIN: it is the choice's own. */
  lane: number | undefined;
  id = -1;

  constructor(pool: SamplerPool, spec: SamplerSpec) {
    this.#pool = pool;
    this.spec = spec;
  }

  free(): void {
    this.#pool.release(this);
  }
}

export class SamplerPool {
  readonly #options: SamplerPoolOptions;
  readonly #step: SamplerStep;
  readonly #workers: Worker[] = [];
  /** Samplers of each lane; the worker of lane i is the one with index i - 1. */
  readonly #loads: number[];
  readonly #freeIds: number[] = [];
  #nextId = 0;
  #rows: SamplerRow[] = [];
  #isUnderWay = false;
  /** Why it is closed. */
  #failure: StatusError | undefined;

  private constructor(options: SamplerPoolOptions) {
    this.#options = options;
    this.#step = SamplerStep.create(options.rowsMax);
    this.#loads = Array.from({ length: options.threadCount + 1 }, () => 0);
  }

  /** Resolves when all threads are ready. */
  static async start(options: SamplerPoolOptions): Promise<SamplerPool> {
    if (options.threadCount > WORKERS_MAX) throw new RangeError(`more than ${WORKERS_MAX} threads`);
    const pool = new SamplerPool(options);
    try {
      await Promise.all(Array.from({ length: options.threadCount }, (_, i) => pool.#startWorker(i)));
    } catch (thrown) {
      await pool.close();
      throw thrown;
    }
    return pool;
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  create(spec: SamplerSpec): PooledSampler {
    return new PooledSampler(this, spec);
  }

  /** In the next step; the row of its token, undefined when the choice is to use its own sampler. */
  add(sampler: PooledSampler, output: number): number | undefined {
    if (sampler.lane === undefined) this.#assign(sampler);
    if (sampler.lane === MAIN) return undefined;
    return this.#rows.push({ worker: sampler.lane! - 1, id: sampler.id, output }) - 1;
  }

  /** The threads begin with the rows that were added; the logits must stay where they are until `finish`. */
  begin(logits: { address: bigint; outputCount: number }): void {
    if (this.#rows.length === 0 || !this.isOpen) return;
    this.#step.setRows(this.#rows, logits);
    this.#step.wake(new Set(this.#rows.map(({ worker }) => worker)));
    this.#isUnderWay = true;
  }

  /** Waits for what is under way. */
  finish(): void {
    this.#rows = [];
    if (!this.#isUnderWay) return;
    this.#isUnderWay = false;
    const isDone = this.#step.waitUntilDone(STEP_MS_MAX);
    if (!isDone) this.#lose(`no token in ${STEP_MS_MAX} ms`);
    else if (this.#step.isFailed) this.#lose('it threw');
  }

  /** After `finish`. */
  tokenOf(row: number): number | StatusError {
    return this.#failure ?? this.#step.tokenOf(row);
  }

  release(sampler: PooledSampler): void {
    const { lane, id } = sampler;
    if (lane === undefined) return;
    sampler.lane = undefined;
    this.#loads[lane]!--;
    if (lane === MAIN) return;
    this.#freeIds.push(id);
    this.#send(lane, { kind: 'end', id });
  }

  async close(): Promise<void> {
    this.#failure ??= unavailable('the model is being unloaded');
    this.#step.stop(this.#workers.length);
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #assign(sampler: PooledSampler): void {
    const lane = this.isOpen ? this.#loads.indexOf(Math.min(...this.#loads)) : MAIN;
    sampler.lane = lane;
    this.#loads[lane]!++;
    if (lane === MAIN) return;
    sampler.id = this.#freeIds.pop() ?? this.#nextId++;
    this.#send(lane, { kind: 'begin', id: sampler.id, spec: sampler.spec });
  }

  #send(lane: number, message: SamplerMessage): void {
    if (this.isOpen) this.#workers[lane - 1]!.postMessage(message);
  }

  #startWorker(index: number): Promise<void> {
    const workerData: SamplerWorkerData = {
      buffer: this.#step.buffer,
      worker: index,
      tokenCount: this.#options.tokenCount,
    };
    const worker = new Worker(new URL('./sampler-pool-worker.js', import.meta.url), { workerData });
    worker.unref();
    this.#workers.push(worker);
    const fail = (reason: string) => {
      this.#options.logError(`a sampler thread threw: ${reason}`);
      this.#lose(reason);
    };
    worker.on('message', (news: SamplerReport) => {
      if (news.kind === 'failed') fail(news.reason);
    });
    worker.on('error', (error) => fail(error.message));
    worker.on('exit', () => this.#lose('it ended'));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(unavailable('a sampler thread does not start')), START_MS_MAX);
      const settle = (act: () => void) => {
        clearTimeout(timer);
        act();
      };
      worker.once('message', () => settle(resolve));
      worker.once('error', (error) => settle(() => reject(error)));
      worker.once('exit', () => settle(() => reject(unavailable('a sampler thread ended as it started'))));
    });
  }

  #lose(reason: string): void {
    if (!this.isOpen) return;
    this.#failure = internal(`a sampler thread of the model has failed: ${reason}`);
    this.#options.logError(
      `a sampler thread has failed: ${reason}; from now on tokens are chosen on one thread`,
    );
    // Those that can still hear it end by themselves; `close` ends the others.
    this.#step.stop(this.#workers.length);
  }
}
