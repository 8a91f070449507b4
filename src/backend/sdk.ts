// The backend SDK: Backend → BackendModel → BackendInstance.execute. Everything here runs inside a host
// process, one per model instance; src/instance carries it over the socket. A backend knows neither core nor
// any other backend, and throws StatusError for what the user should read.

import type { ModelConfig } from '../domain/model-config.ts';
import type { Parameters } from '../domain/request.ts';
import { type StatusCode, StatusError } from '../domain/status.ts';
import type { ServerCalls } from './server-calls.ts';

export interface Backend {
  readonly name: string;
  /** Opens the model file, completes the config if asked to, and checks config against file. */
  load(context: LoadContext): Promise<BackendModel>;
}

export interface InstancePlacement {
  /** `<group>_<i>` */
  readonly name: string;
  readonly kind: 'KIND_CPU' | 'KIND_GPU' | 'KIND_MODEL';
  readonly deviceId: number;
  /** Threads this instance should use for one operator unless the config says otherwise. */
  readonly threadCount: number;
}

export type LogLevel = 'error' | 'warning' | 'info' | 'verbose';

export interface LoadContext {
  readonly modelName: string;
  readonly version: number;
  /** `<repository>/<model>` */
  readonly modelDirectory: string;
  /** `<repository>/<model>/<version>` */
  readonly versionDirectory: string;
  readonly config: ModelConfig;
  readonly isAutoComplete: boolean;
  /** `--backend-config=<backend>,<setting>=<value>`, the global settings included. */
  readonly backendConfig: Readonly<Record<string, string>>;
  readonly placement: InstancePlacement;
  log(level: LogLevel, message: string): void;
}

export interface BackendModel {
  /** The config with what the backend completed: max_batch_size, input, output, dynamic_batching, decoupled. */
  readonly config: ModelConfig;
  /** True: requests come with their `info`. */
  readonly isRequestInfoWanted?: boolean;
  /**
   * Called once, with the config the server has normalised and validated, and with what the model may ask of the server
   * while it runs. Tests start an instance without a server.
   */
  start(config: ModelConfig, calls?: ServerCalls): Promise<BackendInstance>;
}

/**
 * One execution. The bytes of one input lie in `payload` request after request with no gap, the first at a
 * multiple of 64, so a backend that concatenates may use them as they are:
 *
 *   payload: │ input 0: req 0 │ req 1 │ … │ pad │ input 1: req 0 │ req 1 │ … │
 */
export interface ExecuteBatch {
  readonly id: number;
  readonly payload: Buffer;
  readonly requests: readonly ExecuteRequest[];
}

export interface ExecuteRequest {
  readonly inputs: readonly ExecuteInput[];
  /** Indexes into config.output; empty means all. */
  readonly requestedOutputs: readonly number[];
  /** JSON (docs/host-protocol.md, request info); undefined unless the model asked for it. */
  readonly info?: Buffer | undefined;
  /** Undefined for requests outside of a sequence, such as warmup and the null requests that fill a batch. */
  readonly state?: StateSlot | undefined;
}

/** Where the implicit state of a request's sequence is kept; slots count from 0 in each instance. */
export interface StateSlot {
  readonly slot: number;
  readonly isStart: boolean;
  readonly isEnd: boolean;
}

export interface ExecuteInput {
  /** Counts in config.input, then in sequence_batching.control_input, then in sequence_batching.state. */
  readonly index: number;
  /** Batch dimension included, `reshape` already applied. */
  readonly shape: readonly number[];
  readonly offset: number;
  readonly byteLength: number;
}

export interface ExecuteOutput {
  /** Index into config.output. */
  readonly index: number;
  /** As the model produced it, batch dimension included; the server applies `reshape`. */
  readonly shape: readonly number[];
  readonly data: Buffer;
}

/** The result of a request that is answered through its sender, during the execution or after it. */
export const BY_SENDER = Symbol('answered by its sender');

/** The outputs of one response, with its parameters where the model has set some. */
export type ExecuteOutputs = readonly ExecuteOutput[] & { readonly parameters?: Parameters | undefined };

/** An error of the model itself, which statistics count as an execution. Any other StatusError says: not executed. */
export class ExecuteError extends StatusError {
  /** `failed`: the execution broke. `answered`: the error is the model's answer, which Triton counts as a success. */
  readonly kind: 'failed' | 'answered';

  constructor(code: StatusCode, message: string, kind: 'failed' | 'answered') {
    super(code, message);
    this.kind = kind;
  }
}

export type ExecuteResult = ExecuteOutputs | StatusError | typeof BY_SENDER;

/** Answers one request any number of times, as decoupled models do. The bytes must not change after `send`. */
export interface ResponseSender {
  readonly isCancelled: boolean;
  /** False while the client reads too slowly, for those who would rather not wait. */
  readonly hasRoom: boolean;
  /** The client reads too slowly; resolves when it has caught up or gone. */
  whenRoom(): Promise<void>;
  send(response: ExecuteOutputs | StatusError, isFinal: boolean): void;
  /** The end without another response. */
  finish(): void;
}

export interface ExecuteReply {
  /** One per request, in the order of the batch. */
  readonly results: readonly ExecuteResult[];
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
  /** Called once the bytes have left the process; until then `data` must stay valid. */
  release?(): void;
}

export interface BackendInstance {
  /** Never called again before it has answered. A synchronous answer is the fast path. */
  execute(
    batch: ExecuteBatch,
    senderOf: (request: number) => ResponseSender,
  ): ExecuteReply | Promise<ExecuteReply>;
  /** The requests of this batch are no longer wanted; the backend may stop early and fail them CANCELLED. */
  cancel(batchId: number): void;
  /** Nobody waits for this one request any more, whether its batch runs or its sender is still open. */
  cancelRequest?(batchId: number, request: number): void;
  close(): void | Promise<void>;
}
