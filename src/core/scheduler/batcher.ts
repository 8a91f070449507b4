// The default scheduler and the dynamic batcher: a queue, the pure decision of form-batch.ts, and the acting on
// it. It gives batches to instances and their results to the owner; it knows no protocol, no tensor and no file.
// Arrivals of one turn of the event loop are decided on together, so that they can share a batch.

import { StatusError, unavailable } from '../../domain/status.ts';
import type { ReceivedReply } from '../../instance/response-frame.ts';
import type { CancelTimer, Clock } from '../../lib/clock.ts';
import type { FailureReason } from '../stats/model-metrics.ts';
import type { Entry, EntryOwner, InstancePort, Payload } from './entry.ts';
import { formBatch } from './form-batch.ts';
import { OrderedAnswers } from './ordered-answers.ts';
import { RequestQueue } from './request-queue.ts';
import type { SchedulerPolicy } from './scheduler-policy.ts';

/**
 * Batches given to one instance at a time. A second one hides the way to the host and back; it is used only for
 * models so quick that this matters, because a batch that is handed over can no longer grow.
 */
const PREFETCH_DEPTH = 2;
const PREFETCH_COMPUTE_NS_MAX = 2e6;
/** Weight of the newest batch in the moving average of compute time. */
const COMPUTE_WEIGHT = 0.2;

export interface BatcherOptions {
  readonly policy: SchedulerPolicy;
  readonly clock: Clock;
  readonly owner: EntryOwner;
  readonly instances: readonly InstancePort[];
  /** Runs a function at the end of the current turn of the event loop. */
  readonly defer: (fn: () => void) => void;
  /** TRITONSERVER_DELAY_SCHEDULER: form no batch until this many requests wait. */
  readonly delayedStartCount: number;
}

export class Batcher {
  readonly #policy: SchedulerPolicy;
  readonly #clock: Clock;
  readonly #owner: EntryOwner;
  readonly #instances: readonly InstancePort[];
  readonly #defer: (fn: () => void) => void;
  readonly #queue: RequestQueue;
  readonly #payloads = new Map<number, Payload>();
  readonly #ordered: OrderedAnswers | undefined;
  #delayedStartCount: number;
  #nextBatchId = 1;
  #isPumpDue = false;
  #timer: CancelTimer | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  /** Moving average; infinite until the first batch has been measured. */
  #computeNs = Number.POSITIVE_INFINITY;
  #isStopped = false;
  #onIdle: (() => void) | undefined;

  constructor(options: BatcherOptions) {
    this.#policy = options.policy;
    this.#clock = options.clock;
    this.#owner = options.owner;
    this.#instances = options.instances;
    this.#defer = options.defer;
    this.#delayedStartCount = options.delayedStartCount;
    this.#queue = new RequestQueue(options.policy.queuePolicies);
    this.#ordered = options.policy.isOrderPreserved ? new OrderedAnswers() : undefined;
  }

  get waitingCount(): number {
    return this.#queue.waitingCount;
  }

  /** Requests not yet answered, waiting or executing. */
  get openCount(): number {
    let count = this.#queue.waitingCount;
    for (const payload of this.#payloads.values()) count += payload.entries.length - payload.cancelledCount;
    return count;
  }

  /** Throws when the request cannot be accepted; then it was never counted. */
  enqueue(entry: Entry): void {
    if (this.#isStopped) {
      throw unavailable(
        `${requestPrefix(entry)}Server is stopping, scheduler for model has stopped accepting new inference requests`,
      );
    }
    if (this.#isHopeless()) throw this.#hopelessError();
    entry.level = this.#policy.levelOf(entry.request.priority);
    if (!this.#queue.hasRoomFor(entry))
      throw unavailable(`${requestPrefix(entry)}Exceeds maximum queue size`);
    this.#ordered?.add(entry);
    this.#queue.push(entry, this.#clock.nowMs());
    this.#pumpSoon();
  }

  /** The client has gone: a waiting request is answered now, a running batch stops when nobody wants it. */
  cancel(entry: Entry): void {
    if (entry.isAnswered) return;
    const payload = entry.payload;
    if (payload === undefined) this.#queue.forget(entry);
    this.#fail(entry, new StatusError('CANCELLED', ''), 'CANCELED');
    if (payload === undefined) {
      this.#checkIdle();
      return;
    }
    payload.cancelledCount++;
    if (payload.cancelledCount === payload.entries.length) payload.instance.cancel(payload.batchId);
  }

  onReply(reply: ReceivedReply): void {
    const payload = this.#payloads.get(reply.batchId);
    if (payload === undefined) return;
    this.#payloads.delete(reply.batchId);
    let executedSize = 0;
    for (let i = 0; i < payload.entries.length; i++) {
      const entry = payload.entries[i]!;
      const result = reply.results[i];
      if (result !== undefined && !(result instanceof StatusError)) executedSize += entry.batchSize;
    }
    if (executedSize > 0) {
      // A cancelled or failed batch says nothing about how long the model takes.
      const isFirst = this.#computeNs === Number.POSITIVE_INFINITY;
      if (isFirst) this.#computeNs = reply.computeInferNs;
      else this.#computeNs += (reply.computeInferNs - this.#computeNs) * COMPUTE_WEIGHT;
      this.#owner.batchExecuted(executedSize, reply);
    }
    for (let i = 0; i < payload.entries.length; i++) this.#answer(payload.entries[i]!, reply, i);
    this.#pumpSoon();
    this.#checkIdle();
  }

  /** The instance will not answer these batches any more. */
  onLost(batchIds: readonly number[], error: StatusError): void {
    for (const batchId of batchIds) {
      const payload = this.#payloads.get(batchId);
      if (payload === undefined) continue;
      this.#payloads.delete(batchId);
      for (const entry of payload.entries) this.#fail(entry, error, 'BACKEND');
    }
    this.#pumpSoon();
    this.#checkIdle();
  }

  /** An instance became ready, or went away for good. */
  onInstanceChange(): void {
    if (this.#isHopeless()) this.#failWaiting(this.#hopelessError());
    this.#pumpSoon();
  }

  /** No instance runs and none could be restarted for a while. */
  #isHopeless(): boolean {
    return this.#instances.every((instance) => instance.state === 'failed');
  }

  #hopelessError(): StatusError {
    const reason = this.#instances[0]?.lastError?.message ?? 'the model has no instance';
    return unavailable(`no instance of the model is running: ${reason}`);
  }

  /** Refuses new requests; resolves when every accepted one has been answered. */
  drain(): Promise<void> {
    this.#isStopped = true;
    this.#pumpSoon();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#checkIdle();
    });
  }

