// A router as the catalog holds it: sends each request to one target, copies it to the shadows, counts both, and takes
// the weight of a canary away when its rule says so. Owns no instance; the targets validate, queue and execute.

import { ROUTER_PASSES_MAX } from '../../domain/limits.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import { type InferRequest, SEQUENCE_END, SEQUENCE_START } from '../../domain/request.ts';
import { invalidArgument, StatusError, unavailable, unsupported } from '../../domain/status.ts';
import type { Clock } from '../../lib/clock.ts';
import type { InferCall } from '../infer.ts';
import type { ServedModel } from '../model/served-model.ts';
import { createTensorTable } from '../model/tensor-table.ts';
import type { Catalog } from '../repository/catalog.ts';
import type { FailureReason } from '../stats/model-metrics.ts';
import type { ModelStats } from '../stats/model-stats.ts';
import type { RouterMemory } from './router-memory.ts';
import type { RouteOutcome, RouterMetrics } from './router-metrics.ts';
import type { RouterPolicy } from './router-policy.ts';
import { RouterSink, type RouterSinkOwner } from './router-sink.ts';
import { hasSameInputs, type RouterLog, RouterTarget } from './router-target.ts';
import { RouterTargets } from './router-targets.ts';
import { isSequence } from './sequence-homes.ts';
import { Shadow } from './shadow.ts';
import { shownConfig } from './shown-config.ts';

export interface RouterOptions {
  readonly config: ModelConfig;
  readonly version: number;
  readonly policy: RouterPolicy;
  readonly catalog: Catalog;
  readonly stats: ModelStats;
  readonly metrics: RouterMetrics;
  readonly clock: Clock;
  readonly log: RouterLog;
  /** A reload goes on with that of the router before it. */
  readonly memory: RouterMemory;
  /** Uniform in [0, 1). */
  random(): number;
}

const NS_PER_MS = 1e6;
const NO_TENSORS: readonly TensorSpec[] = [];

export class RouterModel implements ServedModel, RouterSinkOwner {
  readonly name: string;
  readonly version: number;
  readonly stats: ModelStats;
  readonly memory: RouterMemory;
  readonly wantedHeaders: readonly string[] | undefined;
  readonly isTargetReported: boolean;
  readonly #options: RouterOptions;
  readonly #targets: RouterTargets;
  readonly #shadows: readonly Shadow[];
  readonly #inputs: readonly TensorSpec[] | undefined;
  readonly #outputs: readonly TensorSpec[] | undefined;
  readonly #alone: readonly object[] = [this];
  #openCount = 0;
  #onIdle: (() => void) | undefined;
  #unloaded: Promise<void> | undefined;

