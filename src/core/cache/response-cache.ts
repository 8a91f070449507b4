// The response cache of the server: finds the answer to a request and keeps new ones, in whichever store --cache-config names.
// server.ts opens it before any model is loaded; each cached model asks it through cached-model.ts. An entry is found by a
// digest, and is the right one only if its whole key is equal: Triton trusts 64 bits, and can give one client another's answer.

import { CACHE_ENTRY_BYTES_MAX, CACHE_STEP_BYTES_MAX, CACHE_WRITING_BYTES_MAX } from '../../domain/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { CacheMetrics } from '../stats/cache-metrics.ts';
import type { MetricsRegistry } from '../stats/metrics-registry.ts';
import {
  type CachedResponse,
  type EntryPlan,
  planEntry,
  readEntry,
  readEntryInSteps,
  writeEntry,
  writeEntryInSteps,
} from './cache-entry.ts';
import { type CacheKey, type DigestName, digestInSteps, digestOf } from './cache-key.ts';
import type { CacheStore } from './cache-store.ts';
import { LocalStore } from './local-store.ts';

export interface ResponseCacheOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: MetricsRegistry;
}

export interface Lookup {
  readonly digest: DigestName;
  /** Undefined: not there. */
  readonly response: CachedResponse | undefined;
  readonly durationNs: number;
}

/** `exists`: an equal request was faster; `refused`: too large, or too much is being written. */
export type InsertOutcome = 'stored' | 'exists' | 'refused';

const NS_PER_MS = 1e6;

export class ResponseCache {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly #store: CacheStore;
  /** Triton's Redis cache has no gauges of its own either. */
  readonly #metrics: CacheMetrics | undefined;
  #writingBytes = 0;

  constructor(store: CacheStore, options: ResponseCacheOptions) {
    this.#store = store;
    this.clock = options.clock;
    this.logger = options.logger;
    if (store instanceof LocalStore) this.#metrics = new CacheMetrics(options.registry, store);
  }

  /** Whether other servers see what is stored. */
  get isShared(): boolean {
    return this.#store.isShared;
  }

  /** A key with its answer may have this many bytes. */
  get entryBytesMax(): number {
    return Math.min(this.#store.entryBytesMax, CACHE_ENTRY_BYTES_MAX);
  }

  /** At once where the store is memory and the key small; never rejects. */
  lookup(scope: string, key: CacheKey): Lookup | Promise<Lookup> {
    const startMs = this.clock.nowMs();
    if (this.#store.isShared || key.byteLength > CACHE_STEP_BYTES_MAX) {
      return this.#lookupInSteps(scope, key, startMs);
    }
    const digest = digestOf(key);
    const entry = this.#store.find(scope, digest);
    return this.#found(digest, entry instanceof Buffer ? readEntry(entry, key) : undefined, startMs);
  }

  async #lookupInSteps(scope: string, key: CacheKey, startMs: number): Promise<Lookup> {
    const digest = await digestInSteps(key);
    const entry = await this.#store.find(scope, digest);
    const response = entry === undefined ? undefined : await readEntryInSteps(entry, key);
    return this.#found(digest, response, startMs);
  }

  #found(digest: DigestName, response: CachedResponse | undefined, startMs: number): Lookup {
    const durationNs = (this.clock.nowMs() - startMs) * NS_PER_MS;
    this.#metrics?.recordLookup(response !== undefined, durationNs);
    return { digest, response, durationNs };
  }

  /** What cannot be written at once is written later; nobody waits for it. */
  insert(
    place: { scope: string; key: CacheKey; digest: DigestName },
    response: CachedResponse,
  ): InsertOutcome {
    const { scope, key, digest } = place;
    if (this.#store.has(digest)) return 'exists';
    const plan = planEntry(key, response);
    if (plan.byteLength > this.entryBytesMax) return 'refused';
    if (this.#writingBytes + plan.byteLength > CACHE_WRITING_BYTES_MAX) return 'refused';
    const startMs = this.clock.nowMs();
    const isNow = plan.byteLength <= CACHE_STEP_BYTES_MAX;
    const stored = isNow
      ? this.#store.put(scope, digest, writeEntry(plan))
      : this.#putInSteps(scope, digest, plan);
    this.#metrics?.recordInsertion((this.clock.nowMs() - startMs) * NS_PER_MS);
    if (stored instanceof Promise) {
      this.#writingBytes += plan.byteLength;
      void stored.finally(() => {
        this.#writingBytes -= plan.byteLength;
      });
    }
    return 'stored';
  }

  async #putInSteps(scope: string, digest: DigestName, plan: EntryPlan): Promise<void> {
    await this.#store.put(scope, digest, await writeEntryInSteps(plan));
  }

  /** The model of this scope is gone. */
  forget(scope: string): void {
    void this.#store.forget(scope);
  }

  close(): void {
    this.#store.close();
  }
}
