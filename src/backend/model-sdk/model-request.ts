// A request and its answers as a model sees them. src/backends/node implements the interfaces.

import type { Tensor } from './tensor.ts';

/** Whole numbers beyond 2^53 are bigints. A whole number is sent as an int64, any other number as a double. */
export type ParameterValue = string | number | bigint | boolean;

export interface InferRequest {
  /** Empty when the client gave none. */
  readonly id: string;
  /** 0 or '' when the request belongs to no sequence; a bigint beyond 2^53. */
  readonly correlationId: number | bigint | string;
  /** 1 at the start of a sequence, 2 at its end, 3 for both. */
  readonly flags: number;
  readonly priority: number;
  /** As the client set it; 0 when it did not. */
  readonly timeoutUs: number | bigint;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  readonly inputs: readonly Tensor[];
  /** Throws when the request has no such input. */
  input(name: string): Tensor;
  /** For inputs that the config calls optional. */
  optionalInput(name: string): Tensor | undefined;
  /** Names; all outputs of the model when the client asked for none by name. Others may be left out. */
  readonly requestedOutputs: readonly string[];
  /** Nobody waits for the answer any more. */
  readonly isCancelled: boolean;
  /** Aborted when the request is cancelled: for fetch, timers and context.infer. */
  readonly signal: AbortSignal;
  /** The way to answer many times; for decoupled models alone. */
  sender(): ResponseSender;
}

export interface InferResponse {
  readonly outputs: readonly Tensor[];
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
}

export interface ResponseSender {
  readonly isCancelled: boolean;
  /** Resolves when the client has room for the next response, or has gone. An Error is one failed response. */
  send(response: InferResponse | Error): Promise<void>;
  /** The end, with a last response or without. What comes after it is an error. */
  finish(response?: InferResponse | Error): void;
}