  /** Answers everything that still waits or runs with `error`; the end of a drain that took too long. */
  failAll(error: StatusError): void {
    this.#isStopped = true;
    this.#failWaiting(error);
    for (const payload of this.#payloads.values()) {
      for (const entry of payload.entries) this.#fail(entry, error, 'OTHER');
    }
    this.#payloads.clear();
    this.#checkIdle();
  }

  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#defer(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs >= this.#queue.nextDeadlineMs()) this.#rejectExpired(nowMs);
    const isHeld = this.#queue.waitingCount < this.#delayedStartCount && !this.#isStopped;
    if (!isHeld) this.#delayedStartCount = 0;
    let waitUntilMs = this.#queue.nextDeadlineMs();
    while (!isHeld && this.#queue.waitingCount > 0) {
      const instance = this.#freeInstance();
      if (instance === undefined) break;
      const decision = formBatch(this.#queue, this.#policy, nowMs);
      if (decision.take === 0) {
        waitUntilMs = Math.min(waitUntilMs, decision.waitUntilMs);
        break;
      }
      this.#dispatch(instance, this.#queue.take(decision.take), nowMs);
    }
    this.#wakeAt(waitUntilMs, nowMs);
  }

  /** The ready instance with the least to do. */
  #freeInstance(): InstancePort | undefined {
    const isPrefetching = this.#policy.isPrefetching && this.#computeNs < PREFETCH_COMPUTE_NS_MAX;
    const depth = isPrefetching ? PREFETCH_DEPTH : 1;
    let free: InstancePort | undefined;
    let least = depth;
    for (const instance of this.#instances) {
      if (instance.state !== 'ready') continue;
      const count = instance.inFlightCount;
      if (count < least) {
        free = instance;
        least = count;
        if (count === 0) break;
      }
    }
    return free;
  }

  #dispatch(instance: InstancePort, entries: readonly Entry[], nowMs: number): void {
    const batchId = this.#nextBatchId;
    this.#nextBatchId = batchId === 0xffff_ffff ? 1 : batchId + 1;
    const payload: Payload = { batchId, entries, instance, cancelledCount: 0 };
    this.#payloads.set(batchId, payload);
    for (const entry of entries) {
      entry.computeStartMs = nowMs;
      entry.payload = payload;
      this.#owner.entryStarted(entry);
    }
    try {
      instance.execute(
        batchId,
        entries.map((entry) => entry.sent),
      );
    } catch (thrown) {
      // A defect of ours costs these requests, not the server.
      this.#payloads.delete(batchId);
      for (const entry of entries) this.#fail(entry, StatusError.from(thrown), 'OTHER');
    }
  }

  #wakeAt(atMs: number, nowMs: number): void {
    if (atMs === this.#timerAtMs) return;
    this.#timer?.();
    this.#timer = undefined;
    this.#timerAtMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.setTimer(Math.max(0, atMs - nowMs), () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.#pump();
    });
  }

  #rejectExpired(nowMs: number): void {
    for (const entry of this.#queue.expire(nowMs)) {
      this.#fail(entry, unavailable('Request timeout expired'), 'REJECTED');
    }
    this.#checkIdle();
  }

  #failWaiting(error: StatusError): void {
    for (const entry of this.#queue.take(this.#queue.length)) this.#fail(entry, error, 'BACKEND');
    this.#checkIdle();
  }

  #answer(entry: Entry, reply: ReceivedReply, index: number): void {
    if (entry.isAnswered) return;
    const result = reply.results[index];
    if (result === undefined) {
      this.#fail(entry, new StatusError('INTERNAL', 'the host sent no result for this request'), 'BACKEND');
      return;
    }
    if (result instanceof StatusError) {
      this.#fail(entry, result, result.code === 'CANCELLED' ? 'CANCELED' : 'BACKEND');
      return;
    }
    entry.isAnswered = true;
    if (this.#ordered === undefined) this.#owner.succeed(entry, result, reply);
    else this.#ordered.answer(entry, () => this.#owner.succeed(entry, result, reply));
  }

  #fail(entry: Entry, error: StatusError, reason: FailureReason): void {
    if (entry.isAnswered) return;
    entry.isAnswered = true;
    if (this.#ordered === undefined) this.#owner.fail(entry, error, reason);
    else this.#ordered.answer(entry, () => this.#owner.fail(entry, error, reason));
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined || this.#payloads.size > 0 || this.#queue.waitingCount > 0) return;
    this.#timer?.();
    this.#onIdle();
    this.#onIdle = undefined;
  }
}

export function requestPrefix(entry: Entry): string {
  return `[request id: ${entry.request.id === '' ? '<id_unknown>' : entry.request.id}] `;
}
