// What a scheduler has given to instances and what has not had its end: batches that run, and requests of decoupled
// models that are answered part by part after their batch is over. Turns results into answers, each request exactly
// one end. Used by every scheduler; it decides nothing about batches.

import { StatusError } from '../../domain/status.ts';
import type { SentRequest } from '../../instance/execute-frame.ts';
import type { ReceivedPart } from '../../instance/part-frame.ts';
import type { ReceivedReply } from '../../instance/response-frame.ts';
import { BY_SENDER, RESCHEDULE, ReceivedError, type ReceivedResult } from '../../instance/result-codec.ts';
import { NumberTable } from '../../lib/number-table.ts';
import type { FailureReason } from '../stats/model-metrics.ts';
import type { BatchPlace, Entry, EntryOwner, InstancePort, Payload } from './entry.ts';
import { OrderedAnswers } from './ordered-answers.ts';

/** Weight of the newest batch in the moving average of compute time. */
const COMPUTE_WEIGHT = 0.2;

const NO_RESCHEDULE =
  'Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag.';

export interface DispatchedOptions {
  readonly owner: EntryOwner;
  readonly isOrderPreserved: boolean;
  /** An instance has room again, or nothing is open any more. */
  onProgress(): void;
  /** The request has had its end and its execution is over, in whichever order; once for every request sent. */
  onDone?(entry: Entry): void;
  /** The model wants to execute the request once more. Without this hook such a request fails. */
  onReschedule?(entry: Entry): void;
}

export class Dispatched {
  readonly #owner: EntryOwner;
  readonly #onProgress: () => void;
  readonly #onDone: ((entry: Entry) => void) | undefined;
  readonly #onReschedule: ((entry: Entry) => void) | undefined;
  readonly #ordered: OrderedAnswers | undefined;
  readonly #payloads = new NumberTable<Payload>();
  /** Batches that are over but have requests without an end, by instance. */
  readonly #lingering = new Map<InstancePort, number>();
  #nextBatchId = 1;
  /** Moving average; infinite until the first batch has been measured. */
  #computeNs = Number.POSITIVE_INFINITY;
  #answerBytes = 0;

  constructor(options: DispatchedOptions) {
    this.#owner = options.owner;
    this.#onProgress = options.onProgress;
    this.#onDone = options.onDone;
    this.#onReschedule = options.onReschedule;
    this.#ordered = options.isOrderPreserved ? new OrderedAnswers() : undefined;
  }

  get isEmpty(): boolean {
    return this.#payloads.size === 0;
  }

  /** Requests given to an instance and without an end. */
  get openCount(): number {
    let count = 0;
    for (const payload of this.#payloads.values()) count += payload.openCount;
    return count;
  }

  get computeNs(): number {
    return this.#computeNs;
  }

  /** Of the request that was answered last. */
  get answerBytes(): number {
    return this.#answerBytes;
  }

  lingeringCountOf(instance: InstancePort): number {
    return this.#lingering.get(instance) ?? 0;
  }

  /** The request as an instance knows it; undefined when it has ended. */
  entryOf(batchId: number, request: number): Entry | undefined {
    const payload = this.#payloads.get(batchId);
    return payload === undefined ? undefined : entryAt(payload, request);
  }

  /** Every accepted request, in the order of arrival. */
  accept(entry: Entry): void {
    this.#ordered?.add(entry);
  }

  send(instance: InstancePort, entries: readonly Entry[], nowMs: number): void {
    for (let i = 0; i < entries.length; i++) entries[i]!.index = i;
    const requests = entries.map((entry) => entry.sent);
    this.#begin(instance, { entries, requests, nowMs });
  }

  /** A batch in which some places may belong to no request. */
  sendPlaces(instance: InstancePort, places: readonly BatchPlace[], nowMs: number): void {
    const entries: Entry[] = [];
    for (let i = 0; i < places.length; i++) {
      const { entry } = places[i]!;
      if (entry === undefined) continue;
      entry.index = i;
      entries.push(entry);
    }
    const requests = places.map((place) => place.sent);
    this.#begin(instance, { entries, requests, nowMs });
  }

  #begin(
    instance: InstancePort,
    batch: { entries: readonly Entry[]; requests: readonly SentRequest[]; nowMs: number },
  ): void {
    const { entries, requests } = batch;
    const batchId = this.#nextBatchId;
    this.#nextBatchId = batchId === 0xffff_ffff ? 1 : batchId + 1;
    const payload: Payload = {
      batchId,
      entries,
      filledSize: requests.length - entries.length,
      instance,
      openCount: entries.length,
      isExecuted: false,
      isLingering: false,
    };
    this.#payloads.set(batchId, payload);
    for (const entry of entries) {
      entry.computeStartMs = batch.nowMs;
      entry.payload = payload;
      this.#owner.entryStarted(entry);
    }
    try {
      instance.execute(batchId, requests);
    } catch (thrown) {
      // A defect of ours costs these requests, not the server.
      payload.isExecuted = true;
      for (const entry of entries) this.fail(entry, StatusError.from(thrown), 'OTHER');
      this.#payloads.delete(batchId);
    }
  }

