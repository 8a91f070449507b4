// Gauges of the local response cache as a whole; names and HELP texts are Triton's. The counters are kept here as plain numbers
// and become gauges at a scrape. Made by core/cache/response-cache.ts.

import type { MetricsRegistry } from './metrics-registry.ts';

/** What the store knows by itself. */
export interface CacheLevels {
  readonly entryCount: number;
  readonly evictionCount: number;
  readonly usedBytes: number;
  readonly sizeBytes: number;
}

export class CacheMetrics {
  #hitCount = 0;
  #missCount = 0;
  #lookupNs = 0;
  #insertionNs = 0;

  constructor(registry: MetricsRegistry, levels: CacheLevels) {
    const gauge = (name: string, help: string) => registry.gauge(name, help).series;
    const util = gauge('nv_cache_util', 'Cache utilization [0.0 - 1.0]');
    const entries = gauge('nv_cache_num_entries', 'Number of responses stored in response cache');
    const hits = gauge('nv_cache_num_hits', 'Number of cache hits in response cache');
    const misses = gauge('nv_cache_num_misses', 'Number of cache misses in response cache');
    const lookups = gauge('nv_cache_num_lookups', 'Number of cache lookups in response cache');
    const evictions = gauge('nv_cache_num_evictions', 'Number of cache evictions in response cache');
    const lookupUs = gauge(
      'nv_cache_lookup_duration',
      'Total cache lookup duration (hit and miss), in microseconds',
    );
    const insertionUs = gauge(
      'nv_cache_insertion_duration',
      'Total cache insertion duration, in microseconds',
    );
    registry.addCollector(() => {
      util.set(levels.usedBytes / levels.sizeBytes);
      entries.set(levels.entryCount);
      hits.set(this.#hitCount);
      misses.set(this.#missCount);
      lookups.set(this.#hitCount + this.#missCount);
      evictions.set(levels.evictionCount);
      lookupUs.set(Math.floor(this.#lookupNs / 1000));
      insertionUs.set(Math.floor(this.#insertionNs / 1000));
    });
  }

  recordLookup(isHit: boolean, ns: number): void {
    if (isHit) this.#hitCount++;
    else this.#missCount++;
    this.#lookupNs += ns;
  }

  recordInsertion(ns: number): void {
    this.#insertionNs += ns;
  }
}
