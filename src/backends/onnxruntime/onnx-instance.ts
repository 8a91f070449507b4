// Runs batches on one session: bind inputs, run, split outputs. Short runs are made on the event loop, long ones
// on a thread, so that the host goes on answering. Everything native that it makes, it releases.

import { performance } from 'node:perf_hooks';
import type { StateTensor } from '../../backend/initial-states.ts';
import type { BackendInstance, ExecuteBatch, ExecuteReply, ExecuteResult } from '../../backend/sdk.ts';
import { SequenceStates } from '../../backend/sequence-states.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { internal, StatusError } from '../../domain/status.ts';
import { InputBinding } from './input-binding.ts';
import { NativeWords } from './native-memory.ts';
import { check, type OrtLibrary, statusError } from './ort-library.ts';
import { OutputBinding } from './output-binding.ts';
import { rowCountOf } from './output-split.ts';
import type { SessionSignature } from './session-signature.ts';
import { StateBinding, type Stretch } from './state-binding.ts';
import { makeTensorTable } from './tensor-table.ts';

/** A run that takes longer than this on average goes to a thread, whose hand-over costs some 0.07 ms. */
const SYNC_RUN_MS_MAX = 2;

/** Weight of the newest run in the moving average. */
const AVERAGE_WEIGHT = 0.2;

const SHRINKAGE_KEY = 'memory.enable_memory_arena_shrinkage';

/** What older and newer libraries say when a value of ours has not the shape that the model came to. */
const SHAPE_DIFFERS = /OrtValue shape verification failed|output OrtValue provided for output/;

/** One execution from its first binding to its answer. */
interface Execution {
  readonly batch: ExecuteBatch;
  readonly rowCount: number;
  readonly startMs: number;
  boundMs: number;
  errors: (StatusError | undefined)[] | undefined;
  isCancelled: boolean;
}

export interface OnnxInstanceOptions {
  readonly session: bigint;
  readonly config: ModelConfig;
  readonly signature: SessionSignature;
  /** One per `sequence_batching.state`. */
  readonly initialStates: readonly StateTensor[];
}

export class OnnxInstance implements BackendInstance {
  readonly #library: OrtLibrary;
  readonly #session: bigint;
  readonly #config: ModelConfig;
  readonly #runOptions: bigint;
  readonly #inputs: InputBinding;
  readonly #outputs: OutputBinding;
  readonly #isBatching: boolean;
  /** Undefined where the model keeps no state. */
  readonly #states: StateBinding | undefined;
  /** The first run is of unknown length, so it is made on a thread. */
  #averageRunMs = Number.POSITIVE_INFINITY;
  /** The execution that is on a thread now. */
  #threaded: Execution | undefined;
  #isClosed = false;

