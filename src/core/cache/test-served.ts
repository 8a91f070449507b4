// A model without instances that executes when the test says so, its requests, and a cache to put before it. Used only by tests.

import { DEFAULT_METRICS_CONFIG } from '../../domain/metrics-config.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import type { InferRequest, InferResponse, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import type { InputTensor, OutputTensor } from '../../domain/tensor.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { createLogger } from '../../lib/logger.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import type { InferCall } from '../infer.ts';
import type { ServedModel } from '../model/served-model.ts';
import { makeRequest } from '../scheduler/test-entry.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import { ModelStats } from '../stats/model-stats.ts';
import type { CacheStore } from './cache-store.ts';
import { ResponseCache } from './response-cache.ts';

export function input(
  name: string,
  values: readonly number[],
  fields: Partial<InputTensor> = {},
): InputTensor {
  const data = Buffer.from(Float32Array.from(values).buffer);
  return { name, datatype: 'FP32', shape: [values.length], data: [data], byteLength: data.length, ...fields };
}

export function output(name: string, values: readonly number[]): OutputTensor {
  return { ...input(name, values), datatype: 'FP32' };
}

export function requestOf(values: readonly number[], fields: Partial<InferRequest> = {}): InferRequest {
  return makeRequest({ inputs: [input('X', values)], ...fields });
}

/** What a client saw. */
export class TestSink implements ResponseSink {
  readonly responses: InferResponse[] = [];
  readonly errors: StatusError[] = [];
  endCount = 0;
  readonly #onEnd: (() => void) | undefined;

  constructor(onEnd?: () => void) {
    this.#onEnd = onEnd;
  }

  send(response: InferResponse): boolean {
    this.responses.push(response);
    return true;
  }

  sendError(error: StatusError): boolean {
    this.errors.push(error);
    return true;
  }

  finish(): void {
    this.endCount++;
    this.#onEnd?.();
  }

  fail(error: StatusError): void {
    this.errors.push(error);
    this.finish();
  }

  /** The bytes of the first output of the only answer. */
  get bytes(): Buffer | undefined {
    return this.responses[0]?.outputs[0] === undefined
      ? undefined
      : Buffer.concat([...this.responses[0].outputs[0].data]);
  }
}

/** Y = the bytes of X, whatever they are. */
export class TestModel implements ServedModel {
  readonly config: ModelConfig;
  readonly name = 'm';
  readonly version = 1;
  readonly maxBatchSize = 0;
  readonly inputs = [];
  readonly outputs = [];
  readonly isDecoupled = false;
  readonly isHealthy = true;
  readonly failure = undefined;
  readonly stats: ModelStats;
  readonly open: InferCall[] = [];
  executedCount = 0;
  refusal: StatusError | undefined;
  isUnloaded = false;

  constructor(registry: MetricsRegistry, config = '') {
    this.config = parseModelConfig(`name: "m" response_cache { enable: true } ${config}`);
    this.stats = new ModelStats({
      name: this.name,
      version: this.version,
      metricTags: {},
      config: DEFAULT_METRICS_CONFIG,
      isCached: true,
      registry,
    });
  }

  get openCount(): number {
    return this.open.length;
  }

  labelsOf(): undefined {
    return undefined;
  }

  infer(call: InferCall): void {
    if (this.refusal !== undefined) throw this.refusal;
    this.open.push(call);
  }

  /** Executes the oldest open request. */
  execute(error?: StatusError): void {
    const { request, sink } = this.open.shift()!;
    this.executedCount++;
    if (error !== undefined) {
      sink.fail(error);
      return;
    }
    this.stats.recordSuccess(1, 1000, 0, 0, 1000, 0);
    const { data, byteLength, shape } = request.inputs[0]!;
    const outputs = [{ name: 'Y', datatype: 'FP32' as const, shape, data, byteLength }];
    sink.send({ modelName: 'm', modelVersion: 1, id: request.id, parameters: undefined, outputs }, true);
    sink.finish();
  }

  unload(): Promise<void> {
    this.isUnloaded = true;
    return Promise.resolve();
  }

  abandon(error: StatusError): void {
    while (this.open.length > 0) this.execute(error);
  }
}

export function testCache(store: CacheStore): {
  cache: ResponseCache;
  registry: MetricsRegistry;
  logged: string[];
} {
  const clock = new SimulatedClock();
  const registry = new MetricsRegistry(clock);
  const logged: string[] = [];
  const logger = createLogger({
    isQuoted: false,
    sink: {
      write: (line) => void logged.push(line),
      flush: () => Promise.resolve(),
      close: () => Promise.resolve(),
    },
  });
  return { cache: new ResponseCache(store, { clock, registry, logger }), registry, logged };
}

export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
