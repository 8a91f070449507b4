// What the simulation does not say by name: who is refused when many requests come in one turn of the event loop, and how many
// are handed over ahead.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { Batcher } from './batcher.ts';
import type { Entry, InstancePort } from './entry.ts';
import { toSchedulerPolicy } from './scheduler-policy.ts';
import { makeEntry } from './test-entry.ts';

class World {
  readonly batchSizes: number[] = [];
  #answeredCount = 0;
  readonly #deferred: (() => void)[] = [];
  readonly #instances: InstancePort[];
  readonly batcher: Batcher;

  constructor(config: string, instanceCount = 1) {
    this.#instances = Array.from({ length: instanceCount }, () => this.#createInstance());
    this.batcher = new Batcher({
      policy: toSchedulerPolicy(parseModelConfig(config)),
      clock: new SimulatedClock(),
      owner: {
        entryStarted: () => {},
        entryRequeued: () => {},
        succeed: () => {},
        respond: () => true,
        finish: () => {},
        executed: () => {},
        fail: () => {},
        batchExecuted: () => {},
      },
      instances: this.#instances,
      defer: (fn) => this.#deferred.push(fn),
      delayedStartCount: 0,
    });
  }

  /** All in one turn; '' for those that are accepted, the text for the others. */
  arrive(entries: readonly Entry[]): string[] {
    const texts = entries.map((entry) => {
      try {
        this.batcher.enqueue(entry);
        return '';
      } catch (thrown) {
        const error = StatusError.from(thrown);
        assert.equal(error.code, 'UNAVAILABLE');
        return error.message;
      }
    });
    for (const run of this.#deferred.splice(0)) run();
    return texts;
  }

  /** The first batch that has no answer gets one; what that lets through is handed over. */
  answer(computeInferNs: number, byteLength = 64): void {
    for (const instance of this.#instances)
      Object.assign(instance, { inFlightCount: instance.inFlightCount - 1 });
    this.batcher.onReply({
      batchId: ++this.#answeredCount,
      results: [
        {
          outputs: [{ index: 0, shape: [], datatype: undefined, data: [], byteLength }],
          parameters: undefined,
        },
      ],
      computeInputNs: 0,
      computeInferNs,
      computeOutputNs: 0,
    });
    for (const run of this.#deferred.splice(0)) run();
  }

  /** An instance that never comes to an end. */
  #createInstance(): InstancePort {
    const { batchSizes } = this;
    return {
      name: 'm_0',
      state: 'ready',
      isAdmitted: true,
      lastError: undefined,
      inFlightCount: 0,
      execute(_, requests) {
        batchSizes.push(requests.length);
        Object.assign(this, { inFlightCount: this.inFlightCount + 1 });
      },
      cancel: () => {},
      setPaused: () => {},
    };
  }
}

const FULL = '[request id: <id_unknown>] Exceeds maximum queue size';
const BOUNDED = 'dynamic_batching { default_queue_policy { max_queue_size: 2 } }';

function entries(count: number, byteLength = 1): Entry[] {
  return Array.from({ length: count }, () => makeEntry({ byteLength }));
}

test('six requests in one turn, a queue of two: one runs, two wait, three are refused', () => {
  const world = new World(`max_batch_size: 1 ${BOUNDED}`);
  assert.deepEqual(world.arrive(entries(6)), ['', '', '', FULL, FULL, FULL]);
  assert.deepEqual(world.batchSizes, [1]);
  assert.equal(world.batcher.waitingCount, 2);
  assert.deepEqual(world.arrive(entries(1)), [FULL]);
});

test('every idle instance takes one before anything is refused', () => {
  const world = new World(`max_batch_size: 1 ${BOUNDED}`, 3);
  assert.deepEqual(world.arrive(entries(6)), ['', '', '', '', '', FULL]);
  assert.deepEqual(world.batchSizes, [1, 1, 1]);
});

test('requests of one turn that fit into the queue share a batch', () => {
  const world = new World(`max_batch_size: 8 ${BOUNDED.replace('2', '4')}`);
  assert.deepEqual(world.arrive(entries(4)), ['', '', '', '']);
  assert.deepEqual(world.batchSizes, [4]);
});

test('what waits for company does not leave early for the sake of others', () => {
  const world = new World(
    `max_batch_size: 8 ${BOUNDED.replace('{', '{ max_queue_delay_microseconds: 9000')}`,
  );
  assert.deepEqual(world.arrive(entries(3)), ['', '', FULL]);
  assert.deepEqual(world.batchSizes, []);
});

test('the bytes that wait are bounded by a parameter of the model', () => {
  const world = new World(
    'max_batch_size: 1 dynamic_batching { } parameters { key: "max_queue_bytes" value { string_value: "250" } }',
  );
  // The instance takes two: one runs, one is sent ahead only once the model is known to be quick.
  const texts = world.arrive(entries(4, 100));
  assert.deepEqual(texts, [
    '',
    '',
    '',
    `${FULL} in bytes: 200 bytes wait, 100 more would be above the limit of 250 (parameter max_queue_bytes of the model)`,
  ]);
  assert.equal(world.batcher.waitingCount, 2);
  assert.deepEqual(world.arrive(entries(1, 50)), ['']);
});

test('a model is sent as much ahead as it is quick, and as nothing is lost by it', () => {
  const aheadOf = (
    config: string,
    model: { computeNs: number; byteLength?: number; answerBytes?: number },
  ) => {
    const { computeNs, byteLength = 64, answerBytes = 64 } = model;
    const world = new World(config);
    world.arrive(entries(40, byteLength));
    assert.equal(world.batchSizes.length, 1, 'before it is known how long it takes');
    world.answer(computeNs, answerBytes);
    return world.batchSizes.length - 1;
  };
  assert.equal(aheadOf('max_batch_size: 0', { computeNs: 50_000 }), 8);
  assert.equal(aheadOf('max_batch_size: 8', { computeNs: 50_000 }), 8);
  assert.equal(aheadOf('max_batch_size: 0', { computeNs: 500_000 }), 4);
  assert.equal(aheadOf('max_batch_size: 0', { computeNs: 1_500_000 }), 2);
  assert.equal(aheadOf('max_batch_size: 0', { computeNs: 2_000_000 }), 1);
  assert.equal(aheadOf('max_batch_size: 0', { computeNs: 50_000, byteLength: 600_000 }), 2);
  assert.equal(aheadOf('max_batch_size: 0', { computeNs: 50_000, answerBytes: 600_000 }), 2);
  // It answers at once that the answers will come: nothing waits for it.
  const decoupled = 'max_batch_size: 0 model_transaction_policy { decoupled: true }';
  assert.equal(aheadOf(decoupled, { computeNs: 0 }), 2);
  // One that batches: what waits in the queue may still grow.
  assert.equal(aheadOf('max_batch_size: 2 dynamic_batching { }', { computeNs: 50_000 }), 2);
});
