// Used by tests and simulations alone: a model that answers with the number of the clock, or not at all, on a simulated
// clock; a catalog that holds such models; and a sink that counts its ends.

import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig, ModelRouter } from '../../domain/model-config.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import {
  EMPTY_REQUEST,
  type InferRequest,
  type InferResponse,
  type ResponseSink,
} from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import type { Clock } from '../../lib/clock.ts';
import type { InferCall } from '../infer.ts';
import type { ServedModel } from '../model/served-model.ts';
import type { Catalog } from '../repository/catalog.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import { ModelStats } from '../stats/model-stats.ts';
import { RouterMemory } from './router-memory.ts';
import { RouterMetrics } from './router-metrics.ts';
import { RouterModel, type RouterOptions } from './router-model.ts';
import { toRouterPolicy } from './router-policy.ts';

export function makeConfig(fields: Partial<ModelConfig> = {}): ModelConfig {
  return { ...(createMessage('ModelConfig') as unknown as ModelConfig), ...fields };
}

export const METRICS_CONFIG = {
  isCounterLatencies: false,
  isSummaryLatencies: false,
  isHistogramLatencies: false,
  summaryQuantiles: [],
} as const;

/** What a model does with a request. */
export type Behaviour =
  | { readonly kind: 'answer' | 'fail'; readonly delayMs: number; readonly error?: StatusError }
  | { readonly kind: 'refuse'; readonly error: StatusError }
  | { readonly kind: 'hang' };

const INPUT: TensorSpec = { name: 'X', datatype: 'FP32', dims: [1], optional: false };

export class TestTarget implements ServedModel {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly stats: ModelStats;
  readonly maxBatchSize = 8;
  readonly isDecoupled = false;
  inputs: readonly TensorSpec[] = [INPUT];
  readonly outputs: readonly TensorSpec[] = [{ ...INPUT, name: 'Y' }];
  isHealthy = true;
  failure: StatusError | undefined;
  behaviour: Behaviour = { kind: 'answer', delayMs: 1 };
  /** Every request it was given. */
  readonly seen: InferCall[] = [];
  readonly #clock: Clock;
  readonly #open = new Set<InferCall>();

  constructor(name: string, clock: Clock, fields: Partial<ModelConfig> & { version?: number } = {}) {
    this.name = name;
    this.version = fields.version ?? 1;
    const { version: _version, ...rest } = fields;
    this.config = makeConfig({ name, ...rest });
    this.#clock = clock;
    this.stats = makeStats(name, clock);
  }

  get openCount(): number {
    return this.#open.size;
  }

  labelsOf(): undefined {
    return undefined;
  }

  infer(call: InferCall): void {
    this.seen.push(call);
    const { behaviour } = this;
    if (behaviour.kind === 'refuse') throw behaviour.error;
    this.#open.add(call);
    call.cancellation?.onCancel(() => this.#end(call, new StatusError('CANCELLED', '')));
    if (behaviour.kind === 'hang') return;
    const error =
      behaviour.kind === 'fail' ? (behaviour.error ?? new StatusError('INTERNAL', 'broken')) : undefined;
    this.#clock.setTimer(behaviour.delayMs, () => this.#end(call, error));
  }

  /** Ends all that hangs. */
  release(error?: StatusError): void {
    for (const call of [...this.#open]) this.#end(call, error);
  }

  #end(call: InferCall, error: StatusError | undefined): void {
    if (!this.#open.delete(call)) return;
    if (error !== undefined) {
      call.sink.fail(error);
      return;
    }
    const { id } = call.request;
    call.sink.send(
      { modelName: this.name, modelVersion: this.version, id, parameters: undefined, outputs: [] },
      true,
    );
    call.sink.finish();
  }

  async unload(): Promise<void> {}

  abandon(): void {}
}

function makeStats(name: string, clock: Clock): ModelStats {
  const registry = new MetricsRegistry(clock);
  return new ModelStats({
    name,
    version: 1,
    metricTags: {},
    config: METRICS_CONFIG,
    isCached: false,
    registry,
  });
}

export function put(catalog: Catalog, model: ServedModel): void {
  catalog.set(model.name, model.version, { state: 'READY', reason: '', model });
}

export function makeRouter(
  router: Partial<ModelRouter>,
  parts: Pick<RouterOptions, 'catalog' | 'clock' | 'random'> & {
    registry?: MetricsRegistry;
    memory?: RouterMemory;
    log?: RouterOptions['log'];
    config?: Partial<ModelConfig>;
  },
): RouterModel {
  const { catalog, clock, random } = parts;
  const full: ModelRouter = { ...(createMessage('ModelRouter') as unknown as ModelRouter), ...router };
  const registry = parts.registry ?? new MetricsRegistry(clock);
  return new RouterModel({
    config: makeConfig({ name: 'ab', platform: 'router', router: full, ...parts.config }),
    version: 1,
    policy: toRouterPolicy(full),
    catalog,
    clock,
    random,
    stats: makeStats('ab', clock),
    metrics: new RouterMetrics(registry, 'ab'),
    log: parts.log ?? { warn() {}, info() {} },
    memory: parts.memory ?? new RouterMemory(),
  });
}

export function target(name: string, weight: number, more: Partial<ModelRouter['target'][number]> = {}) {
  return { name, model: name, version: '', weight, rolled_back: '', ...more };
}

export function makeRequest(fields: Partial<InferRequest> = {}): InferRequest {
  const input = {
    name: 'X',
    datatype: 'FP32',
    shape: [1, 1],
    data: [Buffer.alloc(4)],
    byteLength: 4,
  } as const;
  return { ...EMPTY_REQUEST, inputs: [input], ...fields };
}

/** Counts its ends: there must be exactly one. */
export class CountingSink implements ResponseSink {
  endCount = 0;
  response: InferResponse | undefined;
  error: StatusError | undefined;
  onRoom: (() => void) | undefined;

  send(response: InferResponse): boolean {
    this.response = response;
    return true;
  }

  sendError(error: StatusError): boolean {
    this.error = error;
    return true;
  }

  finish(): void {
    this.endCount++;
  }

  fail(error: StatusError): void {
    this.endCount++;
    this.error = error;
  }
}
