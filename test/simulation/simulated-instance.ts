// An instance without a process: it answers batches one after another, each after a random time, with random
// errors, and dies at random as a real host does: batches lost first, then the change of state, then a restart.
import type { InstancePort } from '../../src/core/scheduler/entry.ts';
import { StatusError } from '../../src/domain/status.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import type { ReceivedReply } from '../../src/instance/response-frame.ts';
import type { CancelTimer } from '../../src/lib/clock.ts';
import type { Prng } from '../../src/lib/prng.ts';

export interface InstanceFaults {
  readonly computeMsMean: number;
  /** Chances per batch. */
  readonly death: number;
  readonly error: number;
}

export interface InstanceWorld {
  readonly prng: Prng;
  readonly faults: InstanceFaults;
  setTimer(delayMs: number, fn: () => void): CancelTimer;
  onExecute(instance: SimulatedInstance, batchId: number, requests: readonly SentRequest[]): void;
  onReply(reply: ReceivedReply): void;
  onLost(batchIds: readonly number[], error: StatusError): void;
  onInstanceChange(): void;
}

const LOST = new StatusError('UNAVAILABLE', 'the host was killed');
const FAILED = new StatusError('INTERNAL', 'the model raised');
const CANCELLED = new StatusError('CANCELLED', '');

interface SimulatedBatch {
  readonly batchId: number;
  readonly count: number;
  isCancelled: boolean;
}

export class SimulatedInstance implements InstancePort {
  readonly name: string;
  readonly #world: InstanceWorld;
  readonly #batches: SimulatedBatch[] = [];
  #stopTimer: CancelTimer | undefined;
  state: InstancePort['state'] = 'ready';
  lastError: StatusError | undefined;
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
    this.#batches.push({ batchId, count: requests.length, isCancelled: false });
    if (this.#batches.length === 1) this.#startNext();
  }

  /** A backend that looks at cancellation between two steps. */
  cancel(batchId: number): void {
    const batch = this.#batches.find((candidate) => candidate.batchId === batchId);
    if (batch !== undefined) batch.isCancelled = this.#world.prng.boolean();
  }

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
    const results = Array.from({ length: batch.count }, () => {
      if (batch.isCancelled) return CANCELLED;
      return isFailed && prng.boolean() ? FAILED : [];
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

  #die(): void {
    const { prng } = this.#world;
    this.#stopTimer?.();
    const lost = this.#batches.splice(0).map((batch) => batch.batchId);
    this.lastError = LOST;
    this.state = prng.boolean(0.3) ? 'failed' : 'restarting';
    this.#world.onLost(lost, LOST);
    this.#world.onInstanceChange();
    this.#world.setTimer(prng.exponential(20), () => {
      this.state = 'ready';
      this.lastError = undefined;
      this.#world.onInstanceChange();
    });
  }
}
