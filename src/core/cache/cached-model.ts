// A model, ensemble or router whose answers are kept: stands before it as a ServedModel of its own. A request that is in the
// cache is answered without being queued or executed; any other goes on, and its answer is stored when it has succeeded. Equal
// requests that come before the first answer are all executed, as in Triton. load-served.ts puts it around what it loads.

import { CACHE_LOOKUPS_MAX } from '../../domain/limits.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import type { InferCall } from '../infer.ts';
import type { ServedModel } from '../model/served-model.ts';
import { OrderedAnswers } from '../scheduler/ordered-answers.ts';
import type { ModelStats } from '../stats/model-stats.ts';
import type { CachedResponse } from './cache-entry.ts';
import { type CacheKey, type DigestName, keyOf } from './cache-key.ts';
import { CachingSink } from './caching-sink.ts';
import { OrderedSink } from './ordered-sink.ts';
import type { Lookup, ResponseCache } from './response-cache.ts';

const NS_PER_MS = 1e6;

/** A request that waits for its look-up. */
interface Waiting {
  readonly call: InferCall;
  readonly key: CacheKey;
  readonly startMs: number;
  isAnswered: boolean;
}

export class CachedModel implements ServedModel {
  readonly #inner: ServedModel;
  readonly #cache: ResponseCache;
  readonly #scope: string;
  readonly #order: OrderedAnswers | undefined;
  readonly #waiting = new Set<Waiting>();
  #onNoneWaiting: (() => void) | undefined;
  #isRefusalLogged = false;
  #unloaded: Promise<void> | undefined;

  constructor(inner: ServedModel, options: { cache: ResponseCache; scope: string }) {
    this.#inner = inner;
    this.#cache = options.cache;
    this.#scope = options.scope;
    const isOrdered = inner.config.dynamic_batching?.preserve_ordering === true;
    this.#order = isOrdered ? new OrderedAnswers() : undefined;
  }

  get config(): ModelConfig {
    return this.#inner.config;
  }

  get stats(): ModelStats {
    return this.#inner.stats;
  }

  get name(): string {
    return this.#inner.name;
  }

  get version(): number {
    return this.#inner.version;
  }

  get maxBatchSize(): number {
    return this.#inner.maxBatchSize;
  }

  get inputs(): readonly TensorSpec[] {
    return this.#inner.inputs;
  }

  get outputs(): readonly TensorSpec[] {
    return this.#inner.outputs;
  }

  get isDecoupled(): boolean {
    return this.#inner.isDecoupled;
  }

  get isHealthy(): boolean {
    return this.#inner.isHealthy;
  }

  get failure(): StatusError | undefined {
    return this.#inner.failure;
  }

  get wantedHeaders(): readonly string[] | undefined {
    return this.#inner.wantedHeaders;
  }

  get isReloadWanted(): boolean {
    return this.#inner.isReloadWanted ?? false;
  }

  get openCount(): number {
    return this.#inner.openCount + this.#waiting.size;
  }

  askReady(): Promise<boolean> | undefined {
    return this.#inner.askReady?.();
  }

  labelsOf(output: string): readonly string[] | undefined {
    return this.#inner.labelsOf(output);
  }

  infer(call: InferCall): void {
    if (this.#unloaded !== undefined) {
      this.#inner.infer(call);
      return;
    }
    if (this.#order === undefined) {
      this.#look(call);
      return;
    }
    const sink = new OrderedSink(call.sink, this.#order);
    try {
      this.#look({ ...call, sink });
    } catch (thrown) {
      sink.leave();
      throw thrown;
    }
  }

  /** Throws when it is not in the cache and the model refuses it. */
  #look(call: InferCall): void {
    const startMs = this.#cache.clock.nowMs();
    const key = keyOf(this.#scope, call.request);
    if (key.byteLength > this.#cache.entryBytesMax || this.#waiting.size >= CACHE_LOOKUPS_MAX) {
      this.#executeUncached(call, key);
      return;
    }
    const found = this.#cache.lookup(this.#scope, key);
    const waiting: Waiting = { call, key, startMs, isAnswered: false };
    if (found instanceof Promise) void this.#answerLater(waiting, found);
    else this.#answer(waiting, found);
  }

  #answer({ call, key, startMs }: Waiting, { response, digest, durationNs }: Lookup): void {
    if (response === undefined) this.#execute(call, { key, digest, lookupNs: durationNs });
    else this.#hit(call, { response, durationNs, startMs });
  }

