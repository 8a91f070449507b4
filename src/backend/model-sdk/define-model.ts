// The shape of a model file: its default export. `defineModel` changes nothing; it lets an editor know the types.

import type { DataType } from '../../domain/datatype.ts';
import type { ModelContext } from './model-context.ts';
import type { InferRequest, InferResponse } from './model-request.ts';

export interface ModelDefinition {
  /** Completes what config.pbtxt leaves out; with it there need not be a config.pbtxt. */
  readonly config?: ModelSettings;
  /** Called once, before the first request. */
  initialize?(context: ModelContext): void | Promise<void>;
  /**
   * One response, or Error, for each request, in their order; each may be a promise. What it throws fails all requests.
   * A decoupled model answers through `request.sender()`: it may return nothing, its executions overlap, and when one is
   * over its open requests are finished.
   */
  execute(requests: readonly InferRequest[], context: ModelContext): ExecuteAnswer | Promise<ExecuteAnswer>;
  /** Called once, after the last request. */
  finalize?(): void | Promise<void>;
}

/** Undefined only from decoupled models, which have answered by their senders. */
// biome-ignore lint/suspicious/noConfusingVoidType: an async function without a return statement has this type.
export type RequestAnswer = InferResponse | Error | undefined | void;

export type ExecuteAnswer =
  | readonly (RequestAnswer | Promise<RequestAnswer>)[]
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: so has an execute that returns nothing.
  | void;

export interface ModelSettings {
  /** 0: the model does not batch. */
  readonly maxBatchSize?: number;
  readonly inputs?: readonly TensorSettings[];
  readonly outputs?: readonly TensorSettings[];
  /** Requests that come together are executed together, up to maxBatchSize. */
  readonly dynamicBatching?: boolean | DynamicBatchingSettings;
  /** The model answers a request any number of times. */
  readonly decoupled?: boolean;
}

export interface TensorSettings {
  readonly name: string;
  readonly datatype: DataType;
  /** Without the batch dimension; -1 is variable. */
  readonly dims: readonly number[];
  /** For inputs. */
  readonly optional?: boolean;
}

export interface DynamicBatchingSettings {
  readonly preferredBatchSize?: readonly number[];
  readonly maxQueueDelayUs?: number;
}

export function defineModel(definition: ModelDefinition): ModelDefinition {
  return definition;
}
