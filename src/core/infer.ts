// The way of every inference request into the core: find the model that serves it now, give it the request.
// No branch by protocol; every frontend calls this.

import type { InferRequest, ResponseSink } from '../domain/request.ts';
import type { RequestTrace } from '../domain/request-trace.ts';
import type { Cancellation } from '../lib/cancellation.ts';
import type { Catalog } from './repository/catalog.ts';

export interface InferTarget {
  readonly model: string;
  /** -1 for the newest. */
  readonly version: number;
}

export interface InferCall {
  readonly request: InferRequest;
  readonly sink: ResponseSink;
  /** Undefined when the caller cannot go away. */
  readonly cancellation: Cancellation | undefined;
  /** Undefined when this request is not traced. */
  readonly trace: RequestTrace | undefined;
  /** Instances that wait for this request; only calls of models have any. */
  readonly ancestors?: readonly object[] | undefined;
  /** Those that the model wants to see, by name in lower case; undefined for most models. */
  readonly headers?: ReadonlyMap<string, string> | undefined;
}

/** Throws a StatusError when the request is refused; otherwise the sink gets exactly one end. */
export function infer(catalog: Catalog, target: InferTarget, call: InferCall): void {
  catalog.find(target.model, target.version).infer(call);
}
