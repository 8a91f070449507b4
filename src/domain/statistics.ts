// The statistics of one loaded model version, as plain data: what /v2/models/…/stats and gRPC
// ModelStatistics write. Counts and nanoseconds are numbers: 2^53 ns are 104 days of work, enough for a sum
// that starts anew with each load and far beyond what a client compares.

export interface DurationSnapshot {
  readonly count: number;
  readonly ns: number;
}

/** Of the i-th response of a request; only backends that send responses one by one report it. */
export interface ResponseStatisticsSnapshot {
  readonly computeInfer: DurationSnapshot;
  readonly computeOutput: DurationSnapshot;
  readonly success: DurationSnapshot;
  readonly fail: DurationSnapshot;
  readonly emptyResponse: DurationSnapshot;
  readonly cancel: DurationSnapshot;
}

export interface BatchStatisticsSnapshot {
  readonly batchSize: number;
  readonly computeInput: DurationSnapshot;
  readonly computeInfer: DurationSnapshot;
  readonly computeOutput: DurationSnapshot;
}

export interface MemoryUsageSnapshot {
  readonly type: 'CPU' | 'CPU_PINNED' | 'GPU';
  readonly id: number;
  readonly byteSize: number;
}

export interface ModelStatisticsSnapshot {
  readonly name: string;
  readonly version: number;
  /** Milliseconds since the epoch at the start of the last execution; 0 when there was none. */
  readonly lastInferenceMs: number;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly success: DurationSnapshot;
  readonly fail: DurationSnapshot;
  readonly queue: DurationSnapshot;
  readonly computeInput: DurationSnapshot;
  readonly computeInfer: DurationSnapshot;
  readonly computeOutput: DurationSnapshot;
  readonly cacheHit: DurationSnapshot;
  readonly cacheMiss: DurationSnapshot;
  /** Keyed by the index of the response: '0', '1', … */
  readonly responseStats: Readonly<Record<string, ResponseStatisticsSnapshot>>;
  /** Ascending by batch size. */
  readonly batchStats: readonly BatchStatisticsSnapshot[];
  readonly memoryUsage: readonly MemoryUsageSnapshot[];
}
