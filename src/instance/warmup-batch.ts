// What an instance runs before it is ready, and how long it took. Made by core/model/warmup.ts, run by instance.ts.

import type { SentRequest } from './execute-frame.ts';
import type { ReceivedReply } from './response-frame.ts';

export interface WarmupBatch {
  readonly sample: string;
  readonly requests: readonly SentRequest[];
}

/** One execution of such a batch; it counts in the statistics like any other, as in Triton. */
export interface WarmupRun {
  readonly requestCount: number;
  readonly requestNs: number;
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

/** Keeps the times and lets go of the outputs. */
export function warmupRunOf(batch: WarmupBatch, reply: ReceivedReply, requestNs: number): WarmupRun {
  const { computeInputNs, computeInferNs, computeOutputNs } = reply;
  return { requestCount: batch.requests.length, requestNs, computeInputNs, computeInferNs, computeOutputNs };
}
