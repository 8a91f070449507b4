// One request on its way through a scheduler, made once and shared by queue, batch and statistics. It is
// answered exactly once: whoever sets `isAnswered` has the duty to call the sink.

import type { InferRequest, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import type { SentRequest } from '../../instance/execute-frame.ts';
import type { ReceivedOutput } from '../../instance/response-frame.ts';
import type { FailureReason } from '../stats/model-metrics.ts';

export interface BatchTiming {
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

export interface Entry {
  readonly request: InferRequest;
  readonly sent: SentRequest;
  readonly sink: ResponseSink;
  /** Rows this request adds to a batch; a batch of 0 counts as 1. */
  readonly batchSize: number;
  readonly byteLength: number;
  /** Requests batch together only when their keys are equal: same optional inputs, same variable shapes. */
  readonly batchKey: string;
  /** Clock milliseconds: handed to the core, put into the queue, given to an instance. */
  readonly startMs: number;
  queueStartMs: number;
  computeStartMs: number;
  /** Infinity when it never expires. */
  deadlineMs: number;
  level: number;
  isAnswered: boolean;
  payload: Payload | undefined;
  /** Set under preserve_ordering when the result is there before its turn. */
  release: (() => void) | undefined;
}

/** A batch given to an instance. */
export interface Payload {
  readonly batchId: number;
  readonly entries: readonly Entry[];
  readonly instance: InstancePort;
  cancelledCount: number;
}

/** What a scheduler needs of an instance. */
export interface InstancePort {
  readonly name: string;
  readonly state: 'starting' | 'ready' | 'restarting' | 'failed' | 'stopped';
  readonly inFlightCount: number;
  readonly lastError: StatusError | undefined;
  execute(batchId: number, requests: readonly SentRequest[]): void;
  cancel(batchId: number): void;
}

/** The model, as a scheduler sees it: it turns results into answers and statistics. */
export interface EntryOwner {
  /** The request left the queue for an instance. */
  entryStarted(entry: Entry): void;
  succeed(entry: Entry, outputs: readonly ReceivedOutput[], timing: BatchTiming): void;
  fail(entry: Entry, error: StatusError, reason: FailureReason): void;
  /** Once per executed batch of which at least one request succeeded. */
  batchExecuted(batchSize: number, timing: BatchTiming): void;
}
