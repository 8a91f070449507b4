// The trace of one request as the rest of the server sees it: a place to leave timestamps. The core makes one only
// for requests that are sampled; everywhere else it is undefined, which costs one comparison.

import type { InferRequest, InferResponse } from './request.ts';

export const TRACE_ACTIVITIES = [
  'HTTP_RECV_START',
  'HTTP_RECV_END',
  'HTTP_SEND_START',
  'HTTP_SEND_END',
  'GRPC_WAITREAD_START',
  'GRPC_WAITREAD_END',
  'INFER_RESPONSE_COMPLETE',
  'GRPC_SEND_START',
  'GRPC_SEND_END',
  'REQUEST_START',
  'QUEUE_START',
  'COMPUTE_START',
  'COMPUTE_INPUT_END',
  'COMPUTE_OUTPUT_START',
  'COMPUTE_END',
  'REQUEST_END',
] as const;

export type TraceActivity = (typeof TRACE_ACTIVITIES)[number];

export interface RequestTrace {
  /** Now, or the clock milliseconds (performance.now) given. */
  mark(activity: TraceActivity, atMs?: number): void;
  /** The model, version and request that serve this trace; called once, before the first REQUEST_START. */
  begin(model: { readonly name: string; readonly version: number }, request: InferRequest): void;
  /** Only does something when tensors are traced. */
  response(response: InferResponse): void;
  /**
   * The W3C `traceparent` for what the model's execution causes elsewhere; undefined where traces go to files. The span
   * that it names is written with the trace.
   */
  traceparent(): string | undefined;
  /** The trace of a request that this one causes (a step of an ensemble, BLS); it needs no `end`. */
  child(): RequestTrace;
  /**
   * The frontend has sent the answer, or failed to: the trace is complete and may be written. What is marked
   * later in the same turn of the event loop is still part of it.
   */
  end(): void;
}