  constructor(library: OrtLibrary, { session, config, signature, initialStates }: OnnxInstanceOptions) {
    const { api } = library;
    this.#library = library;
    this.#session = session;
    this.#config = config;
    this.#isBatching = config.max_batch_size > 0;
    const table = makeTensorTable(config, signature);
    this.#inputs = new InputBinding(library, config, table);
    this.#outputs = new OutputBinding(library, {
      table,
      memoryInfo: this.#inputs.memoryInfo,
      isBatching: this.#isBatching,
    });
    if (initialStates.length > 0) {
      const states = new SequenceStates(config.name, initialStates);
      this.#states = new StateBinding(states, { table, isBatching: this.#isBatching });
    }
    const out = new NativeWords(1);
    check(api, api.CreateRunOptions(out.address));
    this.#runOptions = out.pointer(0);
    const shrinkage = config.parameters[SHRINKAGE_KEY]?.string_value;
    if (shrinkage !== undefined)
      check(api, api.AddRunConfigEntry(this.#runOptions, SHRINKAGE_KEY, shrinkage));
  }

  execute(batch: ExecuteBatch): ExecuteReply | Promise<ExecuteReply> {
    if (this.#states === undefined) return this.#executeWhole(batch);
    const { requests } = batch;
    const first = this.#states.beginStretch(requests, 0);
    if (first.error === undefined && first.end === requests.length) return this.#executeWhole(batch);
    return this.#executeApart(batch, first);
  }

  /** One stretch after another: each begins when the one before it has left its states. */
  async #executeApart(batch: ExecuteBatch, first: Stretch): Promise<ExecuteReply> {
    const { requests } = batch;
    const replies: ExecuteReply[] = [];
    let stretch = first;
    for (let from = 0; from < requests.length; from = stretch.end) {
      if (from > 0) stretch = this.#states!.beginStretch(requests, from);
      const { end, error } = stretch;
      const part: ExecuteBatch = { ...batch, requests: requests.slice(from, end) };
      const isOver = this.#isClosed || replies.at(-1)?.results.some(isCancelled) === true;
      if (error !== undefined || isOver) replies.push(failedReply(part, error ?? cancelled()));
      else replies.push(await this.#executeWhole(part));
    }
    return joinReplies(replies);
  }

  #executeWhole(batch: ExecuteBatch): ExecuteReply | Promise<ExecuteReply> {
    const startMs = performance.now();
    let rowCount = 0;
    for (const request of batch.requests) rowCount += rowCountOf(request);
    const execution: Execution = {
      batch,
      rowCount,
      startMs,
      boundMs: startMs,
      errors: undefined,
      isCancelled: false,
    };
    try {
      this.#bind(execution);
    } catch (error) {
      return this.#failAll(execution, StatusError.from(error));
    }
    execution.boundMs = performance.now();
    const { errors } = execution;
    if (errors?.every((error) => error !== undefined)) return this.#failAll(execution, undefined);
    if (this.#averageRunMs <= SYNC_RUN_MS_MAX || !this.#library.canCallAsync) {
      return this.#finish(execution, this.#run());
    }
    return this.#runOnThread(execution);
  }

  cancel(batchId: number): void {
    const execution = this.#threaded;
    if (execution === undefined || execution.batch.id !== batchId) return;
    execution.isCancelled = true;
    const { api } = this.#library;
    check(api, api.RunOptionsSetTerminate(this.#runOptions));
  }

  /** While a run is on a thread its session must stay; it is stopped, and released once it has returned. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#threaded !== undefined) this.cancel(this.#threaded.batch.id);
    else this.#releaseAll();
  }

  #bind(execution: Execution): void {
    const { batch, rowCount } = execution;
    if (!this.#isBatching && batch.requests.length !== 1) {
      throw internal(`batch size ${batch.requests.length} for '${this.#config.name}', max allowed is 0`);
    }
    execution.errors = this.#inputs.bind(batch, rowCount);
    this.#states?.bind(this.#inputs, batch.requests, rowCount);
    this.#outputs.bind(batch.requests, rowCount);
  }

  #run(): bigint | null {
    const inputs = this.#inputs;
    const outputs = this.#outputs;
    return this.#library.api.Run(
      this.#session,
      this.#runOptions,
      inputs.names.address,
      inputs.values.address,
      inputs.count,
      outputs.names.address,
      outputs.count,
      outputs.values.address,
    );
  }

  #runOnThread(execution: Execution): Promise<ExecuteReply> {
    const inputs = this.#inputs;
    const outputs = this.#outputs;
    this.#threaded = execution;
    return new Promise((resolve, reject) => {
      const settle = (error: Error | null, status: bigint | null): void => {
        this.#threaded = undefined;
        const { api } = this.#library;
        try {
          if (execution.isCancelled) check(api, api.RunOptionsUnsetTerminate(this.#runOptions));
          if (error !== null) resolve(this.#failAll(execution, StatusError.from(error)));
          else resolve(this.#finish(execution, status));
        } catch (reason) {
          reject(reason);
        } finally {
          if (this.#isClosed) this.#releaseAll();
        }
      };
      this.#library.api.Run.async(
        this.#session,
        this.#runOptions,
        inputs.names.address,
        inputs.values.address,
        inputs.count,
        outputs.names.address,
        outputs.count,
        outputs.values.address,
        settle,
      );
    });
  }

  #finish(execution: Execution, status: bigint | null): ExecuteReply {
    const { batch, rowCount } = execution;
    if (status !== null) {
      const error = statusError(this.#library.api, status);
      if (execution.isCancelled) return this.#failAll(execution, cancelled());
      if (!SHAPE_DIFFERS.test(error.message) || !this.#outputs.forgetFixedShapes()) {
        return this.#failAll(execution, error);
      }
      this.#outputs.abandon();
      this.#outputs.bind(batch.requests, rowCount);
      return this.#finish(execution, this.#run());
    }
    const ranMs = performance.now();
    this.#noteRun(ranMs - execution.boundMs);
    this.#inputs.release();
    const outputs = this.#outputs;
    if (execution.isCancelled) return this.#failAll(execution, cancelled());
    try {
      const { results, held } = outputs.read(batch.requests, rowCount);
      const { errors } = execution;
      this.#states?.advance(batch.requests, results, errors);
      return {
        results: errors === undefined ? results : results.map((result, i) => errors[i] ?? result),
        computeInputNs: toNs(execution.boundMs - execution.startMs),
        computeInferNs: toNs(ranMs - execution.boundMs),
        computeOutputNs: toNs(performance.now() - ranMs),
        release: () => outputs.giveBack(held),
      };
    } catch (error) {
      return this.#failAll(execution, StatusError.from(error));
    }
  }

  /** Without `error`, each request has failed for a reason of its own. */
  #failAll(execution: Execution, error: StatusError | undefined): ExecuteReply {
    this.#inputs.release();
    this.#outputs.abandon();
    const { batch, errors, startMs, boundMs } = execution;
    this.#states?.end(batch.requests);
    return {
      results: batch.requests.map((_, i) => errors?.[i] ?? error ?? internal('request failed')),
      computeInputNs: toNs(boundMs - startMs),
      computeInferNs: toNs(performance.now() - boundMs),
      computeOutputNs: 0,
    };
  }

  #noteRun(runMs: number): void {
    const average = this.#averageRunMs;
    this.#averageRunMs = Number.isFinite(average) ? average + AVERAGE_WEIGHT * (runMs - average) : runMs;
  }

  #releaseAll(): void {
    const { api } = this.#library;
    this.#inputs.release();
    this.#outputs.abandon();
    this.#outputs.close();
    this.#inputs.close();
    api.ReleaseRunOptions(this.#runOptions);
    api.ReleaseSession(this.#session);
  }
}

/** Triton answers a cancelled request with the code alone. */
function cancelled(): StatusError {
  return new StatusError('CANCELLED', '');
}

function isCancelled(result: ExecuteResult): boolean {
  return result instanceof StatusError && result.code === 'CANCELLED';
}

/** What was not executed. */
function failedReply(batch: ExecuteBatch, error: StatusError): ExecuteReply {
  return {
    results: batch.requests.map(() => error),
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
  };
}

function joinReplies(replies: readonly ExecuteReply[]): ExecuteReply {
  const sum = (of: (reply: ExecuteReply) => number) => replies.reduce((total, reply) => total + of(reply), 0);
  return {
    results: replies.flatMap((reply) => reply.results),
    computeInputNs: sum((reply) => reply.computeInputNs),
    computeInferNs: sum((reply) => reply.computeInferNs),
    computeOutputNs: sum((reply) => reply.computeOutputNs),
    release: () => {
      for (const reply of replies) reply.release?.();
    },
  };
}

function toNs(ms: number): number {
  return Math.max(0, Math.round(ms * 1e6));
}
