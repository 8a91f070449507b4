// What --metrics-config decides: which latency series a model has.
// Parsed by cli, read by core at load.

export interface MetricsConfig {
  /** `counter_latencies`: the nv_inference_*_duration_us counters. */
  readonly isCounterLatencies: boolean;
  /** `histogram_latencies`: Triton's nv_inference_first_response_histogram_ms. */
  readonly isHistogramLatencies: boolean;
  /** `summary_latencies`: the nv_inference_*_summary_us summaries. */
  readonly isSummaryLatencies: boolean;
  /** `summary_quantiles`: quantile and the error that its client accepts. */
  readonly summaryQuantiles: readonly SummaryQuantile[];
}

export interface SummaryQuantile {
  readonly quantile: number;
  readonly error: number;
}

export const DEFAULT_METRICS_CONFIG: MetricsConfig = {
  isCounterLatencies: true,
  isHistogramLatencies: false,
  isSummaryLatencies: false,
  summaryQuantiles: [
    { quantile: 0.5, error: 0.05 },
    { quantile: 0.9, error: 0.01 },
    { quantile: 0.95, error: 0.001 },
    { quantile: 0.99, error: 0.001 },
    { quantile: 0.999, error: 0.001 },
  ],
};
