// A composing model without a process: it has a bounded queue and a few workers, takes a random time, fails, leaves out
// outputs, answers part by part, and listens to pauses and cancellations as a host does.
import assert from 'node:assert/strict';
import type { InferCall } from '../../src/core/infer.ts';
import type { ServedModel } from '../../src/core/model/served-model.ts';
import type { ModelStats } from '../../src/core/stats/model-stats.ts';
import type { ModelConfig } from '../../src/domain/model-config.ts';
import { internal, StatusError, unavailable } from '../../src/domain/status.ts';
import type { CancelTimer } from '../../src/lib/clock.ts';
import type { Prng } from '../../src/lib/prng.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';

export interface ModelFaults {
  readonly computeMsMean: number;
  /** Chances per request. */
  readonly error: number;
  readonly lackingOutput: number;
  readonly workerCount: number;
  readonly queueMax: number;
  readonly responsesMax: number;
}

export interface ModelWorld {
  readonly prng: Prng;
  setTimer(delayMs: number, fn: () => void): CancelTimer;
  /** A response with all outputs has been taken; `isCancelled` when that cancelled the request. */
  onAnswered(call: InferCall, isCancelled: boolean): void;
  /** The bytes of a new tensor, made from these. `response` numbers the answers of one decoupled request. */
  derive(inputs: readonly Buffer[], response: { call: InferCall; number: number } | undefined): Buffer;
}

export class SimulatedModel implements ServedModel {
  readonly config: ModelConfig;
  readonly name: string;
  readonly version = 1;
  readonly maxBatchSize: number;
  readonly isDecoupled: boolean;
  readonly inputs = [];
  readonly outputs = [];
  readonly isHealthy = true;
  readonly failure = undefined;
  readonly #world: ModelWorld;
  readonly #faults: ModelFaults;
  readonly #queue: Job[] = [];
  #runningCount = 0;

  constructor(config: ModelConfig, faults: ModelFaults, world: ModelWorld) {
    this.config = config;
    this.name = config.name;
    this.maxBatchSize = config.max_batch_size;
    this.isDecoupled = config.model_transaction_policy?.decoupled ?? false;
    this.#faults = faults;
    this.#world = world;
  }

  get stats(): ModelStats {
    throw new Error('a simulated model has no statistics');
  }

  get openCount(): number {
    return this.#queue.length + this.#runningCount;
  }

  labelsOf(): undefined {
    return undefined;
  }

  async unload(): Promise<void> {}

  abandon(): void {}

  infer(call: InferCall): void {
    for (const input of call.request.inputs) {
      const isFitting = input.shape.join() === (this.maxBatchSize > 0 ? '1,1' : '1');
      assert.ok(isFitting, 'the shape this model takes');
    }
    if (this.#queue.length >= this.#faults.queueMax) throw unavailable('Exceeds maximum queue size');
    const job = new Job(call, this.#faults, this.#world, this.maxBatchSize > 0, () => this.#ended(job));
    this.#queue.push(job);
    this.#startNext();
    call.cancellation?.onCancel(() => this.#cancel(job));
  }

  #startNext(): void {
    while (this.#runningCount < this.#faults.workerCount) {
      const job = this.#queue.shift();
      if (job === undefined) return;
      this.#runningCount++;
      job.start(this.isDecoupled);
    }
  }

  #cancel(job: Job): void {
    if (job.isEnded) return;
    const index = this.#queue.indexOf(job);
    if (index >= 0) this.#queue.splice(index, 1);
    else this.#runningCount--;
    job.stop();
    this.#startNext();
  }

  #ended(job: Job): void {
    assert.ok(job.isEnded);
    this.#runningCount--;
    this.#startNext();
  }
}

class Job {
  readonly #call: InferCall;
  readonly #faults: ModelFaults;
  readonly #world: ModelWorld;
  readonly #isBatching: boolean;
  readonly #onEnd: () => void;
  #timer: CancelTimer | undefined;
  #left = 0;
  #number = 0;
  #isPaused = false;
  isEnded = false;

  constructor(
    call: InferCall,
    faults: ModelFaults,
    world: ModelWorld,
    isBatching: boolean,
    onEnd: () => void,
  ) {
    this.#call = call;
    this.#faults = faults;
    this.#world = world;
    this.#isBatching = isBatching;
    this.#onEnd = onEnd;
  }

  start(isDecoupled: boolean): void {
    this.#left = isDecoupled ? this.#world.prng.integer(0, this.#faults.responsesMax) : 1;
    this.#wait(() => (isDecoupled ? this.#respondInParts() : this.#respondOnce()));
  }

  /** The client has gone: it is told so at once, whatever the model does. */
  stop(): void {
    this.isEnded = true;
    this.#timer?.();
    this.#call.sink.fail(new StatusError('CANCELLED', ''));
  }

  #wait(fn: () => void): void {
    this.#timer = this.#world.setTimer(this.#world.prng.exponential(this.#faults.computeMsMean), fn);
  }

  #end(tell: () => void): void {
    if (this.isEnded) return;
    this.isEnded = true;
    tell();
    this.#onEnd();
  }

  #respondOnce(): void {
    const { sink } = this.#call;
    if (this.#world.prng.boolean(this.#faults.error)) {
      this.#end(() => sink.fail(internal('the model raised')));
      return;
    }
    const isLacking = this.#world.prng.boolean(this.#faults.lackingOutput);
    const names = this.#call.request.requestedOutputs.slice(isLacking ? 1 : 0);
    sink.send(this.#response(names, false), true);
    if (!isLacking) this.#world.onAnswered(this.#call, this.isEnded);
    this.#end(() => sink.finish());
  }

  #respondInParts(): void {
    if (this.isEnded) return;
    const { sink, request } = this.#call;
    const { prng } = this.#world;
    if (this.#left === 0) {
      this.#end(() => sink.finish());
      return;
    }
    if (prng.boolean(this.#faults.error / 4)) {
      // Some models go on after an error, which nobody hears any more.
      if (prng.boolean()) sink.sendError(internal('one response failed'), false);
      else this.#end(() => sink.fail(internal('the stream failed')));
      if (this.isEnded) return;
    }
    this.#left--;
    let hasRoom = sink.send(this.#response(request.requestedOutputs, true), false);
    if (this.#isPaused) throw new Error('a paused request was resumed twice');
    if (this.isEnded) return;
    // What is on its way when the pause comes still arrives.
    if (!hasRoom && this.#left > 0 && prng.boolean(0.3)) {
      this.#left--;
      hasRoom = sink.send(this.#response(request.requestedOutputs, true), false);
      if (this.isEnded) return;
    }
    if (hasRoom || this.#left === 0) this.#wait(() => this.#respondInParts());
    else this.#pause();
  }

  #pause(): void {
    this.#isPaused = true;
    this.#call.sink.onRoom = () => {
      if (!this.#isPaused || this.isEnded) return;
      this.#isPaused = false;
      this.#wait(() => this.#respondInParts());
    };
  }

  #response(names: readonly string[], isPart: boolean): Parameters<InferCall['sink']['send']>[0] {
    const inputs = this.#call.request.inputs.map((input) => input.data[0]!);
    const number = this.#number++;
    const response = isPart ? { call: this.#call, number } : undefined;
    return {
      modelName: '',
      modelVersion: 1,
      id: this.#call.request.id,
      parameters: undefined,
      outputs: names.map((name) => ({
        name,
        datatype: 'UINT32',
        shape: this.#isBatching ? [1, 1] : [1],
        data: [this.#world.derive(inputs, response)],
        byteLength: 4,
      })),
    };
  }
}

export const EMPTY_CONFIG = parseModelConfig('');