  constructor(options: RouterOptions) {
    const { config, policy, metrics, catalog, clock, log, random } = options;
    this.#options = options;
    this.name = config.name;
    this.version = options.version;
    this.stats = options.stats;
    this.memory = options.memory;
    this.wantedHeaders = policy.wantedHeaders;
    this.isTargetReported = policy.isTargetReported;
    const targets = policy.targets.map(
      (target) => new RouterTarget(target, { catalog, series: metrics.target(target.name), log }),
    );
    this.#targets = new RouterTargets({ routerName: this.name, policy, targets, random });
    this.#shadows = policy.shadows.map((shadow) => {
      const series = metrics.shadow(shadow.name);
      const load = options.memory.shadowLoad(shadow.name);
      return new Shadow({ policy: shadow, series, catalog, clock, random, load });
    });
    const isDescribed = config.input.length > 0 || config.output.length > 0;
    const table = isDescribed ? createTensorTable(config) : undefined;
    this.#inputs = table?.inputs;
    this.#outputs = table?.outputs;
    metrics.beforeScrape(() => {
      for (const target of targets) target.series.isReady.set(target.find() === undefined ? 0 : 1);
    });
  }

  /** Tensors that the config leaves out are those of the first target that serves; weights are those that count now. */
  get config(): ModelConfig {
    const first = this.#targets.ofFirst((model) => model.config, undefined);
    return shownConfig(this.#options.config, this.#targets.all, first);
  }

  get inputs(): readonly TensorSpec[] {
    return this.#inputs ?? this.#targets.ofFirst((model) => model.inputs, NO_TENSORS);
  }

  get outputs(): readonly TensorSpec[] {
    return this.#outputs ?? this.#targets.ofFirst((model) => model.outputs, NO_TENSORS);
  }

  get maxBatchSize(): number {
    if (this.#inputs !== undefined) return this.#options.config.max_batch_size;
    return this.#targets.ofFirst((model) => model.maxBatchSize, 0);
  }

  get isDecoupled(): boolean {
    const given = this.#options.config.model_transaction_policy?.decoupled;
    return given ?? this.#targets.ofFirst((model) => model.isDecoupled, false);
  }

  labelsOf(output: string): readonly string[] | undefined {
    return this.#targets.ofFirst((model) => model.labelsOf(output), undefined);
  }

  get isHealthy(): boolean {
    return this.#targets.isHealthy;
  }

  get failure(): StatusError | undefined {
    return this.#targets.canServe ? undefined : this.#targets.absence();
  }

  /** A canary was rolled back: a load call brings its weight back even if no file has changed. */
  get isReloadWanted(): boolean {
    return this.#targets.hasRollback;
  }

  get openCount(): number {
    return this.#openCount;
  }

  infer(call: InferCall): void {
    if (this.#unloaded !== undefined) {
      throw unavailable(`router '${this.name}' has stopped accepting new inference requests`);
    }
    const ancestors = this.#pass(call.ancestors);
    const { request } = call;
    const target = this.#targets.forced(call) ?? this.#homeOf(request) ?? this.#targets.choose(call);
    const model = this.#modelOf(target);
    const startMs = this.#options.clock.nowMs();
    const batchSize = this.maxBatchSize > 0 ? (request.inputs[0]?.shape[0] ?? 1) : 1;
    const sink = new RouterSink(this, { target, inner: call.sink, startMs, batchSize });
    this.#begin(sink);
    try {
      model.infer({ ...call, sink, ancestors });
    } catch (thrown) {
      const error = StatusError.from(thrown);
      this.#end(sink, this.#isClientsFault(error, model) ? 'invalid' : outcomeOf(error));
      throw thrown;
    }
    this.#keepHome(request, target);
    for (const shadow of this.#shadows) shadow.offer(request, ancestors);
  }

  /** Routers and ensembles may lead back here; a request must not go round for ever. */
  #pass(ancestors: readonly object[] | undefined): readonly object[] {
    if (ancestors === undefined) return this.#alone;
    let passes = 0;
    for (const ancestor of ancestors) if (ancestor === this) passes++;
    if (passes < ROUTER_PASSES_MAX) return [...ancestors, this];
    throw invalidArgument(`router '${this.name}' leads back to itself through its targets`);
  }

  #modelOf(target: RouterTarget): ServedModel {
    const model = target.findForRequest();
    if (model === undefined) throw target.absence();
    if (!model.isDecoupled || this.isDecoupled) return model;
    throw unsupported(
      `target '${target.name}' of router '${this.name}' is decoupled, the router is not: 'model_transaction_policy { decoupled: true }' in its config makes it so`,
    );
  }

  /** A running sequence goes where it began. One that begins again may go elsewhere. */
  #homeOf({ correlationId, sequenceFlags }: InferRequest): RouterTarget | undefined {
    if (!isSequence(correlationId) || (sequenceFlags & SEQUENCE_START) !== 0) return undefined;
    const name = this.memory.homes.find(correlationId);
    return name === undefined ? undefined : this.#targets.named(name);
  }

  #keepHome({ correlationId, sequenceFlags }: InferRequest, target: RouterTarget): void {
    if (!isSequence(correlationId)) return;
    if ((sequenceFlags & SEQUENCE_END) !== 0) this.memory.homes.end(correlationId);
    else if ((sequenceFlags & SEQUENCE_START) !== 0 || this.memory.homes.find(correlationId) !== undefined) {
      this.memory.homes.keep(correlationId, target.name);
    }
  }

  /** Refused before it ran, as it would be by any other target. */
  #isClientsFault(error: StatusError, model: ServedModel): boolean {
    if (error.code !== 'INVALID_ARG') return false;
    return this.#targets.ofFirst((first) => hasSameInputs(model, first), false);
  }

  #begin(sink: RouterSink): void {
    this.#openCount++;
    const breach = sink.target.watch?.onBegin(sink, sink.startMs);
    if (breach !== undefined) this.#rollBack(sink.target, breach);
  }

  onEnd(sink: RouterSink, error: StatusError | undefined): void {
    const requestNs = (this.#options.clock.nowMs() - sink.startMs) * NS_PER_MS;
    if (error === undefined) this.stats.recordSuccess(sink.batchSize, requestNs, 0, 0, requestNs, 0);
    else this.stats.recordFailure(reasonOf(error), requestNs);
    this.#end(sink, outcomeOf(error));
  }

  #end(sink: RouterSink, outcome: RouteOutcome): void {
    const { target, startMs } = sink;
    const nowMs = this.#options.clock.nowMs();
    target.series.outcomes[outcome].inc();
    if (outcome === 'success') target.series.durationSecs.observe((nowMs - startMs) / 1000);
    if (target.watch !== undefined) {
      const isError = outcome === 'success' ? false : outcome === 'error' ? true : undefined;
      const breach = target.watch.onEnd(sink, nowMs, isError);
      if (breach !== undefined) this.#rollBack(target, breach);
    }
    this.#openCount--;
    if (this.#openCount === 0) this.#onIdle?.();
  }

  /** What a router that is being replaced finds out is no longer of interest. */
  #rollBack(target: RouterTarget, reason: string): void {
    if (this.#unloaded !== undefined) return;
    const stable = this.#targets.rollBack(target, reason);
    if (stable === undefined) return;
    this.#options.log.warn(`target '${target.name}' is rolled back to '${stable.name}': ${reason}`);
  }

  unload(): Promise<void> {
    this.#unloaded ??= this.#drain();
    return this.#unloaded;
  }

  async #drain(): Promise<void> {
    if (this.#openCount > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#options.metrics.release();
    this.stats.remove();
  }

  /** The targets answer what is open. */
  abandon(): void {}
}

function outcomeOf(error: StatusError | undefined): RouteOutcome {
  if (error === undefined) return 'success';
  return error.code === 'CANCELLED' ? 'cancelled' : 'error';
}

function reasonOf({ code }: StatusError): FailureReason {
  if (code === 'CANCELLED') return 'CANCELED';
  return code === 'UNAVAILABLE' ? 'REJECTED' : 'OTHER';
}
