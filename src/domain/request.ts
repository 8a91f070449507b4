// An inference request and its answer, free of any protocol.
// Wire code makes requests and writes responses; core moves them; backends see only tensors.

import type { Lease } from '../lib/chunk-pool.ts';
import type { StatusError } from './status.ts';
import type { InputTensor, OutputTensor } from './tensor.ts';

/** bigint is an int64 parameter, number a double. */
export type ParameterValue = string | boolean | bigint | number;
export type Parameters = ReadonlyMap<string, ParameterValue>;

export const SEQUENCE_START = 1;
export const SEQUENCE_END = 2;

export interface InferRequest {
  /** Empty when the client gave none. */
  readonly id: string;
  readonly inputs: readonly InputTensor[];
  /** Names without repeats; empty means every output of the model. */
  readonly requestedOutputs: readonly string[];
  readonly parameters: Parameters | undefined;
  /** 0n or '' when the request belongs to no sequence. */
  readonly correlationId: bigint | string;
  /** SEQUENCE_START | SEQUENCE_END */
  readonly sequenceFlags: number;
  readonly priority: number;
  /** Microseconds; 0 means the model's own timeout. A bigint only where a number would not be exact. */
  readonly timeoutUs: number | bigint;
  /** A raw binary request: the body was the one input's bytes and the shape was deduced. */
  readonly isRaw: boolean;
}

/** A request that says nothing; what is made in the server starts from it. */
export const EMPTY_REQUEST: InferRequest = {
  id: '',
  inputs: [],
  requestedOutputs: [],
  parameters: undefined,
  correlationId: 0n,
  sequenceFlags: 0,
  priority: 0,
  timeoutUs: 0,
  isRaw: false,
};

export interface InferResponse {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly id: string;
  readonly parameters: Parameters | undefined;
  readonly outputs: readonly OutputTensor[];
}

/**
 * Where the answers of one request go: any number of `send` and `sendError`, then exactly one of `finish` and
 * `fail`. One interface for unary, decoupled and token streams. `send` and `sendError` return false when the
 * client reads too slowly to take more for now; `onRoom`, set by the core, is called once it has caught up. A
 * sender that goes on all the same is not refused.
 */
export interface ResponseSink {
  /** `isFinal` when the model said with this response that no other follows; `finish` still comes. */
  send(response: InferResponse, isFinal: boolean): boolean;
  /** One response of a decoupled model failed and the model goes on. */
  sendError(error: StatusError, isFinal: boolean): boolean;
  finish(): void;
  fail(error: StatusError): void;
  /**
   * Between the only `send` and `finish`: nobody but this sink refers to the tensors of request and response any more, and
   * `outputs` is the lease of the latter, if they have one. A sink that stands before another one must not pass it on: what
   * put it there may keep tensors.
   */
  own?(outputs: Lease | undefined): void;
  onRoom?: (() => void) | undefined;
}