  async #answerLater(waiting: Waiting, lookup: Promise<Lookup>): Promise<void> {
    this.#waiting.add(waiting);
    try {
      const found = await lookup;
      if (!waiting.isAnswered) this.#answer(waiting, found);
    } catch (thrown) {
      // It was accepted when it came, so the model's refusal can only be an answer now.
      waiting.call.sink.fail(StatusError.from(thrown));
    } finally {
      this.#waiting.delete(waiting);
      if (this.#waiting.size === 0) this.#onNoneWaiting?.();
    }
  }

  #hit(call: InferCall, found: { response: CachedResponse; durationNs: number; startMs: number }): void {
    const { request, trace, sink } = call;
    const { response, durationNs, startMs } = found;
    trace?.begin(this, request);
    trace?.mark('REQUEST_START', startMs);
    trace?.mark('QUEUE_START', startMs);
    const requestNs = (this.#cache.clock.nowMs() - startMs) * NS_PER_MS;
    this.stats.recordCacheHit(requestNs, requestNs - durationNs, durationNs);
    const answer: InferResponse = {
      modelName: this.name,
      modelVersion: this.version,
      id: request.id,
      ...response,
    };
    trace?.response(answer);
    trace?.mark('REQUEST_END');
    // Callers of `infer` count on its return before the answer, as from any other model.
    queueMicrotask(() => {
      sink.send(answer, true);
      sink.finish();
    });
  }

  #execute(call: InferCall, missed: { key: CacheKey; digest: DigestName; lookupNs: number }): void {
    const { key, digest, lookupNs } = missed;
    this.#pass(call, (response) => {
      const startMs = this.#cache.clock.nowMs();
      const outcome = this.#cache.insert({ scope: this.#scope, key, digest }, response);
      if (outcome === 'exists') return;
      if (outcome === 'refused') this.#logRefusal(key, response);
      this.stats.recordCacheMiss(lookupNs + (this.#cache.clock.nowMs() - startMs) * NS_PER_MS);
    });
  }

  #executeUncached(call: InferCall, key: CacheKey): void {
    this.#pass(call, (response) => {
      this.#logRefusal(key, response);
      this.stats.recordCacheMiss(0);
    });
  }

  #pass(call: InferCall, onSuccess: (response: InferResponse) => void): void {
    this.#inner.infer({ ...call, sink: new CachingSink(call.sink, onSuccess) });
  }

  #logRefusal(key: CacheKey, response: InferResponse): void {
    const bytes = response.outputs.reduce((sum, output) => sum + output.byteLength, key.byteLength);
    const bytesMax = this.#cache.entryBytesMax;
    if (this.#isRefusalLogged || bytes <= bytesMax) return;
    this.#isRefusalLogged = true;
    this.#cache.logger.error(
      `model '${this.name}': a response was not cached. Requested byte_size: ${bytes} is greater than total cache size: ${bytesMax}. This is said once per model`,
    );
  }

  /** Look-ups end first, so that what they find missing can still be executed. */
  unload(): Promise<void> {
    this.#unloaded ??= this.#drain();
    return this.#unloaded;
  }

  async #drain(): Promise<void> {
    if (this.#waiting.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onNoneWaiting = resolve;
      });
    }
    await this.#inner.unload();
    this.#cache.forget(this.#scope);
  }

  abandon(error: StatusError): void {
    for (const waiting of this.#waiting) {
      waiting.isAnswered = true;
      waiting.call.sink.fail(error);
    }
    this.#inner.abandon(error);
  }
}
