// Metrics that a model makes for itself (MetricFamily in a Python model). They stand on the metrics port as long as the
// model keeps them; equal names and labels of several instances are one series, as in Triton.

import { internal, invalidArgument, unsupported } from '../../domain/status.ts';
import type { MetricAction } from '../../instance/call-frame.ts';
import type { MetricsRegistry } from '../stats/metrics-registry.ts';

type Series =
  | ReturnType<MetricsRegistry['counter']>
  | ReturnType<MetricsRegistry['gauge']>
  | ReturnType<MetricsRegistry['histogram']>;

interface Held {
  readonly handle: Series;
  count: number;
}

export class HostMetrics {
  readonly #registry: MetricsRegistry;
  readonly #held = new Map<string, Held>();

  constructor(registry: MetricsRegistry) {
    this.#registry = registry;
  }

  /** The value after the action. */
  act(call: MetricAction): number {
    const key = JSON.stringify([call.family.name, call.family.type, Object.entries(call.labels).sort()]);
    if (call.action === 'declare') return this.#declare(call);
    if (call.action === 'create') return this.#create(key, call);
    const held = this.#held.get(key);
    if (held === undefined) throw internal(`metric family '${call.family.name}' has no such metric`);
    if (call.action === 'delete') return this.#delete(key, held);
    return change(held.handle, call);
  }

  close(): void {
    for (const { handle } of this.#held.values()) handle.release();
    this.#held.clear();
  }

  /** A family without metrics is not shown; obtaining one and giving it back only checks name and type. */
  #declare(call: MetricAction): number {
    this.#obtain({ ...call, labels: {}, buckets: [] }).release();
    return 0;
  }

  #create(key: string, call: MetricAction): number {
    const held = this.#held.get(key);
    if (held !== undefined) held.count++;
    else this.#held.set(key, { handle: this.#obtain(call), count: 1 });
    return 0;
  }

  #obtain({ family, labels, buckets }: MetricAction): Series {
    const { name, help, type } = family;
    if (buckets.some((bound, i) => i > 0 && bound <= buckets[i - 1]!)) {
      throw invalidArgument('Bucket Boundaries must be strictly sorted');
    }
    try {
      if (type === 'counter') return this.#registry.counter(name, help, labels);
      if (type === 'gauge') return this.#registry.gauge(name, help, labels);
      return this.#registry.histogram(name, help, labels, buckets);
    } catch (thrown) {
      throw invalidArgument(prometheusText((thrown as Error).message));
    }
  }

  #delete(key: string, held: Held): number {
    held.count--;
    if (held.count > 0) return 0;
    held.handle.release();
    this.#held.delete(key);
    return 0;
  }
}

/** What the registry refuses, in the words of the library that Triton uses. */
function prometheusText(message: string): string {
  if (message.endsWith('is no metric name')) return 'Invalid metric name';
  if (message.endsWith('is no metric label name')) return 'Invalid label name';
  return 'Family name already exists with different type';
}

function change({ series }: Series, { action, value, count, family }: MetricAction): number {
  const kind = `TRITONSERVER_METRIC_KIND_${family.type.toUpperCase()}`;
  const isAllowed =
    (action === 'value' && family.type !== 'histogram') ||
    (action === 'increment' && family.type !== 'histogram') ||
    (action === 'set' && family.type === 'gauge') ||
    (action === 'observe' && family.type === 'histogram');
  if (!isAllowed) {
    throw unsupported(`${kind} does not support ${action.charAt(0).toUpperCase()}${action.slice(1)}`);
  }
  if (action === 'increment' && family.type === 'counter' && value < 0) {
    throw invalidArgument(`${kind} can only be incremented monotonically by non-negative values.`);
  }
  if (action === 'increment' && 'inc' in series) series.inc(value);
  if (action === 'set' && 'set' in series) series.set(value);
  if (action === 'observe' && 'observe' in series) series.observe(value, count);
  return 'value' in series ? series.value : 0;
}
