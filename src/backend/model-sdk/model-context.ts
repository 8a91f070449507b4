// What a model may know and ask for: itself, other models (business logic scripting), the repository, metrics, the log.
// src/backends/node implements the interfaces.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { InferRequest, ParameterValue } from './model-request.ts';
import type { Tensor } from './tensor.ts';

export interface ModelContext {
  readonly modelName: string;
  readonly version: number;
  /** `<repository>/<model>` */
  readonly modelDirectory: string;
  /** `<repository>/<model>/<version>` */
  readonly versionDirectory: string;
  readonly instanceName: string;
  /** As it is served, with the field names of model_config.proto. */
  readonly config: ModelConfig;
  /** `parameters` of the config. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly log: ModelLog;
  readonly metrics: ModelMetrics;
  /** One response of another model; rejects with a ModelError. */
  infer(model: string, options: InferOptions): Promise<InferResult>;
  /** Every response of another model, decoupled or not. To leave the loop is to cancel the request. */
  stream(model: string, options: InferOptions): AsyncIterableIterator<InferResult>;
  loadModel(model: string, options?: ControlOptions): Promise<void>;
  unloadModel(model: string): Promise<void>;
  /** The newest version, unless one is given. */
  isModelReady(model: string, version?: number): Promise<boolean>;
}

export interface InferOptions {
  readonly inputs: readonly Tensor[];
  /** Names; all when left out. */
  readonly outputs?: readonly string[];
  /** The newest when left out. */
  readonly version?: number;
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
  readonly id?: string;
  readonly correlationId?: number | string;
  /** 1 at the start of a sequence, 2 at its end, 3 for both. */
  readonly flags?: number;
  readonly priority?: number;
  readonly timeoutUs?: number;
  readonly signal?: AbortSignal;
  /**
   * The request for whose sake this one is made: when its client goes, so does this. Left out, it is the request of the
   * batch where the batch has only one.
   */
  readonly request?: InferRequest;
}

export interface InferResult {
  readonly modelName: string;
  readonly version: number;
  readonly id: string;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  readonly outputs: readonly Tensor[];
  /** Throws when the response has no such output. */
  output(name: string): Tensor;
}

export interface ControlOptions {
  /** In place of config.pbtxt: a ModelConfig, or its JSON. */
  readonly config?: object | string;
  /** In place of the model's directory, by path: `1/model.onnx`. They need `config`. */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

/** Lines of the server's log, with the model and the instance in front. */
export interface ModelLog {
  error(message: string): void;
  warn(message: string): void;
  info(message: string): void;
  /** Shown with --log-verbose. */
  verbose(message: string): void;
}

export interface MetricOptions {
  readonly help?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Metrics of the model's own on the server's metrics port. Equal names and labels are one and the same. */
export interface ModelMetrics {
  counter(name: string, options?: MetricOptions): Counter;
  gauge(name: string, options?: MetricOptions): Gauge;
  /** Upper bounds of the buckets, ascending, without infinity. */
  histogram(name: string, options: MetricOptions & { readonly buckets: readonly number[] }): Histogram;
}

export interface Counter {
  /** One, unless told otherwise; never negative. */
  increment(by?: number): void;
  /** Over all instances of the model. */
  value(): Promise<number>;
}

export interface Gauge {
  set(value: number): void;
  increment(by?: number): void;
  value(): Promise<number>;
}

export interface Histogram {
  observe(value: number): void;
}
