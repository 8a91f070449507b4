// The way of every inference request into the core: find the model that serves it now, give it the request.
// No branch by protocol; every frontend calls this.

import type { InferRequest, ResponseSink } from '../domain/request.ts';
import type { Cancellation } from '../lib/cancellation.ts';
import type { Catalog } from './repository/catalog.ts';

export interface InferTarget {
  readonly model: string;
  /** -1 for the newest. */
  readonly version: number;
}

/** Throws a StatusError when the request is refused; otherwise the sink gets exactly one end. */
export function infer(
  catalog: Catalog,
  target: InferTarget,
  request: InferRequest,
  sink: ResponseSink,
  cancellation: Cancellation | undefined,
): void {
  catalog.find(target.model, target.version).infer(request, sink, cancellation);
}
