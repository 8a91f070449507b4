// The Prometheus series of one loaded model version: which families it has, under which labels, obtained
// together at load and released together at unload. HELP texts and names are Triton's, but for the three
// nereid_* histograms, which are always on because averages hide what users feel.

import type { MetricsConfig } from '../../domain/metrics-config.ts';
import type { CounterSeries, GaugeSeries, HistogramSeries, SummarySeries } from './metric-series.ts';
import type { Handle, LabelRecord, MetricsRegistry, ReleaseSeries } from './metrics-registry.ts';

export const FAILURE_REASONS = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** Seconds: from half a millisecond, below which the network dominates, to a minute, where clients give up. */
const DURATION_BOUNDS_SECS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Milliseconds; Triton's default, which `model_metrics` in a config may replace. */
const FIRST_RESPONSE_BOUNDS_MS = [100, 500, 2000, 5000];

export interface ModelMetricsOptions {
  readonly name: string;
  readonly version: number;
  readonly metricTags: Readonly<Record<string, string>>;
  readonly config: MetricsConfig;
  /** The cache families exist only for models that are cached. */
  readonly isCached: boolean;
  readonly firstResponseBoundsMs?: readonly number[];
}

export interface LatencySet<S> {
  readonly request: S;
  readonly queue: S;
  readonly computeInput: S;
  readonly computeInfer: S;
  readonly computeOutput: S;
}

export interface CacheSeries {
  readonly hitCount: CounterSeries | undefined;
  readonly hitDurationUs: CounterSeries | undefined;
  readonly missCount: CounterSeries | undefined;
  readonly missDurationUs: CounterSeries | undefined;
  readonly hitSummaryUs: SummarySeries | undefined;
  readonly missSummaryUs: SummarySeries | undefined;
}

export interface ModelMetrics {
  readonly success: CounterSeries;
  readonly failure: Readonly<Record<FailureReason, CounterSeries>>;
  readonly inferenceCount: CounterSeries;
  readonly executionCount: CounterSeries;
  readonly pending: GaugeSeries;
  readonly loadDurationSecs: GaugeSeries;
  readonly durationsUs: LatencySet<CounterSeries> | undefined;
  readonly summariesUs: LatencySet<SummarySeries | undefined> | undefined;
  readonly firstResponseMs: HistogramSeries | undefined;
  readonly requestSecs: HistogramSeries;
  readonly queueSecs: HistogramSeries;
  readonly computeSecs: HistogramSeries;
  readonly cache: CacheSeries | undefined;
  /** Removes every series of this model from the scrape. */
  release(): void;
}

export function createModelMetrics(registry: MetricsRegistry, options: ModelMetricsOptions): ModelMetrics {
  const releases: ReleaseSeries[] = [];
  const labels = labelsOf(options);
  const { config } = options;

  function held<S>(handle: Handle<S>): S {
    releases.push(handle.release);
    return handle.series;
  }
  const counter = (name: string, help: string, extra?: LabelRecord) =>
    held(registry.counter(name, help, { ...labels, ...extra }));
  const gauge = (name: string, help: string) => held(registry.gauge(name, help, labels));
  const histogram = (name: string, help: string, bounds: readonly number[]) =>
    held(registry.histogram(name, help, labels, bounds));
  const quantiles = config.summaryQuantiles.map(({ quantile }) => quantile);
  const summary = (name: string, help: string) => held(registry.summary(name, help, labels, quantiles));

  const failure = (reason: FailureReason) =>
    counter('nv_inference_request_failure', 'Number of failed inference requests, all batch sizes', {
      reason,
    });

  return {
    success: counter(
      'nv_inference_request_success',
      'Number of successful inference requests, all batch sizes',
    ),
    failure: {
      REJECTED: failure('REJECTED'),
      CANCELED: failure('CANCELED'),
      BACKEND: failure('BACKEND'),
      OTHER: failure('OTHER'),
    },
    inferenceCount: counter(
      'nv_inference_count',
      'Number of inferences performed (does not include cached requests)',
    ),
    executionCount: counter(
      'nv_inference_exec_count',
      'Number of model executions performed (does not include cached requests)',
    ),
    durationsUs: config.isCounterLatencies ? durationCounters(counter) : undefined,
    summariesUs: config.isSummaryLatencies ? durationSummaries(summary, options.isCached) : undefined,
    cache: options.isCached
      ? cacheSeries(
          config.isCounterLatencies ? counter : undefined,
          config.isSummaryLatencies ? summary : undefined,
        )
      : undefined,
    pending: gauge(
      'nv_inference_pending_request_count',
      'Instantaneous number of pending requests awaiting execution per-model.',
    ),
    loadDurationSecs: gauge('nv_model_load_duration_secs', 'Model load time in seconds'),
    firstResponseMs: config.isHistogramLatencies
      ? histogram(
          'nv_inference_first_response_histogram_ms',
          'Duration from request to first response in milliseconds',
          options.firstResponseBoundsMs ?? FIRST_RESPONSE_BOUNDS_MS,
        )
      : undefined,
    ...durationHistograms(histogram),
    release() {
      for (const release of releases) release();
    },
  };
}

