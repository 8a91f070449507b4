// One loaded version of an ensemble: requests enter through `infer` and go from step to step through other models, each
// found anew when its step starts, so that a reload is noticed at once. It has no instance and no queue of its own.
// Loaded by load-ensemble.ts; each request is an EnsembleRun.

import {
  ENSEMBLE_BYTES_MAX,
  ENSEMBLE_PASSES_MAX,
  ENSEMBLE_REQUESTS_MAX,
  ENSEMBLE_ROUTES_MAX,
} from '../../domain/limits.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { type Parameters, type ParameterValue, SEQUENCE_END, SEQUENCE_START } from '../../domain/request.ts';
import { StatusError, unavailable } from '../../domain/status.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import type { Clock } from '../../lib/clock.ts';
import { NumberTable } from '../../lib/number-table.ts';
import type { InferCall } from '../infer.ts';
import type { Labels } from '../model/labels.ts';
import type { ServedModel } from '../model/served-model.ts';
import {
  createTensorTable,
  type InputSpec,
  type OutputSpec,
  type TensorTable,
} from '../model/tensor-table.ts';
import type { ModelStats } from '../stats/model-stats.ts';
import { idPrefix, type RequestRules, validateRequest } from '../validate.ts';
import { EnsembleRun, type RunOwner } from './ensemble-run.ts';
import type { SequenceOverride } from './pass.ts';
import type { Plan, PlanStep } from './plan.ts';
import { createRoute, type Route } from './route.ts';
import { StepGates } from './step-gates.ts';
import { StepTrace } from './step-trace.ts';

/** What may be inside one ensemble at a time. */
export interface EnsembleLimits {
  readonly requestsMax: number;
  readonly bytesMax: number;
  /** Responses of one decoupled step that the steps after it have not dealt with. */
  readonly passesMax: number;
}

const DEFAULT_LIMITS: EnsembleLimits = {
  requestsMax: ENSEMBLE_REQUESTS_MAX,
  bytesMax: ENSEMBLE_BYTES_MAX,
  passesMax: ENSEMBLE_PASSES_MAX,
};

export interface EnsembleOptions {
  readonly config: ModelConfig;
  readonly version: number;
  readonly plan: Plan;
  /** Of the outputs, those of the models that write them included. */
  readonly labels: Labels;
  /** The models of the steps now, by step. */
  readonly models: readonly ServedModel[];
  readonly stats: ModelStats;
  readonly clock: Clock;
  readonly limits?: EnsembleLimits;
  /** The model that serves now. */
  find(model: string, version: number): ServedModel | undefined;
}

const NS_PER_MS = 1e6;

export class Ensemble implements ServedModel, RunOwner {
  readonly config: ModelConfig;
  readonly name: string;
  readonly version: number;
  readonly maxBatchSize: number;
  readonly isDecoupled: boolean;
  /** A router among the steps may look at headers. */
  readonly wantedHeaders: readonly string[] | undefined;
  readonly stats: ModelStats;
  readonly plan: Plan;
  readonly gates: StepGates;
  readonly #tensors: TensorTable;
  readonly #rules: RequestRules;
  readonly #labels: Labels;
  readonly clock: Clock;
  readonly #limits: EnsembleLimits;
  readonly #find: EnsembleOptions['find'];
  /** The last that served each step: while it is being unloaded, requests that are under way may still use it. */
  readonly #models: ServedModel[];
  readonly #routes = new Map<string, Route>();
  readonly #open = new NumberTable<EnsembleRun>();
  #runCount = 0;
  #heldBytes = 0;
  #isStopped = false;
  #unloaded: Promise<void> | undefined;
  #onDrained: (() => void) | undefined;

  constructor(options: EnsembleOptions) {
    const { config, plan } = options;
    this.config = config;
    this.name = config.name;
    this.version = options.version;
    this.maxBatchSize = config.max_batch_size;
    this.isDecoupled = plan.isDecoupled;
    this.stats = options.stats;
    this.plan = plan;
    this.gates = new StepGates(plan.steps.length, config.ensemble_scheduling?.max_inflight_requests ?? 0);
    // Requests of an ensemble are never batched, so nothing asks for their key.
    this.#tensors = { ...createTensorTable(config), hasBatchKey: false };
    this.#rules = { modelName: this.name, maxBatchSize: this.maxBatchSize, tensors: this.#tensors };
    this.#labels = options.labels;
    this.clock = options.clock;
    this.#limits = options.limits ?? DEFAULT_LIMITS;
    this.#find = options.find;
    this.#models = [...options.models];
    const wanted = new Set(options.models.flatMap((model) => model.wantedHeaders ?? []));
    this.wantedHeaders = wanted.size === 0 ? undefined : [...wanted];
  }

  get inputs(): readonly InputSpec[] {
    return this.#tensors.inputs;
  }

  get outputs(): readonly OutputSpec[] {
    return this.#tensors.outputs;
  }