  onReply(reply: ReceivedReply): void {
    const payload = this.#payloads.get(reply.batchId);
    if (payload === undefined || payload.isExecuted) return;
    payload.isExecuted = true;
    let executedSize = 0;
    for (const entry of payload.entries) {
      if (isExecuted(reply.results[entry.index])) executedSize += entry.batchSize;
    }
    if (executedSize > 0) {
      // A batch that was not executed says nothing about how long the model takes.
      const isFirst = this.#computeNs === Number.POSITIVE_INFINITY;
      if (isFirst) this.#computeNs = reply.computeInferNs;
      else this.#computeNs += (reply.computeInferNs - this.#computeNs) * COMPUTE_WEIGHT;
      this.#answerBytes = byteLengthOf(reply.results[0]);
      this.#owner.batchExecuted(executedSize + payload.filledSize, reply);
    }
    const again: Entry[] = [];
    for (const entry of payload.entries) {
      const result = reply.results[entry.index];
      if (result === RESCHEDULE && this.#leave(entry, reply)) again.push(entry);
      else this.#answer(entry, result, reply);
    }
    if (payload.openCount === 0) this.#payloads.delete(payload.batchId);
    else {
      payload.isLingering = true;
      this.#lingering.set(payload.instance, this.lingeringCountOf(payload.instance) + 1);
    }
    for (const entry of again) this.#onReschedule!(entry);
    this.#onProgress();
  }

  /** The request leaves its batch without an end, to be executed once more. False: it may not, or has had its end. */
  #leave(entry: Entry, reply: ReceivedReply): boolean {
    if (this.#onReschedule === undefined || entry.isAnswered) return false;
    this.#owner.executed(entry, reply);
    // Every execution counts, and so does the end.
    entry.isCounted = false;
    entry.isPaused = false;
    entry.payload!.openCount--;
    entry.payload = undefined;
    this.#owner.entryRequeued(entry);
    return true;
  }

  onPart(part: ReceivedPart): void {
    const entry = this.entryOf(part.batchId, part.request);
    if (entry === undefined || entry.isAnswered) return;
    const result = part.result === BY_SENDER || part.result === RESCHEDULE ? undefined : part.result;
    // The end without another response is told by finish alone.
    if (result !== undefined || !part.isFinal) {
      this.#inTurn(entry, () => {
        if (this.#owner.respond(entry, result, part.isFinal)) this.#resume(entry);
        else if (!part.isFinal) this.#pause(entry);
      });
    }
    // Who was told of the last response may have cancelled the request just then.
    if (part.isFinal && !entry.isAnswered) this.#end(entry, () => this.#owner.finish(entry));
  }

  /** The instance will answer nothing of what it was given. */
  onLost(instance: InstancePort, error: StatusError): void {
    this.#lingering.delete(instance);
    for (const payload of this.#payloads.values()) {
      if (payload.instance !== instance) continue;
      this.#payloads.delete(payload.batchId);
      this.#closeAll(payload, (entry) => this.fail(entry, error, 'BACKEND'));
    }
    this.#onProgress();
  }

  /** The client of a request that was given to an instance has gone. */
  cancel(entry: Entry): void {
    const payload = entry.payload!;
    payload.instance.cancel(payload.batchId, entry.index);
    this.fail(entry, new StatusError('CANCELLED', ''), 'CANCELED');
  }

