// One loaded version of a model: its frozen tables, its instances, its scheduler and its statistics. Requests
// enter through `infer` and leave through their sink; everything else is read-only after load.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { InferResponse } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { StatusError, unavailable } from '../../domain/status.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import type { Instance } from '../../instance/instance.ts';
import type { ReceivedOutput, ReceivedOutputs } from '../../instance/result-codec.ts';
import type { Clock } from '../../lib/clock.ts';
import type { InferCall } from '../infer.ts';
import { createScheduler } from '../scheduler/create-scheduler.ts';
import type { BatchTiming, Entry, EntryOwner, ExecutedBatch } from '../scheduler/entry.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import { toSequenceRules } from '../scheduler/sequence/sequence-policy.ts';
import type { FailureReason } from '../stats/model-metrics.ts';
import type { ModelStats } from '../stats/model-stats.ts';
import { type RequestRules, validateRequest } from '../validate.ts';
import type { Labels } from './labels.ts';
import { encodeRequestInfo } from './request-info.ts';
import type { ServedModel, UnloadOptions } from './served-model.ts';
import {
  createTensorTable,
  type InputSpec,
  type OutputSpec,
  reshapeTo,
  type TensorTable,
} from './tensor-table.ts';

export interface ModelOptions {
  readonly config: ModelConfig;
  readonly version: number;
  readonly instances: readonly Instance[];
  readonly labels: Labels;
  readonly stats: ModelStats;
  readonly clock: Clock;
  readonly delayedStartCount: number;
  readonly delayedBacklogCount: number;
}

const NS_PER_MS = 1e6;
const NO_OUTPUTS: ReceivedOutputs = { outputs: [], parameters: undefined };

export class Model implements ServedModel, EntryOwner {
  readonly config: ModelConfig;
  readonly name: string;
  readonly version: number;
  readonly maxBatchSize: number;
  readonly isDecoupled: boolean;
  readonly tensors: TensorTable;
  readonly stats: ModelStats;
  readonly instances: readonly Instance[];
  readonly #labels: Labels;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  #unloaded: Promise<void> | undefined;
  readonly #isRequestInfoWanted: boolean;
  readonly #rules: RequestRules;

