// One loaded version of a model: its frozen tables, its instances, its scheduler and its statistics. Requests
// enter through `infer` and leave through their sink; everything else is read-only after load.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferRequest, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import type { Instance } from '../../instance/instance.ts';
import type { ReceivedOutput } from '../../instance/response-frame.ts';
import type { Cancellation } from '../../lib/cancellation.ts';
import type { Clock } from '../../lib/clock.ts';
import { Batcher } from '../scheduler/batcher.ts';
import type { BatchTiming, Entry, EntryOwner } from '../scheduler/entry.ts';
import { toSchedulerPolicy } from '../scheduler/scheduler-policy.ts';
import type { FailureReason } from '../stats/model-metrics.ts';
import type { ModelStats } from '../stats/model-stats.ts';
import { validateRequest } from '../validate.ts';
import type { Labels } from './labels.ts';
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
}

const NS_PER_MS = 1e6;

export class Model implements ModelView, EntryOwner {
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
  readonly #batcher: Batcher;
  #unloaded: Promise<void> | undefined;
  readonly #rules: { modelName: string; maxBatchSize: number; tensors: TensorTable };

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
    this.#clock = options.clock;
    this.#rules = { modelName: this.name, maxBatchSize: this.maxBatchSize, tensors: this.tensors };
    this.#batcher = new Batcher({
      policy: toSchedulerPolicy(config),
      clock: options.clock,
      owner: this,
      instances: options.instances,
      defer: setImmediate,
      delayedStartCount: options.delayedStartCount,
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

  get openCount(): number {
    return this.#batcher.openCount;
  }

  labelsOf(output: string): readonly string[] | undefined {
    return this.#labels.get(output);
  }

  /** The scheduler as the instances of this model see it. */
  get batcher(): Batcher {
    return this.#batcher;
  }

  /** Throws when the request is refused; otherwise the sink gets the answer. */
  infer(request: InferRequest, sink: ResponseSink, cancellation: Cancellation | undefined): void {
    const startMs = this.#clock.nowMs();
    const valid = validateRequest(request, this.#rules);
    const entry: Entry = {
      request,
      sink,
      sent: valid.sent,
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
      release: undefined,
    };
    this.#batcher.enqueue(entry);
    this.stats.pendingInc();
    cancellation?.onCancel(() => this.#batcher.cancel(entry));
  }

  entryStarted(): void {
    this.stats.pendingDec();
  }

  succeed(entry: Entry, outputs: readonly ReceivedOutput[], timing: BatchTiming): void {
    const requestNs = (this.#clock.nowMs() - entry.startMs) * NS_PER_MS;
    this.stats.recordSuccess(
      entry.batchSize,
      requestNs,
      (entry.computeStartMs - entry.queueStartMs) * NS_PER_MS,
      timing.computeInputNs,
      timing.computeInferNs,
      timing.computeOutputNs,
    );
    entry.sink.send({
      modelName: this.name,
      modelVersion: this.version,
      id: entry.request.id,
      parameters: undefined,
      outputs: outputs.map((output) => this.#toOutput(output)),
    });
    entry.sink.finish();
  }

  fail(entry: Entry, error: StatusError, reason: FailureReason): void {
    if (entry.payload === undefined) this.stats.pendingDec();
    this.stats.recordFailure(reason, (this.#clock.nowMs() - entry.startMs) * NS_PER_MS);
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
  unload(): Promise<void> {
    this.#unloaded ??= this.#drainAndStop();
    return this.#unloaded;
  }

  async #drainAndStop(): Promise<void> {
    await this.#batcher.drain();
    await Promise.all(this.instances.map((instance) => instance.stop()));
    this.stats.remove();
  }

  /** For a server that must exit now. */
  abandon(error: StatusError): void {
    this.#batcher.failAll(error);
    for (const instance of this.instances) instance.kill();
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
      datatype: spec.datatype,
      shape,
      data: output.data,
      byteLength: output.byteLength,
    };
  }
}
