// Metrics of the model's own, kept by the server. Changes are sent and not waited for; increments of one turn of the
// event loop are sent as one. What the server refuses is told in the log, once for each metric.

import type {
  Counter,
  Gauge,
  Histogram,
  MetricOptions,
  ModelMetrics,
} from '../../backend/model-sdk/model-context.ts';
import { ModelError } from '../../backend/model-sdk/model-error.ts';
import type { ServerCalls, ServerMetricCall } from '../../backend/server-calls.ts';
import { StatusError } from '../../domain/status.ts';

type Family = Omit<ServerMetricCall, 'action' | 'value'>;

export class MetricsClient implements ModelMetrics {
  readonly #calls: ServerCalls | undefined;
  readonly #warn: (message: string) => void;
  readonly #made = new Map<string, Metric>();

  constructor(calls: ServerCalls | undefined, warn: (message: string) => void) {
    this.#calls = calls;
    this.#warn = warn;
  }

  counter(name: string, options: MetricOptions = {}): Counter {
    return this.#metric('counter', name, options, []);
  }

  gauge(name: string, options: MetricOptions = {}): Gauge {
    return this.#metric('gauge', name, options, []);
  }

  histogram(name: string, options: MetricOptions & { readonly buckets: readonly number[] }): Histogram {
    return this.#metric('histogram', name, options, options.buckets);
  }

  #metric(
    type: Family['family']['type'],
    name: string,
    { help = '', labels = {} }: MetricOptions,
    buckets: readonly number[],
  ): Metric {
    const key = JSON.stringify([type, name, Object.entries(labels).sort()]);
    let metric = this.#made.get(key);
    if (metric === undefined) {
      const family: Family = { family: { name, help, type }, labels, buckets };
      metric = new Metric(family, this.#calls, this.#warn);
      this.#made.set(key, metric);
    }
    return metric;
  }
}

class Metric implements Counter, Gauge, Histogram {
  readonly #family: Family;
  readonly #calls: ServerCalls | undefined;
  readonly #warn: (message: string) => void;
  #pending = 0;
  #isScheduled = false;
  #hasWarned = false;

  constructor(family: Family, calls: ServerCalls | undefined, warn: (message: string) => void) {
    this.#family = family;
    this.#calls = calls;
    this.#warn = warn;
    this.#tell('create', 0);
  }

  increment(by = 1): void {
    if (this.#family.family.type === 'counter' && !(by >= 0)) throw new RangeError('a counter can only grow');
    this.#pending += by;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#flush());
  }

  set(value: number): void {
    this.#flush();
    this.#tell('set', value);
  }

  observe(value: number): void {
    this.#tell('observe', value);
  }

  async value(): Promise<number> {
    this.#flush();
    if (this.#calls === undefined) throw new ModelError('UNAVAILABLE', 'there is no server to call');
    try {
      return await this.#calls.metric({ ...this.#family, action: 'value', value: 0 });
    } catch (thrown) {
      const { code, message } = StatusError.from(thrown);
      throw new ModelError(code, message);
    }
  }

  #flush(): void {
    this.#isScheduled = false;
    if (this.#pending === 0) return;
    this.#tell('increment', this.#pending);
    this.#pending = 0;
  }

  #tell(action: ServerMetricCall['action'], value: number): void {
    this.#calls?.metric({ ...this.#family, action, value }).catch((thrown: unknown) => {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      this.#warn(`metric '${this.#family.family.name}': ${StatusError.from(thrown).message}`);
    });
  }
}
