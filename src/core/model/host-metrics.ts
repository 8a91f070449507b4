// Metrics that a model makes for itself (MetricFamily in a Python model). They stand on the metrics port as long as the
// model keeps them; equal names and labels of several instances are one series, as in Triton.

import { internal, invalidArgument } from '../../domain/status.ts';
import type { MetricCallMessage } from '../../instance/call-frame.ts';
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
  act(call: MetricCallMessage): number {
    const key = JSON.stringify([call.family.name, call.family.type, Object.entries(call.labels).sort()]);
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

  #create(key: string, call: MetricCallMessage): number {
    const held = this.#held.get(key);
    if (held !== undefined) held.count++;
    else this.#held.set(key, { handle: this.#obtain(call), count: 1 });
    return 0;
  }

  #obtain({ family, labels, buckets }: MetricCallMessage): Series {
    const { name, help, type } = family;
    try {
      if (type === 'counter') return this.#registry.counter(name, help, labels);
      if (type === 'gauge') return this.#registry.gauge(name, help, labels);
      return this.#registry.histogram(name, help, labels, buckets);
    } catch (thrown) {
      throw invalidArgument((thrown as Error).message);
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

function change({ series }: Series, { action, value, family }: MetricCallMessage): number {
  const isAllowed =
    action === 'value' ||
    (action === 'increment' && family.type !== 'histogram') ||
    (action === 'set' && family.type === 'gauge') ||
    (action === 'observe' && family.type === 'histogram');
  if (!isAllowed) throw new Error(`${action} is not supported by a ${family.type}`);
  if (action === 'increment' && family.type === 'counter' && value < 0) {
    throw invalidArgument('a counter can only grow');
  }
  if (action === 'increment' && 'inc' in series) series.inc(value);
  if (action === 'set' && 'set' in series) series.set(value);
  if (action === 'observe' && 'observe' in series) series.observe(value);
  return 'value' in series ? series.value : 0;
}
