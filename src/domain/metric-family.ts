// What a scrape sees: families of series as plain data.
// The registry in core makes it, the wire renders it.

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** In the order in which they are written; the registry sorts them by name. */
export type MetricLabels = readonly (readonly [name: string, value: string])[];

export interface ScalarSample {
  readonly labels: MetricLabels;
  readonly value: number;
}

export interface HistogramSample {
  readonly labels: MetricLabels;
  /** Upper bounds ascending, +Inf last; counts are cumulative. */
  readonly buckets: readonly { readonly bound: number; readonly count: number }[];
  readonly sum: number;
  readonly count: number;
}

export interface SummarySample {
  readonly labels: MetricLabels;
  readonly quantiles: readonly { readonly quantile: number; readonly value: number }[];
  readonly sum: number;
  readonly count: number;
}

export type MetricFamily =
  | {
      readonly type: 'counter' | 'gauge';
      readonly name: string;
      readonly help: string;
      readonly samples: readonly ScalarSample[];
    }
  | {
      readonly type: 'histogram';
      readonly name: string;
      readonly help: string;
      readonly samples: readonly HistogramSample[];
    }
  | {
      readonly type: 'summary';
      readonly name: string;
      readonly help: string;
      readonly samples: readonly SummarySample[];
    };