  constructor(options: ModelOptions) {
    const { config } = options;
    this.config = config;
    this.name = config.name;
    this.version = options.version;
    this.maxBatchSize = config.max_batch_size;
    this.isDecoupled = config.model_transaction_policy?.decoupled ?? false;
    this.tensors = createTensorTable(config);
    this.stats = options.stats;
    this.instances = options.instances;
    this.#labels = options.labels;
    this.#isRequestInfoWanted = options.instances.some((instance) => instance.isRequestInfoWanted);
    this.#clock = options.clock;
    this.#rules = {
      modelName: this.name,
      maxBatchSize: this.maxBatchSize,
      tensors: this.tensors,
      sequence: toSequenceRules(config),
    };
    this.#scheduler = createScheduler({
      config,
      clock: options.clock,
      owner: this,
      instances: options.instances,
      delayedStartCount: options.delayedStartCount,
      delayedBacklogCount: options.delayedBacklogCount,
    });
  }

  get inputs(): readonly InputSpec[] {
    return this.tensors.inputs;
  }

  get outputs(): readonly OutputSpec[] {
    return this.tensors.outputs;
  }

  /** True while at least one instance can take requests. */
  get isHealthy(): boolean {
    return this.instances.some((instance) => instance.state === 'ready');
  }

  /** Models in Python may have an opinion of their own; all instances that have one must agree. */
  askReady(): Promise<boolean> | undefined {
    const asked = this.instances.flatMap((instance) => instance.askReady() ?? []);
    if (asked.length === 0) return undefined;
    return Promise.all(asked).then((answers) => answers.every((isReady) => isReady));
  }

  /** Why no instance runs and none could be restarted for a while; undefined when one may come back soon. */
  get failure(): StatusError | undefined {
    const isFailed = this.instances.every((instance) => instance.state === 'failed');
    return isFailed ? this.instances[0]?.lastError : undefined;
  }

  get openCount(): number {
    return this.#scheduler.openCount;
  }

  labelsOf(output: string): readonly string[] | undefined {
    return this.#labels.get(output);
  }

  /** The scheduler as the instances of this model see it. */
  get scheduler(): Scheduler {
    return this.#scheduler;
  }

  /** Throws when the request is refused; otherwise the sink gets the answer. */
  infer(call: InferCall): void {
    const startMs = this.#clock.nowMs();
    const { request, sink, trace } = call;
    if (call.ancestors !== undefined) this.#refuseToWaitForItself(call.ancestors);
    const valid = validateRequest(request, this.#rules);
    trace?.begin(this, request);
    trace?.mark('REQUEST_START', startMs);
    const entry: Entry = {
      request,
      sink,
      trace,
      ancestors: call.ancestors,
      sent: this.#isRequestInfoWanted
        ? { ...valid.sent, info: encodeRequestInfo(request, trace?.traceparent()) }
        : valid.sent,
      batchSize: valid.batchSize,
      batchKey: valid.batchKey,
      byteLength: valid.byteLength,
      startMs,
      queueStartMs: startMs,
      computeStartMs: startMs,
      deadlineMs: Number.POSITIVE_INFINITY,
      level: 0,
      isAnswered: false,
      payload: undefined,
      index: 0,
      isCounted: false,
      isPaused: false,
      held: undefined,
      isEnded: false,
      sequence: undefined,
    };
    this.#scheduler.enqueue(entry);
    trace?.mark('QUEUE_START', startMs);
    this.stats.pendingInc();
    call.cancellation?.onCancel(() => this.#scheduler.cancel(entry));
  }

  /**
   * A model that calls itself, directly or through others, while every instance of it already waits for this very call
   * would wait for ever. Decoupled models answer after their execution, so they can take it.
   */
  #refuseToWaitForItself(ancestors: readonly object[]): void {
    if (this.isDecoupled || !this.instances.every((instance) => ancestors.includes(instance))) return;
    throw unavailable(
      `model '${this.name}' is called while all of its ${this.instances.length} instances wait for this call; more instances (instance_group) would let it run`,
    );
  }

  entryStarted(entry: Entry): void {
    this.stats.pendingDec();
    entry.trace?.mark('COMPUTE_START', entry.computeStartMs);
  }

  entryRequeued(): void {
    this.stats.pendingInc();
  }

  succeed(entry: Entry, result: ReceivedOutputs, batch: ExecutedBatch): void {
    this.executed(entry, batch);
    const response = this.#toResponse(entry, result);
    entry.trace?.response(response);
    entry.trace?.mark('REQUEST_END');
    entry.sink.send(response, true);
    // Traces and sequences are spared the proof.
    if (batch.areInputsSent === true && entry.trace === undefined && entry.sequence === undefined) {
      entry.sink.own?.(result.lease);
    }
    entry.sink.finish();
  }

  respond(entry: Entry, result: ReceivedOutputs | StatusError | undefined, isFinal: boolean): boolean {
    if (result instanceof StatusError) return entry.sink.sendError(result, isFinal);
    const response = this.#toResponse(entry, result ?? NO_OUTPUTS);
    entry.trace?.response(response);
    return entry.sink.send(response, isFinal);
  }

  finish(entry: Entry): void {
    entry.trace?.mark('REQUEST_END');
    entry.sink.finish();
  }

  executed(entry: Entry, timing: BatchTiming): void {
    entry.isCounted = true;
    if (entry.trace !== undefined) markCompute(entry.trace, entry.computeStartMs, timing);
    const requestNs = (this.#clock.nowMs() - entry.startMs) * NS_PER_MS;
    this.stats.recordSuccess(
      entry.batchSize,
      requestNs,
      (entry.computeStartMs - entry.queueStartMs) * NS_PER_MS,
      timing.computeInputNs,
      timing.computeInferNs,
      timing.computeOutputNs,
    );
  }

  fail(entry: Entry, error: StatusError, reason: FailureReason): void {
    if (entry.payload === undefined) this.stats.pendingDec();
    if (!entry.isCounted) {
      entry.isCounted = true;
      this.stats.recordFailure(reason, (this.#clock.nowMs() - entry.startMs) * NS_PER_MS);
    }
    entry.trace?.mark('REQUEST_END');
    entry.sink.fail(error);
  }

  batchExecuted(batchSize: number, timing: BatchTiming): void {
    const computeNs = timing.computeInputNs + timing.computeInferNs + timing.computeOutputNs;
    this.stats.recordExecution(
      batchSize,
      timing.computeInputNs,
      timing.computeInferNs,
      timing.computeOutputNs,
      this.#clock.wallMs() - computeNs / NS_PER_MS,
    );
  }

  /** Ends the instances once nothing is open; new requests are refused from now on. May be asked for twice. */
  unload(options?: UnloadOptions): Promise<void> {
    this.#unloaded ??= this.#drainAndStop(options?.isServerExit === true);
    return this.#unloaded;
  }

  async #drainAndStop(areSequencesAwaited: boolean): Promise<void> {
    await this.#scheduler.drain({ areSequencesAwaited });
    await Promise.all(this.instances.map((instance) => instance.stop()));
    this.stats.remove();
  }

  /** For a server that must exit now. */
  abandon(error: StatusError): void {
    this.#scheduler.failAll(error);
    for (const instance of this.instances) instance.kill();
  }

  #toResponse(entry: Entry, result: ReceivedOutputs): InferResponse {
    return {
      modelName: this.name,
      modelVersion: this.version,
      id: entry.request.id,
      parameters: result.parameters,
      outputs: result.outputs.map((output) => this.#toOutput(output)),
    };
  }

  #toOutput(output: ReceivedOutput): OutputTensor {
    const spec = this.tensors.outputs[output.index]!;
    const shape =
      spec.reshape === undefined
        ? output.shape
        : reshapeTo(output.shape, {
            from: spec.reshape,
            to: spec.dims,
            batchDims: this.maxBatchSize > 0 ? 1 : 0,
          });
    return {
      name: spec.name,
      datatype: output.datatype ?? spec.datatype,
      shape,
      data: output.data,
      byteLength: output.byteLength,
    };
  }
}

/** The host measures how long its parts took; they lie one after another up to now. */
function markCompute(trace: RequestTrace, startMs: number, timing: BatchTiming): void {
  const inputEndMs = startMs + timing.computeInputNs / NS_PER_MS;
  const outputStartMs = inputEndMs + timing.computeInferNs / NS_PER_MS;
  trace.mark('COMPUTE_INPUT_END', inputEndMs);
  trace.mark('COMPUTE_OUTPUT_START', outputStartMs);
  trace.mark('COMPUTE_END', outputStartMs + timing.computeOutputNs / NS_PER_MS);
}