  get isHealthy(): boolean {
    return this.plan.steps.every((step) => this.#modelOf(step).isHealthy);
  }

  get failure(): StatusError | undefined {
    for (const step of this.plan.steps) {
      const { failure } = this.#modelOf(step);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  get openCount(): number {
    return this.#open.size;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get passesMax(): number {
    return this.#limits.passesMax;
  }

  get isFull(): boolean {
    return this.#heldBytes >= this.#limits.bytesMax;
  }

  labelsOf(output: string): readonly string[] | undefined {
    return this.#labels.get(output);
  }

  infer(call: InferCall): void {
    const startMs = this.clock.nowMs();
    const { request, trace } = call;
    const { batchSize, byteLength } = validateRequest(request, this.#rules);
    if (this.#isStopped) {
      throw unavailable(
        `${idPrefix(request)}Server is stopping, scheduler for model has stopped accepting new inference requests`,
      );
    }
    const { requestsMax, bytesMax } = this.#limits;
    if (this.#open.size >= requestsMax || this.#heldBytes + byteLength > bytesMax) {
      throw unavailable(`${idPrefix(request)}Exceeds maximum queue size`);
    }
    trace?.begin(this, request);
    trace?.mark('REQUEST_START', startMs);
    trace?.mark('QUEUE_START', startMs);
    const ordinal = this.#runCount++;
    const run = new EnsembleRun(this, {
      ordinal,
      call,
      route: this.#routeFor(request.requestedOutputs),
      startMs,
      batchSize,
      ancestors: call.ancestors === undefined ? [this] : [...call.ancestors, this],
    });
    this.#open.set(ordinal, run);
    run.start();
    if (!run.isEnded) call.cancellation?.onCancel(() => run.cancel());
  }

  hold(byteLength: number): void {
    this.#heldBytes += byteLength;
  }

  inferStep(step: PlanStep, call: InferCall): void {
    this.#modelOf(step).infer(call);
  }

  respond(
    run: EnsembleRun,
    outputs: readonly OutputTensor[],
    sequence: SequenceOverride | undefined,
  ): boolean {
    const { request, sink, trace } = run.call;
    const response = {
      modelName: this.name,
      modelVersion: this.version,
      id: request.id,
      parameters: sequenceParameters(sequence ?? request),
      outputs,
    };
    if (this.isDecoupled && run.responseCount === 1) {
      this.stats.recordFirstResponse((this.clock.nowMs() - run.startMs) * NS_PER_MS);
    }
    trace?.response(response);
    return sink.send(response, !this.isDecoupled);
  }

  end(run: EnsembleRun, error: StatusError | undefined): void {
    this.#open.delete(run.ordinal);
    const { sink, trace } = run.call;
    const requestNs = (this.clock.nowMs() - run.startMs) * NS_PER_MS;
    if (trace instanceof StepTrace) trace.addSum(run.compute);
    trace?.mark('REQUEST_END');
    if (error === undefined) {
      const { inputNs, inferNs, outputNs } = run.compute;
      this.stats.recordSuccess(run.batchSize, requestNs, 0, inputNs, inferNs, outputNs);
      const wallMs = this.clock.wallMs() - requestNs / NS_PER_MS;
      this.stats.recordExecution(run.batchSize, inputNs, inferNs, outputNs, wallMs);
      sink.finish();
    } else {
      this.stats.recordFailure(error.code === 'CANCELLED' ? 'CANCELED' : 'OTHER', requestNs);
      const isBare = error.code === 'CANCELLED' && error.message === '';
      sink.fail(isBare ? error : new StatusError(error.code, `in ensemble '${this.name}', ${error.message}`));
    }
    if (this.#open.size === 0) this.#onDrained?.();
  }

  /** Resolves when nothing is open; the models of its steps are not its own. */
  unload(): Promise<void> {
    this.#unloaded ??= this.#drain();
    return this.#unloaded;
  }

  async #drain(): Promise<void> {
    this.#isStopped = true;
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onDrained = resolve;
      });
    }
    this.stats.remove();
  }

  abandon(error: StatusError): void {
    for (const run of this.#open.values()) run.abandon(error);
  }

  #modelOf(step: PlanStep): ServedModel {
    const serving = this.#find(step.model, step.version);
    // None: it is being unloaded, and takes no requests but those that come from here.
    if (serving !== undefined) this.#models[step.index] = serving;
    return this.#models[step.index]!;
  }

  #routeFor(requested: readonly string[]): Route {
    const key = requested.length > 1 ? [...requested].sort().join('\0') : (requested[0] ?? '');
    let route = this.#routes.get(key);
    if (route === undefined) {
      route = createRoute(this.plan, requested);
      if (this.#routes.size >= ENSEMBLE_ROUTES_MAX) this.#routes.clear();
      this.#routes.set(key, route);
    }
    return route;
  }
}

/** Triton adds them to every response of an ensemble. */
function sequenceParameters({ correlationId, sequenceFlags }: SequenceOverride): Parameters {
  return new Map<string, ParameterValue>([
    ['sequence_id', correlationId],
    ['sequence_start', (sequenceFlags & SEQUENCE_START) !== 0],
    ['sequence_end', (sequenceFlags & SEQUENCE_END) !== 0],
  ]);
}
