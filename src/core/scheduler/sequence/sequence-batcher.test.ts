// The sequence batcher on a simulated clock and instances that answer when they are told to. The batch sizes of the tables are
// those that Triton's own tests expect. Random runs are in test/simulation.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { QUEUE_BYTES_MAX } from '../../../domain/limits.ts';
import { SEQUENCE_END, SEQUENCE_START } from '../../../domain/request.ts';
import { StatusError } from '../../../domain/status.ts';
import type { SentRequest } from '../../../instance/execute-frame.ts';
import { BY_SENDER, RESCHEDULE, type ReceivedResult } from '../../../instance/result-codec.ts';
import { SimulatedClock } from '../../../lib/clock.ts';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import type { Entry, InstancePort } from '../entry.ts';
import { makeEntry, makeRequest } from '../test-entry.ts';
import { SequenceBatcher } from './sequence-batcher.ts';
import { toSequencePolicy } from './sequence-policy.ts';
import { createSequenceRequests } from './sequence-requests.ts';
import { type SequenceBounds, sequenceBounds } from './waiting-requests.ts';

const OUTPUTS: ReceivedResult = { outputs: [], parameters: undefined };
const LOST = new StatusError('UNAVAILABLE', 'the host was killed');

class HeldInstance implements InstancePort {
  readonly name = 'm_0';
  state: InstancePort['state'] = 'ready';
  isAdmitted = true;
  lastError: StatusError | undefined;
  readonly batches: { batchId: number; size: number }[] = [];
  readonly sent: (readonly SentRequest[])[] = [];

  get inFlightCount(): number {
    return this.batches.length;
  }

  execute(batchId: number, requests: readonly SentRequest[]): void {
    this.batches.push({ batchId, size: requests.length });
    this.sent.push(requests);
  }

  cancel(): void {}
  setPaused(): void {}
}

interface WorldOptions {
  readonly config: string;
  readonly instanceCount?: number;
  readonly delayedStartCount?: number;
  readonly delayedBacklogCount?: number;
  readonly bounds?: SequenceBounds;
}

class World {
  readonly clock = new SimulatedClock();
  readonly instances: HeldInstance[];
  readonly batcher: SequenceBatcher;
  /** `<request id> <what it was told>` */
  readonly told: string[] = [];
  /** The batch sizes of the statistics. */
  readonly sizes: number[] = [];
  readonly #deferred: (() => void)[] = [];
  readonly #entries = new Map<string, Entry>();

  constructor(options: WorldOptions) {
    const config = parseModelConfig(`name: "m" ${options.config}`);
    const tell = (entry: Entry, what: string) => this.told.push(`${entry.request.id} ${what}`);
    this.instances = Array.from({ length: options.instanceCount ?? 1 }, () => new HeldInstance());
    this.batcher = new SequenceBatcher({
      policy: toSequencePolicy(config),
      requests: createSequenceRequests(config),
      clock: this.clock,
      owner: {
        entryStarted: () => {},
        entryRequeued: (entry) => tell(entry, 'again'),
        succeed: (entry) => tell(entry, 'ok'),
        respond: (entry) => {
          tell(entry, 'part');
          return true;
        },
        finish: (entry) => tell(entry, 'end'),
        executed: () => {},
        fail: (entry, error, reason) => tell(entry, `${reason} ${error.describe()}`),
        batchExecuted: (size) => this.sizes.push(size),
      },
      instances: this.instances,
      defer: (fn) => this.#deferred.push(fn),
      delayedStartCount: options.delayedStartCount ?? 0,
      delayedBacklogCount: options.delayedBacklogCount ?? 0,
      bounds: options.bounds ?? sequenceBounds(QUEUE_BYTES_MAX),
    });
  }

