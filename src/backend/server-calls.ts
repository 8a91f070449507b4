// What a model in a host may ask of the server while it runs: other models' answers, load and unload, readiness,
// metrics. A backend calls it; src/instance carries it over the socket (docs/host-protocol.md, CALL and RESULT).

import type { DataType } from '../domain/datatype.ts';
import type { Parameters } from '../domain/request.ts';
import type { StatusError } from '../domain/status.ts';

export interface ServerTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly data: Buffer;
}

export interface ServerInferCall {
  /** The request during whose execution the call is made; its cancellation cancels the call. */
  readonly parent: { readonly batchId: number; readonly request: number } | undefined;
  readonly model: string;
  /** -1 for the newest. */
  readonly version: number;
  readonly id: string;
  readonly correlationId: number | string;
  readonly flags: number;
  readonly priority: number;
  readonly timeoutUs: number;
  readonly parameters: Parameters | undefined;
  /** Empty: all. */
  readonly requestedOutputs: readonly string[];
  readonly inputs: readonly ServerTensor[];
  /** Several responses are welcome. */
  readonly isStream: boolean;
}

export interface ServerInferResponse {
  readonly model: string;
  readonly version: number;
  readonly id: string;
  readonly parameters: Parameters | undefined;
  readonly outputs: readonly ServerTensor[];
}

/** Any number of responses, an error among them, and then one end. */
export interface ServerInferEvents {
  onResponse(response: ServerInferResponse | StatusError): void;
  /** The error when the request failed as a whole. */
  onEnd(error: StatusError | undefined): void;
}

export interface OpenInferCall {
  /** The end still comes, with an error. */
  cancel(): void;
  setPaused(isPaused: boolean): void;
}

export interface ServerMetricCall {
  readonly family: {
    readonly name: string;
    readonly help: string;
    readonly type: 'counter' | 'gauge' | 'histogram';
  };
  readonly labels: Readonly<Record<string, string>>;
  /** Upper bounds of a histogram. */
  readonly buckets: readonly number[];
  readonly action: 'create' | 'increment' | 'set' | 'observe' | 'value' | 'delete';
  readonly value: number;
  /** Observations of this value; one where it is left out. */
  readonly count?: number;
}

/** Promises reject with a StatusError. */
export interface ServerCalls {
  infer(call: ServerInferCall, events: ServerInferEvents): OpenInferCall;
  /** `config` is JSON; empty for the one in the repository. */
  load(
    model: string,
    override: { config: string; files: readonly { path: string; content: Buffer }[] },
  ): Promise<void>;
  unload(model: string): Promise<void>;
  /** Version as decimal text; empty for the newest. */
  isReady(model: string, version: string): Promise<boolean>;
  /** The value after the action. */
  metric(call: ServerMetricCall): Promise<number>;
  /** Actions in this order, of which nobody wants to hear; what the server refuses is left out. */
  noteMetrics(calls: readonly ServerMetricCall[]): void;
}
