// An instance without a process: it answers batches one after another, each after a random time, with random
// errors, some requests part by part as decoupled models do, and dies at random as a real host does: batches lost
// first, then the change of state, then a restart.

import { BY_SENDER } from '../../src/backend/sdk.ts';
import type { InstancePort } from '../../src/core/scheduler/entry.ts';
import { StatusError } from '../../src/domain/status.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import type { ReceivedPart } from '../../src/instance/part-frame.ts';
import type { ReceivedReply } from '../../src/instance/response-frame.ts';
import { RESCHEDULE, ReceivedError, type ReceivedResult } from '../../src/instance/result-codec.ts';
import type { CancelTimer } from '../../src/lib/clock.ts';
import type { Prng } from '../../src/lib/prng.ts';

export interface InstanceFaults {
  readonly computeMsMean: number;
  /** Chances per batch. */
  readonly death: number;
  readonly error: number;
  /** Chance per request to be answered part by part. */
  readonly decoupled: number;
  /** Chance per request that the model wants to execute it once more. */
  readonly reschedule?: number;
}

export interface InstanceWorld {
  readonly prng: Prng;
  readonly faults: InstanceFaults;
  setTimer(delayMs: number, fn: () => void): CancelTimer;
  onExecute(instance: SimulatedInstance, batchId: number, requests: readonly SentRequest[]): void;
  onReply(reply: ReceivedReply): void;
  onPart(part: ReceivedPart): void;
  onLost(instance: SimulatedInstance, error: StatusError): void;
  onInstanceChange(): void;
}

const LOST = new StatusError('UNAVAILABLE', 'the host was killed');
const FAILED = new ReceivedError('INTERNAL', 'the model raised', 'failed');
const OUTPUTS: ReceivedResult = { outputs: [], parameters: undefined };
const CANCELLED = new ReceivedError('CANCELLED', '', 'not executed');

interface SimulatedBatch {
  readonly batchId: number;
  readonly count: number;
  cancelledCount: number;
  isCancelled: boolean;
}

export class SimulatedInstance implements InstancePort {
  readonly name: string;
  readonly #world: InstanceWorld;
  readonly #batches: SimulatedBatch[] = [];
  /** The next part of each request that is answered part by part. */
  readonly #parts = new Set<CancelTimer>();
  #stopTimer: CancelTimer | undefined;
  state: InstancePort['state'] = 'ready';
  lastError: StatusError | undefined;
  readonly isAdmitted = true;
  /** False from the end of the run on, so that a drain comes to its end. */
  canDie = true;

  constructor(name: string, world: InstanceWorld) {
    this.name = name;
    this.#world = world;
  }

  get inFlightCount(): number {
    return this.#batches.length;
  }

  execute(batchId: number, requests: readonly SentRequest[]): void {
    this.#world.onExecute(this, batchId, requests);
    this.#batches.push({ batchId, count: requests.length, cancelledCount: 0, isCancelled: false });
    if (this.#batches.length === 1) this.#startNext();
  }

  /** A backend that looks at cancellation between two steps. */
  cancel(batchId: number): void {
    const batch = this.#batches.find((candidate) => candidate.batchId === batchId);
    if (batch === undefined) return;
    batch.cancelledCount++;
    if (batch.cancelledCount === batch.count) batch.isCancelled = this.#world.prng.boolean();
  }

  /** Too late for what is on its way; the sender here does not listen at all. */
  setPaused(): void {}

  #startNext(): void {
    const { prng, faults } = this.#world;
    const computeMs = prng.exponential(faults.computeMsMean);
    const isDeadly = this.canDie && prng.boolean(faults.death);
    this.#stopTimer = this.#world.setTimer(computeMs, () => {
      if (isDeadly) this.#die();
      else this.#finish(computeMs);
    });
  }

  #finish(computeMs: number): void {
    const { prng, faults } = this.#world;
    const batch = this.#batches.shift()!;
    const isFailed = prng.boolean(faults.error);
    const results = Array.from({ length: batch.count }, (_, request): ReceivedResult => {
      if (batch.isCancelled) return CANCELLED;
      if (faults.reschedule !== undefined && prng.boolean(faults.reschedule)) return RESCHEDULE;
      if (prng.boolean(faults.decoupled)) {
        this.#answerInParts(batch.batchId, request);
        return BY_SENDER;
      }
      return isFailed && prng.boolean() ? FAILED : OUTPUTS;
    });
    // A host that loses count is answered for, too.
    if (isFailed && prng.boolean(0.2)) results.pop();
    this.#world.onReply({
      batchId: batch.batchId,
      computeInputNs: 0,
      computeInferNs: computeMs * 1e6,
      computeOutputNs: 0,
      results,
    });
    if (this.state === 'ready' && this.#batches.length > 0) this.#startNext();
  }

  /** Some parts before the execution is over, some after it, the last one at any time. */
  #answerInParts(batchId: number, request: number): void {
    const { prng } = this.#world;
    const count = prng.integer(0, 3);
    for (let i = 0; i < count && prng.boolean(); i++) this.#sendPart(batchId, request, false);
    if (prng.boolean(0.3)) this.#sendPart(batchId, request, true);
    else this.#sendLater(batchId, request, prng.integer(1, 3));
  }

  #sendLater(batchId: number, request: number, left: number): void {
    const stop = this.#world.setTimer(this.#world.prng.exponential(this.#world.faults.computeMsMean), () => {
      this.#parts.delete(stop);
      this.#sendPart(batchId, request, left === 1);
      if (left > 1) this.#sendLater(batchId, request, left - 1);
    });
    this.#parts.add(stop);
  }

  #sendPart(batchId: number, request: number, isFinal: boolean): void {
    const result = this.#world.prng.pick<ReceivedResult>([OUTPUTS, FAILED, BY_SENDER]);
    this.#world.onPart({ batchId, request, isFinal, result });
  }

  #die(): void {
    const { prng } = this.#world;
    this.#stopTimer?.();
    for (const stop of this.#parts) stop();
    this.#parts.clear();
    this.#batches.length = 0;
    this.lastError = LOST;
    this.state = prng.boolean(0.3) ? 'failed' : 'restarting';
    this.#world.onLost(this, LOST);
    this.#world.onInstanceChange();
    this.#world.setTimer(prng.exponential(20), () => {
      this.state = 'ready';
      this.lastError = undefined;
      this.#world.onInstanceChange();
    });
  }
}