  /** `a1 a2 b1`: requests of the sequences a and b. `+` before: START, after: END; `~k` at the end: the batch key. */
  send(text: string, fields: { timeoutUs?: number } = {}): this {
    for (const word of text.split(' ')) {
      const [, start, id, number, end, key] = /^(\+?)([a-z])(\d+)(\+?)(?:~(\w))?$/.exec(word)!;
      const flags = (start === '' ? 0 : SEQUENCE_START) | (end === '' ? 0 : SEQUENCE_END);
      const request = makeRequest({ id: id! + number, correlationId: id!, sequenceFlags: flags, ...fields });
      const entry = makeEntry({ request, batchKey: key ?? '' });
      this.batcher.enqueue(entry);
      this.#entries.set(request.id, entry);
    }
    return this;
  }

  entry(id: string): Entry {
    return this.#entries.get(id)!;
  }

  turn(): this {
    for (let next = this.#deferred.shift(); next !== undefined; next = this.#deferred.shift()) next();
    return this;
  }

  pass(ms: number): this {
    this.turn().clock.advance(ms);
    return this.turn();
  }

  /** The first batch of an instance is over. */
  reply(result: ReceivedResult | readonly ReceivedResult[] = OUTPUTS, instance = 0): this {
    const { batchId, size } = this.turn().instances[instance]!.batches.shift()!;
    const results = Array.isArray(result)
      ? result
      : new Array<ReceivedResult>(size).fill(result as ReceivedResult);
    const timing = { computeInputNs: 0, computeInferNs: 1, computeOutputNs: 0 };
    this.batcher.onReply({ batchId, results, ...timing });
    return this.turn();
  }

  /** Answers until nothing runs any more. */
  finish(): this {
    for (let isBusy = true; isBusy; ) {
      isBusy = false;
      this.turn().instances.forEach(({ batches }, i) => {
        if (batches.length > 0) this.reply(OUTPUTS, i);
        isBusy ||= batches.length > 0;
      });
      isBusy = this.instances.some(({ batches }) => batches.length > 0);
    }
    return this;
  }

  lose(instance = 0): this {
    const lost = this.instances[instance]!;
    lost.batches.length = 0;
    lost.state = 'restarting';
    this.batcher.onLost(lost, LOST);
    this.batcher.onInstanceChange();
    return this.turn();
  }
}

const DIRECT = 'max_batch_size: 4 sequence_batching { direct { } }';
const OLDEST = 'max_batch_size: 4 sequence_batching { oldest { max_candidate_sequences: 4 } }';

/** `2×4`: four batches of two. */
function histogram(sizes: readonly number[]): string {
  const counts = new Map<number, number>();
  for (const size of sizes) counts.set(size, (counts.get(size) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([size, count]) => `${size}×${count}`)
    .join(' ');
}

describe('batch sizes as in Triton', () => {
  const cases = [
    ['half batch', 8, 0, '+a1 a2 a3 a4+ +b1 b2 b3 b4+', '2×4'],
    ['full batch', 12, 0, '+a1 +b1 +c1 +d1 a2 b2 c2 d2 a3+ b3+ c3+ d3+', '4×3'],
    ['skip batch', 12, 0, '+a1 a2 a3 a4+ +b1 b2 b3 b4+ +c1 c2+ +d1 d2+', '2×2 4×2'],
    ['backlog', 12, 0, '+a1 a2 a3+ +b1 b2 b3+ +c1 c2 c3+ +d1 d2 d3+ +e1 e2 e3+', '1×3 4×3'],
    ['backlog fill', 10, 2, '+a1 a2 a3+ +b1 b2+ +c1 c2+ +d1 d2 d3+ +e1+ +f1+', '4×3'],
    ['ragged', 12, 0, '+a1~x a2~x a3+~x +b1~y b2~y b3+~y +c1~y c2~y c3+~y +d1~z d2~z d3+~z', '4×9'],
  ] as const;
  for (const [name, delayedStartCount, delayedBacklogCount, sent, expected] of cases) {
    test(name, () => {
      const world = new World({ config: DIRECT, delayedStartCount, delayedBacklogCount });
      world.send(sent).finish();
      assert.equal(histogram(world.sizes), expected);
      const answers = world.told.filter((text) => text.endsWith(' ok'));
      assert.equal(answers.length, sent.split(' ').length, 'null requests are not answered');
    });
  }

  test('nothing goes out before enough has come', () => {
    const world = new World({ config: DIRECT, delayedStartCount: 3 }).send('+a1 +b1').turn();
    assert.equal(world.instances[0]!.inFlightCount, 0);
    world.send('+c1').turn();
    assert.equal(world.instances[0]!.batches[0]?.size, 3);
  });
});

test('slot 0 of every instance is used before slot 1 of any', () => {
  const world = new World({ config: DIRECT, instanceCount: 2 }).send('+a1 +b1 +c1').turn();
  assert.deepEqual(
    world.instances.map(({ batches }) => batches[0]?.size),
    [2, 1],
  );
});

test('direct: the next batch waits for the last one; a slot without a request is filled up', () => {
  const world = new World({ config: DIRECT }).send('+a1 +b1 a2 b2').turn();
  assert.equal(world.instances[0]!.inFlightCount, 1);
  world.reply().reply().send('b3').turn();
  assert.equal(world.instances[0]!.batches[0]?.size, 2);
  assert.deepEqual(world.reply().told, ['a1 ok', 'b1 ok', 'a2 ok', 'b2 ok', 'b3 ok']);
  assert.deepEqual(world.sizes, [2, 2, 2], 'a filled place counts in the size of the batch');
});

test('direct: too few slots wait for the queue delay', () => {
  const direct = 'direct { max_queue_delay_microseconds: 5000 minimum_slot_utilization: 0.5 }';
  const world = new World({ config: `max_batch_size: 4 sequence_batching { ${direct} }` });
  world.send('+a1').pass(4.9);
  assert.equal(world.instances[0]!.inFlightCount, 0);
  assert.equal(world.pass(0.2).instances[0]!.inFlightCount, 1);
  world.reply().send('a2 +b1').turn();
  assert.equal(world.instances[0]!.batches[0]?.size, 2, 'half of the slots are enough');
});

test('oldest: one request of a sequence at a time, others beside it', () => {
  const world = new World({ config: OLDEST }).send('+a1 a2 +b1').turn();
  assert.equal(world.instances[0]!.batches[0]?.size, 2);
  assert.deepEqual(world.reply().told, ['a1 ok', 'b1 ok']);
  assert.deepEqual(world.reply().told, ['a1 ok', 'b1 ok', 'a2 ok']);
});

test('oldest: the next request of a decoupled sequence waits for the final part', () => {
  const world = new World({ config: OLDEST }).send('+a1 a2').turn();
  const { batchId } = world.instances[0]!.batches[0]!;
  world.reply(BY_SENDER);
  assert.equal(world.instances[0]!.inFlightCount, 0);
  world.batcher.onPart({ batchId, request: 0, isFinal: false, result: OUTPUTS });
  world.turn();
  assert.equal(world.instances[0]!.inFlightCount, 0);
  world.batcher.onPart({ batchId, request: 0, isFinal: true, result: BY_SENDER });
  world.turn();
  assert.equal(world.instances[0]!.inFlightCount, 1);
  assert.deepEqual(world.told, ['a1 part', 'a1 end']);
});

test('a sequence must begin with START, and its id is free after END', () => {
  const world = new World({ config: DIRECT });
  const text =
    /inference request for sequence a to model 'm' must specify the START flag on the first request/;
  assert.throws(() => world.send('a1'), text);
  world.send('+a1 a2+');
  assert.throws(() => world.send('a3'), text);
  world.send('+a4 a5+').finish();
  assert.deepEqual(world.told, ['a1 ok', 'a4 ok', 'a2 ok', 'a5 ok']);
});

test('START of a sequence that goes on keeps its slot; what waits is executed first', () => {
  const world = new World({ config: DIRECT }).send('+a1 a2 +a3 a4+').finish();
  assert.deepEqual(world.told, ['a1 ok', 'a2 ok', 'a3 ok', 'a4 ok']);
  assert.equal(histogram(world.sizes), '1×4');
});

test('an idle sequence loses its slot, and the backlog gets it', () => {
  const config = 'max_batch_size: 1 sequence_batching { max_sequence_idle_microseconds: 100000 }';
  const world = new World({ config }).send('+a1 +b1').reply().pass(99);
  assert.deepEqual(world.told, ['a1 ok']);
  world.pass(1.5).reply();
  assert.deepEqual(world.told, ['a1 ok', 'b1 ok']);
  assert.throws(() => world.send('a2'), /START flag/);
  // Its idle time counts from when it got the slot, not from when it began to wait for it.
  world.pass(90).send('b2').reply();
  assert.deepEqual(world.told, ['a1 ok', 'b1 ok', 'b2 ok']);
});

test('a timeout of any request ends a sequence in the backlog, and only there', () => {
  const config = 'max_batch_size: 1 sequence_batching { }';
  const world = new World({ config }).send('+a1', { timeoutUs: 1000 }).turn();
  world.send('+b1').send('b2', { timeoutUs: 5000 }).pass(4);
  assert.deepEqual(world.told, []);
  world.pass(1);
  const text = 'REJECTED Unavailable: timeout of the corresponding sequence has been expired';
  assert.deepEqual(world.told, [`b1 ${text}`, `b2 ${text}`]);
  assert.throws(() => world.send('b3'), /START flag/);
});

test('a request that is cancelled while it waits takes its sequence along', () => {
  const world = new World({ config: 'max_batch_size: 1 sequence_batching { }' });
  world.send('+a1 a2 a3 +b1').turn();
  world.batcher.cancel(world.entry('a3'));
  assert.deepEqual(
    world.told.map((text) => text.slice(0, 11)),
    ['a2 CANCELED', 'a3 CANCELED'],
  );
  assert.throws(() => world.send('a4'), /START flag/);
  world.reply().reply();
  assert.deepEqual(world.told.slice(2), ['a1 ok', 'b1 ok']);
});

test('a running request that is cancelled leaves its sequence as it is', () => {
  const world = new World({ config: OLDEST }).send('+a1 a2').turn();
  world.batcher.cancel(world.entry('a1'));
  assert.equal(world.turn().instances[0]!.inFlightCount, 1, 'the host is still at it');
  world.reply().reply();
  assert.equal(world.told.at(-1), 'a2 ok');
});

for (const [name, config] of [
  ['direct', DIRECT],
  ['oldest', OLDEST],
] as const) {
  test(`${name}: a lost host ends its sequences and no others`, () => {
    const world = new World({ config, instanceCount: 2 }).send('+a1 a2 +b1').turn().lose(0);
    const text = 'BACKEND Unavailable: the host was killed';
    assert.deepEqual(world.told, [`a1 ${text}`, `a2 ${text}`]);
    assert.throws(() => world.send('a3'), /START flag/);
    world.reply(OUTPUTS, 1).send('b2 +c1').turn();
    assert.equal(world.instances[0]!.inFlightCount, 0, 'new sequences go where an instance runs');
    world.finish();
    assert.deepEqual(world.told.slice(2).sort(), ['b1 ok', 'b2 ok', 'c1 ok']);
  });
}

test('without any instance that may come back requests are refused, and the backlog fails', () => {
  const world = new World({ config: 'max_batch_size: 1 sequence_batching { }' })
    .send('+a1 +b1')
    .turn()
    .lose();
  world.instances[0]!.state = 'failed';
  world.batcher.onInstanceChange();
  assert.match(world.told.at(-1)!, /^b1 BACKEND .*no instance of the model is running/);
  assert.throws(() => world.send('+c1'), /no instance of the model is running/);
});

test('the bounds: requests that wait, and sequences that wait for a slot', () => {
  const bounds = { requestsMax: 4, bytesMax: 100, backlogMax: 1 };
  const world = new World({ config: 'max_batch_size: 1 sequence_batching { }', bounds }).send('+a1 +b1');
  const text = /\[request id: c1\] Exceeds maximum queue size: 1 sequences wait for a slot of the model$/;
  assert.throws(() => world.send('+c1'), text);
  world.send('a2 a3');
  assert.throws(() => world.send('a4'), /\[request id: a4\] Exceeds maximum queue size$/);
  world.finish();
  assert.deepEqual(world.told, ['a1 ok', 'a2 ok', 'a3 ok']);
});

test('the rate limiter is asked only when there is something to send', () => {
  const world = new World({ config: DIRECT });
  let questions = 0;
  Object.defineProperty(world.instances[0], 'isAdmitted', { get: () => questions++ > 0 });
  world.pass(10);
  assert.equal(questions, 0);
  world.send('+a1').turn();
  assert.equal(world.instances[0]!.inFlightCount, 0);
  world.batcher.onInstanceChange();
  assert.equal(world.turn().instances[0]!.inFlightCount, 1);
});

describe('drain', () => {
  test('sequences that have begun may go on, new ones are refused', async () => {
    const world = new World({ config: DIRECT }).send('+a1').reply();
    let isDrained = false;
    const drained = world.batcher.drain({ areSequencesAwaited: true }).then(() => {
      isDrained = true;
    });
    await Promise.resolve();
    assert.equal(world.batcher.openCount, 1, 'the sequence counts');
    assert.throws(() => world.send('+b1'), /Server is stopping, scheduler for model has stopped/);
    world.send('a2+').turn();
    assert.ok(!isDrained);
    world.reply();
    await drained;
    assert.equal(world.batcher.openCount, 0);
    assert.equal(world.clock.nextTimerMs(), undefined);
  });

  test('an unload waits for requests only', async () => {
    const world = new World({ config: DIRECT }).send('+a1').reply();
    await world.batcher.drain();
    assert.throws(() => world.send('a2'), /Server is stopping/);
  });

  test('a sequence that nobody ends is ended by its idle time', async () => {
    const world = new World({ config: DIRECT }).send('+a1').reply();
    const drained = world.batcher.drain({ areSequencesAwaited: true });
    world.pass(1_001);
    await drained;
  });
});

describe('iterative sequences', () => {
  const ITERATIVE = 'max_batch_size: 4 sequence_batching { iterative_sequence: true direct { } }';
  const plain = (id: string) => makeEntry({ request: makeRequest({ id }) });

  test('the scheduler makes the ids, and executes a request until the model is done with it', () => {
    const world = new World({ config: ITERATIVE });
    for (const id of ['x', 'y']) world.batcher.enqueue(plain(id));
    world.reply([RESCHEDULE, OUTPUTS]);
    assert.equal(world.instances[0]!.batches[0]?.size, 1);
    world.reply(RESCHEDULE).reply();
    assert.deepEqual(world.told, ['x again', 'y ok', 'x again', 'x ok']);
    assert.equal(world.batcher.openCount, 0);
    const next = plain('z');
    world.batcher.enqueue(next);
    assert.equal(next.sequence?.sequence.id, 3n);
    assert.equal(next.sequence?.sequence.slot?.number, 0, 'the slots are free again');
  });

  test('a step longer than the idle time ends the sequence', () => {
    const world = new World({ config: ITERATIVE });
    world.batcher.enqueue(plain('x'));
    world.pass(1_001).reply(RESCHEDULE);
    assert.match(world.told.at(-1)!, /^x OTHER .*sequence 1 to model 'm' must specify the START flag/);
    assert.equal(world.batcher.openCount, 0);
  });

  test('other models may not ask for it', () => {
    const world = new World({ config: DIRECT }).send('+a1').reply(RESCHEDULE);
    assert.match(
      world.told.at(-1)!,
      /^a1 BACKEND .*Request is released with TRITONSERVER_REQUEST_RELEASE_RESCH/,
    );
  });
});
