// The default scheduler and the dynamic batcher: a queue, the pure decision of form-batch.ts, and the acting on
// it. What it has given to instances is dispatched.ts's; it knows no protocol, no tensor and no file.
// Arrivals of one turn of the event loop are decided on together, so that they can share a batch.

import { OPEN_BATCHES_PER_INSTANCE_MAX, SOCKET_PAYLOAD_BYTES_MAX } from '../../domain/limits.ts';
import { StatusError, unavailable } from '../../domain/status.ts';
import type { ReceivedPart } from '../../instance/part-frame.ts';
import type { ReceivedReply } from '../../instance/response-frame.ts';
import type { CancelTimer, Clock } from '../../lib/clock.ts';
import { Dispatched } from './dispatched.ts';
import type { Entry, EntryOwner, InstancePort } from './entry.ts';
import { formBatch } from './form-batch.ts';
import { hopelessError } from './hopeless-error.ts';
import { RequestQueue } from './request-queue.ts';
import type { Scheduler } from './scheduler.ts';
import type { SchedulerPolicy } from './scheduler-policy.ts';

/**
 * Batches given to one instance at a time. A second one hides the way to the host and back; it is used only for
 * models so quick that this matters, because a batch that is handed over can no longer grow.
 */
const PREFETCH_DEPTH = 2;
/**
 * Where every request is a batch of its own nothing can grow, and the only instance is the only one that could take it: the
 * more are there, the more of them share a write and a wake-up.
 */
const PREFETCH_DEPTH_SINGLE = 8;
/** A batch that waits in the host takes no longer than this, and all of them together hardly do. */
const PREFETCH_COMPUTE_NS_MAX = 2e6;

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

export class Batcher implements Scheduler {
  readonly #policy: SchedulerPolicy;
  readonly #clock: Clock;
  readonly #instances: readonly InstancePort[];
  readonly #defer: (fn: () => void) => void;
  readonly #queue: RequestQueue;
  readonly #dispatched: Dispatched;
  #delayedStartCount: number;
  #isPumpDue = false;
  #timer: CancelTimer | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #isStopped = false;
  #onIdle: (() => void) | undefined;

  constructor(options: BatcherOptions) {
    this.#policy = options.policy;
    this.#clock = options.clock;
    this.#instances = options.instances;
    this.#defer = options.defer;
    this.#delayedStartCount = options.delayedStartCount;
    this.#queue = new RequestQueue(options.policy.queuePolicies, options.policy.queueBytesMax);
    this.#dispatched = new Dispatched({
      owner: options.owner,
      isOrderPreserved: options.policy.isOrderPreserved,
      onProgress: () => {
        this.#pumpSoon();
        this.#checkIdle();
      },
    });
  }

  get waitingCount(): number {
    return this.#queue.waitingCount;
  }

  /** Requests not yet answered, waiting or executing. */
  get openCount(): number {
    return this.#queue.waitingCount + this.#dispatched.openCount;
  }

  /** Throws when the request cannot be accepted; then it was never counted. */
  enqueue(entry: Entry): void {
    if (this.#isStopped) {
      throw unavailable(
        `${requestPrefix(entry)}Server is stopping, scheduler for model has stopped accepting new inference requests`,
      );
    }
    const hopeless = hopelessError(this.#instances);
    if (hopeless !== undefined) throw hopeless;
    entry.level = this.#policy.levelOf(entry.request.priority);
    this.#makeRoom(entry);
    this.#dispatched.accept(entry);
    this.#queue.push(entry, this.#clock.nowMs());
    this.#pumpSoon();
  }

  /**
   * What came earlier in this turn may still wait for its end although an instance is free. It leaves now if that makes
   * room: as in Triton, only what really has to wait fills the queue.
   */
  #makeRoom(entry: Entry): void {
    if (this.#queue.refusalOf(entry) === undefined) return;
    this.#pump();
    const refusal = this.#queue.refusalOf(entry);
    if (refusal !== undefined) throw unavailable(requestPrefix(entry) + refusal);
  }

  /** The client has gone: a waiting request is answered now, a running batch stops when nobody wants it. */
  cancel(entry: Entry): void {
    if (entry.isAnswered) return;
    if (entry.payload !== undefined) {
      this.#dispatched.cancel(entry);
      return;
    }
    this.#queue.forget(entry);
    this.#dispatched.fail(entry, new StatusError('CANCELLED', ''), 'CANCELED');
    this.#checkIdle();
  }

  /** The instances that wait for a request which an instance was given. */
  ancestorsOf(parent: { batchId: number; request: number }): readonly object[] {
    return this.#dispatched.entryOf(parent.batchId, parent.request)?.ancestors ?? [];
  }

  onReply(reply: ReceivedReply): void {
    this.#dispatched.onReply(reply);
  }

  onPart(part: ReceivedPart): void {
    this.#dispatched.onPart(part);
  }

  /** The instance will answer nothing of what it was given. */
  onLost(instance: InstancePort, error: StatusError): void {
    this.#dispatched.onLost(instance, error);
  }

  /** An instance became ready, or went away for good. */
  onInstanceChange(): void {
    const hopeless = hopelessError(this.#instances);
    if (hopeless !== undefined) this.#failWaiting(hopeless);
    this.#pumpSoon();
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
    this.#dispatched.failAll(error);
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
      this.#dispatched.send(instance, this.#queue.take(decision.take), nowMs);
    }
    this.#wakeAt(waitUntilMs, nowMs);
  }

  /** The ready instance with the least to do. */
  #freeInstance(): InstancePort | undefined {
    let free: InstancePort | undefined;
    let least = this.#depth();
    for (const instance of this.#instances) {
      const count = instance.inFlightCount;
      if (instance.state !== 'ready' || count >= least) continue;
      if (this.#dispatched.lingeringCountOf(instance) >= OPEN_BATCHES_PER_INSTANCE_MAX) continue;
      // Last, because the rate limiter takes the question for a wish.
      if (!instance.isAdmitted) continue;
      free = instance;
      least = count;
      if (count === 0) break;
    }
    return free;
  }

  /** How many batches an instance may have. */
  #depth(): number {
    const { computeNs, answerBytes } = this.#dispatched;
    if (!this.#policy.isPrefetching || computeNs >= PREFETCH_COMPUTE_NS_MAX) return 1;
    const { isBatching, isDecoupled } = this.#policy;
    if (isBatching || isDecoupled || this.#instances.length > 1) return PREFETCH_DEPTH;
    const largestBytes = Math.max(answerBytes, this.#queue.at(0).byteLength);
    // Of the shared memory that larger ones need there is only enough for two.
    if (largestBytes > SOCKET_PAYLOAD_BYTES_MAX) return PREFETCH_DEPTH;
    const quickCount = Math.floor(PREFETCH_COMPUTE_NS_MAX / Math.max(1, computeNs));
    return Math.min(PREFETCH_DEPTH_SINGLE, Math.max(PREFETCH_DEPTH, quickCount));
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
      this.#dispatched.fail(entry, unavailable('Request timeout expired'), 'REJECTED');
    }
    this.#checkIdle();
  }

  #failWaiting(error: StatusError): void {
    for (const entry of this.#queue.take(this.#queue.length)) {
      this.#dispatched.fail(entry, error, 'BACKEND');
    }
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#onIdle === undefined || !this.#dispatched.isEmpty || this.#queue.waitingCount > 0) return;
    this.#timer?.();
    this.#onIdle();
    this.#onIdle = undefined;
  }
}

export function requestPrefix(entry: Entry): string {
  return `[request id: ${entry.request.id === '' ? '<id_unknown>' : entry.request.id}] `;
}