type MakeHistogram = (name: string, help: string, bounds: readonly number[]) => HistogramSeries;

function durationHistograms(
  histogram: MakeHistogram,
): Pick<ModelMetrics, 'requestSecs' | 'queueSecs' | 'computeSecs'> {
  return {
    requestSecs: histogram(
      'nereid_inference_request_duration_seconds',
      'Time of successful inference requests from their arrival to their last response, in seconds',
      DURATION_BOUNDS_SECS,
    ),
    queueSecs: histogram(
      'nereid_inference_queue_duration_seconds',
      'Time that successful inference requests waited for execution, in seconds',
      DURATION_BOUNDS_SECS,
    ),
    computeSecs: histogram(
      'nereid_inference_compute_duration_seconds',
      'Time of successful inference requests in execution, input and output handling included, in seconds',
      DURATION_BOUNDS_SECS,
    ),
  };
}

/** `model`, `version`, and each metric tag as `_<tag>`. */
function labelsOf(options: ModelMetricsOptions): LabelRecord {
  const labels: Record<string, string> = { model: options.name, version: String(options.version) };
  for (const [tag, value] of Object.entries(options.metricTags)) {
    // a tag is free text in the config, a label name is not
    labels[`_${tag.replace(/[^a-zA-Z0-9_]/g, '_')}`] = value;
  }
  return labels;
}

type MakeCounter = (name: string, help: string) => CounterSeries;
type MakeSummary = (name: string, help: string) => SummarySeries;

function durationCounters(counter: MakeCounter): LatencySet<CounterSeries> {
  return {
    request: counter(
      'nv_inference_request_duration_us',
      'Cumulative inference request duration in microseconds (includes cached requests)',
    ),
    queue: counter(
      'nv_inference_queue_duration_us',
      'Cumulative inference queuing duration in microseconds (includes cached requests)',
    ),
    computeInput: counter(
      'nv_inference_compute_input_duration_us',
      'Cumulative compute input duration in microseconds (does not include cached requests)',
    ),
    computeInfer: counter(
      'nv_inference_compute_infer_duration_us',
      'Cumulative compute inference duration in microseconds (does not include cached requests)',
    ),
    computeOutput: counter(
      'nv_inference_compute_output_duration_us',
      'Cumulative inference compute output duration in microseconds (does not include cached requests)',
    ),
  };
}

/** HELP texts as in Triton, which calls three of the five cumulative. */
function durationSummaries(summary: MakeSummary, isCached: boolean): LatencySet<SummarySeries | undefined> {
  return {
    // Triton leaves it out for cached models, where one distribution would mix hits and executions
    request: isCached
      ? undefined
      : summary(
          'nv_inference_request_summary_us',
          'Summary of inference request duration in microseconds (includes cached requests)',
        ),
    queue: summary(
      'nv_inference_queue_summary_us',
      'Summary of inference queuing duration in microseconds (includes cached requests)',
    ),
    computeInput: summary(
      'nv_inference_compute_input_summary_us',
      'Cumulative compute input duration in microseconds (does not include cached requests)',
    ),
    computeInfer: summary(
      'nv_inference_compute_infer_summary_us',
      'Cumulative compute inference duration in microseconds (does not include cached requests)',
    ),
    computeOutput: summary(
      'nv_inference_compute_output_summary_us',
      'Cumulative inference compute output duration in microseconds (does not include cached requests)',
    ),
  };
}

/** All cache counters, the counts among them, belong to counter_latencies. */
function cacheSeries(counter: MakeCounter | undefined, summary: MakeSummary | undefined): CacheSeries {
  return {
    hitCount: counter?.('nv_cache_num_hits_per_model', 'Number of cache hits per model'),
    hitDurationUs: counter?.(
      'nv_cache_hit_duration_per_model',
      'Total cache hit duration per model, in microseconds',
    ),
    missCount: counter?.('nv_cache_num_misses_per_model', 'Number of cache misses per model'),
    missDurationUs: counter?.(
      'nv_cache_miss_duration_per_model',
      'Total cache miss (insert+lookup) duration per model, in microseconds',
    ),
    hitSummaryUs: summary?.(
      'nv_cache_hit_summary_per_model',
      'Summary of cache hit counts/durations per model, in microseconds.',
    ),
    missSummaryUs: summary?.(
      'nv_cache_miss_summary_per_model',
      'Summary of cache miss counts/durations per model, in microseconds.',
    ),
  };
}
