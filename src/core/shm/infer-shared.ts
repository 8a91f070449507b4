// An inference whose tensors lie in shared memory: ranges are held, inputs copied in, the request started, outputs
// copied out, and the ranges let go with the last answer. Both frontends call it in place of `infer` for such a
// request; other requests do not come here.

import type { RequestRanges } from '../../domain/memory-range.ts';
import type { InferRequest, ResponseSink } from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import type { InferCall } from '../infer.ts';
import { RequestMemory } from './request-memory.ts';
import type { SharedMemory } from './shared-memory.ts';
import { SharedMemorySink } from './shared-memory-sink.ts';

export interface SharedInfer {
  readonly memory: SharedMemory;
  readonly ranges: RequestRanges;
  readonly isDecoupled: boolean;
  readonly call: InferCall;
  /** Throws when the request is refused. */
  infer(call: InferCall): void;
  /** The request was refused after this function had returned. */
  onRefused(error: StatusError): void;
}

/** Throws when the request is refused at once; otherwise the sink is answered, or `onRefused` is called. */
export function inferShared(options: SharedInfer): void {
  const { call } = options;
  const held = new RequestMemory(options.memory, options.ranges);
  const sink: ResponseSink = new SharedMemorySink(call.sink, held, { isDecoupled: options.isDecoupled });
  const start = (request: InferRequest): void => options.infer({ ...call, request, sink });
  try {
    const filled = held.fill(call.request);
    if (filled instanceof Promise) void startLater(filled, { start, held, options });
    else start(filled);
  } catch (thrown) {
    held.release();
    throw thrown;
  }
}

async function startLater(
  filled: Promise<InferRequest>,
  parts: { start: (request: InferRequest) => void; held: RequestMemory; options: SharedInfer },
): Promise<void> {
  try {
    parts.start(await filled);
  } catch (thrown) {
    parts.held.release();
    parts.options.onRefused(StatusError.from(thrown));
  }
}
