// An instance under the rate limiter, without a process: one batch at a time for a random while, and a death now and
// then, with the calls to the limiter in the order in which src/instance/instance.ts makes them.
import assert from 'node:assert/strict';
import type { Batcher } from '../../src/core/scheduler/batcher.ts';
import type { InstancePort } from '../../src/core/scheduler/entry.ts';
import { StatusError } from '../../src/domain/status.ts';
import type { Admission } from '../../src/instance/admission.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import type { ReceivedReply } from '../../src/instance/response-frame.ts';
import type { Prng } from '../../src/lib/prng.ts';

export interface LimitedWorld {
  readonly prng: Prng;
  /** Chance per batch. */
  readonly death: number;
  readonly computeMsMean: number;
  setTimer(delayMs: number, fn: () => void): void;
  onBegin(instance: LimitedInstance): void;
  onEnd(instance: LimitedInstance): void;
}

const LOST = new StatusError('UNAVAILABLE', 'the host was killed');

export class LimitedInstance implements InstancePort {
  readonly name: string;
  readonly needs: Readonly<Record<string, number>>;
  readonly priority: number;
  readonly #world: LimitedWorld;
  /** Both exist only after the instances do. */
  admission: Admission | undefined;
  batcher: Batcher | undefined;
  state: InstancePort['state'] = 'ready';
  inFlightCount = 0;
  lastError: StatusError | undefined;
  canDie = true;
  /** Executions of others that took what it lacks while it was idle and had work. */
  passedCount = 0;

  constructor(
    options: { name: string; needs: Readonly<Record<string, number>>; priority: number },
    world: LimitedWorld,
  ) {
    this.name = options.name;
    this.needs = options.needs;
    this.priority = options.priority;
    this.#world = world;
  }

  get isAdmitted(): boolean {
    return this.admission!.ask();
  }

  execute(batchId: number, requests: readonly SentRequest[]): void {
    assert.equal(this.inFlightCount, 0, 'a second batch was sent ahead');
    this.admission!.begin();
    this.inFlightCount = 1;
    this.#world.onBegin(this);
    const { prng, death, computeMsMean } = this.#world;
    const isDeadly = this.canDie && prng.boolean(death);
    this.#world.setTimer(prng.exponential(computeMsMean), () => {
      if (isDeadly) this.#die();
      else this.#reply(batchId, requests.length);
    });
  }

  cancel(): void {}

  setPaused(): void {}

  #reply(batchId: number, count: number): void {
    this.inFlightCount = 0;
    this.#world.onEnd(this);
    const results = Array.from({ length: count }, () => ({ outputs: [], parameters: undefined }));
    // So quick that without a limiter a second batch would be sent ahead.
    const timing = { computeInputNs: 0, computeInferNs: 1, computeOutputNs: 0 };
    const reply: ReceivedReply = { batchId, results, ...timing };
    this.batcher!.onReply(reply);
    this.admission!.end();
  }

  #die(): void {
    this.inFlightCount = 0;
    this.state = 'restarting';
    this.#world.onEnd(this);
    this.batcher!.onLost(this, LOST);
    this.admission!.end();
    this.batcher!.onInstanceChange();
    this.#world.setTimer(this.#world.prng.exponential(20), () => {
      this.state = 'ready';
      this.batcher!.onInstanceChange();
    });
  }
}
