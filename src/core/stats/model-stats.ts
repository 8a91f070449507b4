// The statistics of one loaded model version: the numbers of /v2/models/…/stats and, beside them, the model's
// Prometheus series. They start at zero with each load. The record… methods are on the hot path: no
// allocation, no lookup but the batch size.

import type {
  BatchStatisticsSnapshot,
  DurationSnapshot,
  MemoryUsageSnapshot,
  ModelStatisticsSnapshot,
  ResponseStatisticsSnapshot,
} from '../../domain/statistics.ts';
import type { MetricsRegistry } from './metrics-registry.ts';
import {
  createModelMetrics,
  type FailureReason,
  type ModelMetrics,
  type ModelMetricsOptions,
} from './model-metrics.ts';

export type ModelStatsOptions = ModelMetricsOptions & { readonly registry: MetricsRegistry };

export type ResponseOutcome = 'success' | 'fail' | 'emptyResponse' | 'cancel';

/** A stream of tokens may have any length; responses after this many share the last entry. */
const RESPONSE_INDEX_MAX = 1023;

/** A count and a sum that can be added to. */
interface Duration {
  count: number;
  ns: number;
}

interface BatchStat {
  readonly computeInput: Duration;
  readonly computeInfer: Duration;
  readonly computeOutput: Duration;
}

interface ResponseStat extends Record<ResponseOutcome, Duration> {
  computeInfer: Duration;
  computeOutput: Duration;
}

export class ModelStats {
  readonly #name: string;
  readonly #version: number;
  readonly #metrics: ModelMetrics;

  #lastInferenceMs = 0;
  #inferenceCount = 0;
  #executionCount = 0;
  readonly #success = newDuration();
  readonly #fail = newDuration();
  readonly #queue = newDuration();
  readonly #computeInput = newDuration();
  readonly #computeInfer = newDuration();
  readonly #computeOutput = newDuration();
  readonly #cacheHit = newDuration();
  readonly #cacheMiss = newDuration();
  readonly #batches = new Map<number, BatchStat>();
  readonly #responses: ResponseStat[] = [];
  #memoryUsage: readonly MemoryUsageSnapshot[] = [];

  constructor(options: ModelStatsOptions) {
    this.#name = options.name;
    this.#version = options.version;
    this.#metrics = createModelMetrics(options.registry, options);
  }

