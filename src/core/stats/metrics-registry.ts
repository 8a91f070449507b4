// Every metric of the server: families by name, series by labels. Models obtain handles at load and give
// them back at unload; two holders of the same labels (a model and its reload, instances on one device) share
// one series, which disappears with the last of them. It renders nothing: wire/prometheus.ts does.

import type { MetricFamily, MetricLabels, MetricType } from '../../domain/metric-family.ts';
import type { Clock } from '../../lib/clock.ts';
import { CounterSeries, GaugeSeries, HistogramSeries, SummarySeries } from './metric-series.ts';

export type LabelRecord = Readonly<Record<string, string>>;

interface Entry<S> {
  readonly labels: MetricLabels;
  readonly series: S;
  holderCount: number;
}

interface Family<S> {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly entries: Map<string, Entry<S>>;
}

type AnySeries = CounterSeries | GaugeSeries | HistogramSeries | SummarySeries;

/** Gives back one handle; calling it again does nothing. */
export type ReleaseSeries = () => void;

export interface Handle<S> {
  readonly series: S;
  readonly release: ReleaseSeries;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export class MetricsRegistry {
  readonly #families = new Map<string, Family<AnySeries>>();
  readonly #collectors = new Set<() => void>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  counter(name: string, help: string, labels: LabelRecord = {}): Handle<CounterSeries> {
    return this.#obtain({ name, help, type: 'counter' }, labels, () => new CounterSeries());
  }

  gauge(name: string, help: string, labels: LabelRecord = {}): Handle<GaugeSeries> {
    return this.#obtain({ name, help, type: 'gauge' }, labels, () => new GaugeSeries());
  }

  histogram(
    name: string,
    help: string,
    labels: LabelRecord,
    bounds: readonly number[],
  ): Handle<HistogramSeries> {
    return this.#obtain({ name, help, type: 'histogram' }, labels, () => new HistogramSeries(bounds));
  }

  summary(
    name: string,
    help: string,
    labels: LabelRecord,
    quantiles: readonly number[],
  ): Handle<SummarySeries> {
    return this.#obtain(
      { name, help, type: 'summary' },
      labels,
      () => new SummarySeries(quantiles, this.#clock),
    );
  }

  /** `refresh` runs before every collection, to bring gauges up to date; the answer removes it. */
  addCollector(refresh: () => void): () => void {
    this.#collectors.add(refresh);
    return () => {
      this.#collectors.delete(refresh);
    };
  }

  /** Everything, in the order in which families were first obtained; families without series are left out. */
  collect(): MetricFamily[] {
    for (const refresh of this.#collectors) refresh();
    const families: MetricFamily[] = [];
    for (const family of this.#families.values()) {
      if (family.entries.size > 0) families.push(snapshotOf(family));
    }
    return families;
  }

  #obtain<S extends AnySeries>(
    spec: { name: string; help: string; type: MetricType },
    labels: LabelRecord,
    create: () => S,
  ): Handle<S> {
    const family = this.#familyOf<S>(spec);
    const sorted = sortedLabels(labels);
    const key = JSON.stringify(sorted);
    let entry = family.entries.get(key);
    if (entry === undefined) {
      entry = { labels: sorted, series: create(), holderCount: 0 };
      family.entries.set(key, entry);
    }
    entry.holderCount++;
    return { series: entry.series, release: releaseOnce(family, key, entry) };
  }

  #familyOf<S extends AnySeries>(spec: { name: string; help: string; type: MetricType }): Family<S> {
    let family = this.#families.get(spec.name);
    if (family === undefined) {
      if (!NAME.test(spec.name)) throw new TypeError(`'${spec.name}' is no metric name`);
      family = { ...spec, entries: new Map() };
      this.#families.set(spec.name, family);
    }
    if (family.type !== spec.type) {
      throw new TypeError(`metric family '${spec.name}' is a ${family.type}, not a ${spec.type}`);
    }
    // the type of a family decides the class of its series, which was checked in the line above
    return family as unknown as Family<S>;
  }
}

function releaseOnce<S>(family: Family<S>, key: string, entry: Entry<S>): ReleaseSeries {
  let isReleased = false;
  return () => {
    if (isReleased) return;
    isReleased = true;
    entry.holderCount--;
    if (entry.holderCount === 0 && family.entries.get(key) === entry) family.entries.delete(key);
  };
}

/** By name, as prometheus-cpp keeps them. */
function sortedLabels(labels: LabelRecord): MetricLabels {
  const pairs = Object.entries(labels);
  for (const [name] of pairs) {
    if (!LABEL_NAME.test(name)) throw new TypeError(`'${name}' is no metric label name`);
  }
  return pairs.sort(([a], [b]) => (a < b ? -1 : 1));
}

function snapshotOf(family: Family<AnySeries>): MetricFamily {
  const { name, help } = family;
  const entries = [...family.entries.values()];
  switch (family.type) {
    case 'counter':
    case 'gauge':
      return { type: family.type, name, help, samples: entries.flatMap(scalarSample) };
    case 'histogram':
      return { type: 'histogram', name, help, samples: entries.flatMap(histogramSample) };
    case 'summary':
      return { type: 'summary', name, help, samples: entries.flatMap(summarySample) };
  }
}

function scalarSample({ labels, series }: Entry<AnySeries>) {
  const isScalar = series instanceof CounterSeries || series instanceof GaugeSeries;
  return isScalar ? [{ labels, value: series.value }] : [];
}

function histogramSample({ labels, series }: Entry<AnySeries>) {
  if (!(series instanceof HistogramSeries)) return [];
  const buckets = series.buckets();
  return [{ labels, buckets, sum: series.sum, count: buckets.at(-1)!.count }];
}

function summarySample({ labels, series }: Entry<AnySeries>) {
  if (!(series instanceof SummarySeries)) return [];
  return [{ labels, quantiles: series.read(), sum: series.sum, count: series.count }];
}