  failAll(error: StatusError): void {
    for (const payload of this.#payloads.values()) {
      this.#closeAll(payload, (entry) => this.fail(entry, error, 'OTHER'));
    }
    this.#payloads.clear();
    this.#lingering.clear();
  }

  /** Whatever of the batch is not over is over now. */
  #closeAll(payload: Payload, fail: (entry: Entry) => void): void {
    const wasExecuted = payload.isExecuted;
    payload.isExecuted = true;
    for (const entry of payload.entries) {
      // What was rescheduled belongs to another batch by now, or to none.
      if (entry.payload !== payload) continue;
      if (!entry.isAnswered) fail(entry);
      else if (!wasExecuted) this.#onDone?.(entry);
    }
  }

  fail(entry: Entry, error: StatusError, reason: FailureReason): void {
    if (!entry.isAnswered) this.#end(entry, () => this.#owner.fail(entry, error, reason));
  }

  #answer(entry: Entry, result: ReceivedResult | undefined, reply: ReceivedReply): void {
    if (result === BY_SENDER && !entry.isCounted) this.#owner.executed(entry, reply);
    if (entry.isAnswered) {
      this.#onDone?.(entry);
      return;
    }
    if (result === BY_SENDER) return;
    if (result === RESCHEDULE) this.fail(entry, new StatusError('INVALID_ARG', NO_RESCHEDULE), 'BACKEND');
    else if (result === undefined) {
      this.fail(entry, new StatusError('INTERNAL', 'the host sent no result for this request'), 'BACKEND');
    } else if (result instanceof ReceivedError) {
      // Triton counts an error that the model itself answered with as a success.
      if (result.kind === 'answered') this.#owner.executed(entry, reply);
      this.fail(entry, result, result.code === 'CANCELLED' ? 'CANCELED' : 'BACKEND');
    } else this.#end(entry, () => this.#owner.succeed(entry, result, reply));
  }

  #end(entry: Entry, tell: () => void): void {
    entry.isAnswered = true;
    if (this.#ordered === undefined) tell();
    else this.#ordered.answer(entry, tell);
    const { payload } = entry;
    if (payload === undefined) return;
    this.#close(payload);
    if (payload.isExecuted) this.#onDone?.(entry);
  }

  #close(payload: Payload): void {
    payload.openCount--;
    if (payload.openCount > 0 || !payload.isLingering) return;
    payload.isLingering = false;
    // Zero or absent when the instance was lost meanwhile.
    const lingering = this.#lingering.get(payload.instance) ?? 0;
    if (lingering > 1) this.#lingering.set(payload.instance, lingering - 1);
    else this.#lingering.delete(payload.instance);
    this.#payloads.delete(payload.batchId);
    this.#onProgress();
  }

  #inTurn(entry: Entry, send: () => void): void {
    if (this.#ordered === undefined) send();
    else if (!this.#ordered.respond(entry, send)) this.#pause(entry);
  }

  /** Until the client has caught up, or under preserve_ordering until it is this request's turn. */
  #pause(entry: Entry): void {
    if (entry.isPaused || entry.isAnswered) return;
    entry.isPaused = true;
    const { batchId, instance } = entry.payload!;
    instance.setPaused(batchId, entry.index, true);
    entry.sink.onRoom = () => this.#resume(entry);
  }

  #resume(entry: Entry): void {
    if (!entry.isPaused) return;
    entry.isPaused = false;
    const { batchId, instance } = entry.payload!;
    if (!entry.isAnswered) instance.setPaused(batchId, entry.index, false);
  }
}

function isExecuted(result: ReceivedResult | undefined): boolean {
  if (result === undefined) return false;
  return !(result instanceof ReceivedError) || result.kind !== 'not executed';
}

function byteLengthOf(result: ReceivedResult | undefined): number {
  if (typeof result !== 'object' || !('outputs' in result)) return 0;
  return result.outputs.reduce((sum, { byteLength }) => sum + byteLength, 0);
}

function entryAt(payload: Payload, place: number): Entry | undefined {
  const { entries } = payload;
  const entry = payload.filledSize === 0 ? entries[place] : entries.find(({ index }) => index === place);
  // What was rescheduled has left this batch.
  return entry?.payload === payload ? entry : undefined;
}
