// One request on its way through a scheduler, made once and shared by queue, batch and statistics. It is
// answered exactly once: whoever sets `isAnswered` has the duty to call the sink.

import type { InferRequest, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import type { StatusError } from '../../domain/status.ts';
import type { SentRequest } from '../../instance/execute-frame.ts';
import type { ReceivedOutputs } from '../../instance/result-codec.ts';
import type { FailureReason } from '../stats/model-metrics.ts';
import type { SequenceTicket } from './sequence/sequence.ts';

export interface BatchTiming {
  readonly computeInputNs: number;
  readonly computeInferNs: number;
  readonly computeOutputNs: number;
}

export interface ExecutedBatch extends BatchTiming {
  /** The system has taken every byte of the batch. */
  readonly areInputsSent?: boolean;
}

export interface Entry {
  readonly request: InferRequest;
  readonly sent: SentRequest;
  readonly sink: ResponseSink;
  readonly trace: RequestTrace | undefined;
  /** Instances that wait for this request; only calls of models have any. */
  readonly ancestors: readonly object[] | undefined;
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
  /** The end has come or is on its way; nothing may be sent any more. */
  isAnswered: boolean;
  payload: Payload | undefined;
  /** Its place in the payload. */
  index: number;
  /** Its success is in the statistics; those of a decoupled model count when the execution is over. */
  isCounted: boolean;
  /** The host was told that this client reads too slowly. */
  isPaused: boolean;
  /** Under preserve_ordering: responses and the end that came before its turn. */
  held: (() => void)[] | undefined;
  isEnded: boolean;
  /** Its part in a sequence; only where the model's scheduler is the sequence batcher. */
  sequence?: SequenceTicket | undefined;
}

/** One place of a batch whose places are fixed; without an entry its result is thrown away. */
export interface BatchPlace {
  readonly entry: Entry | undefined;
  readonly sent: SentRequest;
}

/** A batch given to an instance. */
export interface Payload {
  readonly batchId: number;
  /** In the order of their places; places that are only filled up have none. */
  readonly entries: readonly Entry[];
  /** Rows that are only filled up. */
  readonly filledSize: number;
  readonly instance: InstancePort;
  /** Entries without an end. */
  openCount: number;
  /** The execution is over, or the instance was lost. */
  isExecuted: boolean;
  /** The instance has gone on to other work, and open entries are answered part by part. */
  isLingering: boolean;
}

/** What a scheduler needs of an instance. */
export interface InstancePort {
  readonly name: string;
  readonly state: 'starting' | 'ready' | 'restarting' | 'failed' | 'stopped';
  readonly inFlightCount: number;
  /** The rate limiter lets it begin another batch now; schedulers hear of a change by onInstanceChange. */
  readonly isAdmitted: boolean;
  readonly lastError: StatusError | undefined;
  execute(batchId: number, requests: readonly SentRequest[]): void;
  cancel(batchId: number, request: number): void;
  setPaused(batchId: number, request: number, isPaused: boolean): void;
}

/** The model, as a scheduler sees it: it turns results into answers and statistics. */
export interface EntryOwner {
  /** The request left the queue for an instance. */
  entryStarted(entry: Entry): void;
  /** The model wants to execute the request once more; it waits again. */
  entryRequeued(entry: Entry): void;
  succeed(entry: Entry, result: ReceivedOutputs, batch: ExecutedBatch): void;
  /** One response of many; undefined is a response without content. False: the client reads too slowly. */
  respond(entry: Entry, result: ReceivedOutputs | StatusError | undefined, isFinal: boolean): boolean;
  /** The end of a request that was answered part by part. */
  finish(entry: Entry): void;
  /** Such a request has been executed; its answers may go on. */
  executed(entry: Entry, timing: BatchTiming): void;
  fail(entry: Entry, error: StatusError, reason: FailureReason): void;
  /** Once per executed batch of which at least one request succeeded. */
  batchExecuted(batchSize: number, timing: BatchTiming): void;
}