  /** Once per executed batch with at least one success; `wallMs` is when the execution started. */
  recordExecution(
    batchSize: number,
    computeInputNs: number,
    computeInferNs: number,
    computeOutputNs: number,
    wallMs: number,
  ): void {
    this.#executionCount++;
    if (wallMs > this.#lastInferenceMs) this.#lastInferenceMs = Math.floor(wallMs);
    let batch = this.#batches.get(batchSize);
    if (batch === undefined) {
      batch = { computeInput: newDuration(), computeInfer: newDuration(), computeOutput: newDuration() };
      this.#batches.set(batchSize, batch);
    }
    add(batch.computeInput, computeInputNs);
    add(batch.computeInfer, computeInferNs);
    add(batch.computeOutput, computeOutputNs);
    this.#metrics.executionCount.inc();
  }

  /** Once per request that was executed and succeeded; `batchSize` is the request's own. */
  recordSuccess(
    batchSize: number,
    requestNs: number,
    queueNs: number,
    computeInputNs: number,
    computeInferNs: number,
    computeOutputNs: number,
  ): void {
    this.#inferenceCount += batchSize;
    add(this.#success, requestNs);
    add(this.#queue, queueNs);
    add(this.#computeInput, computeInputNs);
    add(this.#computeInfer, computeInferNs);
    add(this.#computeOutput, computeOutputNs);

    const metrics = this.#metrics;
    metrics.success.inc();
    metrics.inferenceCount.inc(batchSize);
    metrics.requestSecs.observe(requestNs / 1e9);
    metrics.queueSecs.observe(queueNs / 1e9);
    metrics.computeSecs.observe((computeInputNs + computeInferNs + computeOutputNs) / 1e9);
    const durations = metrics.durationsUs;
    if (durations !== undefined) {
      durations.request.inc(wholeUs(requestNs));
      durations.queue.inc(wholeUs(queueNs));
      durations.computeInput.inc(wholeUs(computeInputNs));
      durations.computeInfer.inc(wholeUs(computeInferNs));
      durations.computeOutput.inc(wholeUs(computeOutputNs));
    }
    const summaries = metrics.summariesUs;
    if (summaries !== undefined) {
      summaries.request?.observe(wholeUs(requestNs));
      summaries.queue?.observe(wholeUs(queueNs));
      summaries.computeInput?.observe(wholeUs(computeInputNs));
      summaries.computeInfer?.observe(wholeUs(computeInferNs));
      summaries.computeOutput?.observe(wholeUs(computeOutputNs));
    }
  }

  recordFailure(reason: FailureReason, requestNs: number): void {
    add(this.#fail, requestNs);
    this.#metrics.failure[reason].inc();
  }

  /** From the request's arrival; once per request. Costs nothing unless histogram_latencies is on. */
  recordFirstResponse(sinceRequestNs: number): void {
    this.#metrics.firstResponseMs?.observe(sinceRequestNs / 1e6);
  }

  /** A request answered from the cache: a success that was never executed. */
  recordCacheHit(requestNs: number, queueNs: number, lookupNs: number): void {
    add(this.#success, requestNs);
    add(this.#queue, queueNs);
    add(this.#cacheHit, lookupNs);
    const metrics = this.#metrics;
    metrics.success.inc();
    metrics.requestSecs.observe(requestNs / 1e9);
    metrics.durationsUs?.request.inc(wholeUs(requestNs));
    metrics.durationsUs?.queue.inc(wholeUs(queueNs));
    metrics.summariesUs?.queue?.observe(wholeUs(queueNs));
    metrics.cache?.hitCount?.inc();
    metrics.cache?.hitDurationUs?.inc(wholeUs(lookupNs));
    metrics.cache?.hitSummaryUs?.observe(wholeUs(lookupNs));
  }

  /** Beside recordSuccess; `missNs` is lookup and insertion, which Triton adds to the request's duration. */
  recordCacheMiss(missNs: number): void {
    add(this.#cacheMiss, missNs);
    this.#success.ns += Math.round(missNs);
    const metrics = this.#metrics;
    metrics.durationsUs?.request.inc(wholeUs(missNs));
    metrics.cache?.missCount?.inc();
    metrics.cache?.missDurationUs?.inc(wholeUs(missNs));
    metrics.cache?.missSummaryUs?.observe(wholeUs(missNs));
  }

  /** The `index`-th response of a request, for backends that report responses one by one. */
  recordResponse(
    index: number,
    outcome: ResponseOutcome,
    computeInferNs: number,
    computeOutputNs: number,
  ): void {
    const slot = Math.min(index, RESPONSE_INDEX_MAX);
    while (this.#responses.length <= slot) this.#responses.push(newResponseStat());
    const stat = this.#responses[slot]!;
    add(stat[outcome], computeInferNs + computeOutputNs);
    if (outcome === 'cancel') return;
    add(stat.computeInfer, computeInferNs);
    if (outcome !== 'emptyResponse') add(stat.computeOutput, computeOutputNs);
  }

  pendingInc(): void {
    this.#metrics.pending.inc();
  }

  pendingDec(): void {
    this.#metrics.pending.dec();
  }

  setLoadDurationSecs(secs: number): void {
    this.#metrics.loadDurationSecs.set(secs);
  }

  setMemoryUsage(usage: readonly MemoryUsageSnapshot[]): void {
    this.#memoryUsage = usage;
  }

  snapshot(): ModelStatisticsSnapshot {
    return {
      name: this.#name,
      version: this.#version,
      lastInferenceMs: this.#lastInferenceMs,
      inferenceCount: this.#inferenceCount,
      executionCount: this.#executionCount,
      success: copy(this.#success),
      fail: copy(this.#fail),
      queue: copy(this.#queue),
      computeInput: copy(this.#computeInput),
      computeInfer: copy(this.#computeInfer),
      computeOutput: copy(this.#computeOutput),
      cacheHit: copy(this.#cacheHit),
      cacheMiss: copy(this.#cacheMiss),
      responseStats: Object.fromEntries(
        this.#responses.map((stat, i) => [String(i), responseStatistics(stat)]),
      ),
      batchStats: batchStatistics(this.#batches),
      memoryUsage: this.#memoryUsage,
    };
  }

  /** At unload, when the last request is done: takes the model's series out of the scrape. */
  remove(): void {
    this.#metrics.release();
  }
}

function newDuration(): Duration {
  return { count: 0, ns: 0 };
}

function newResponseStat(): ResponseStat {
  return {
    computeInfer: newDuration(),
    computeOutput: newDuration(),
    success: newDuration(),
    fail: newDuration(),
    emptyResponse: newDuration(),
    cancel: newDuration(),
  };
}

/** Measured times may be a fraction, or, between two clocks, just below zero; the wire has unsigned integers. */
function add(duration: Duration, ns: number): void {
  duration.count++;
  if (ns > 0) duration.ns += Math.round(ns);
}

/** Triton divides each request's nanoseconds before it adds. */
function wholeUs(ns: number): number {
  return ns > 0 ? Math.floor(ns / 1000) : 0;
}

function copy(duration: Duration): DurationSnapshot {
  return { count: duration.count, ns: duration.ns };
}

function responseStatistics(stat: ResponseStat): ResponseStatisticsSnapshot {
  return {
    computeInfer: copy(stat.computeInfer),
    computeOutput: copy(stat.computeOutput),
    success: copy(stat.success),
    fail: copy(stat.fail),
    emptyResponse: copy(stat.emptyResponse),
    cancel: copy(stat.cancel),
  };
}

function batchStatistics(batches: ReadonlyMap<number, BatchStat>): BatchStatisticsSnapshot[] {
  return [...batches]
    .sort(([a], [b]) => a - b)
    .map(([batchSize, batch]) => ({
      batchSize,
      computeInput: copy(batch.computeInput),
      computeInfer: copy(batch.computeInfer),
      computeOutput: copy(batch.computeOutput),
    }));
}
