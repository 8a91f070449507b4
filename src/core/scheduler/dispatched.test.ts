// Batches that run and requests that are answered part by part: whatever the host does, each request has one end.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OPEN_BATCHES_PER_INSTANCE_MAX } from '../../domain/limits.ts';
import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { StatusError } from '../../domain/status.ts';
import {
  BY_SENDER,
  RESCHEDULE,
  ReceivedError,
  type ReceivedOutputs,
  type ReceivedResult,
} from '../../instance/result-codec.ts';
import { systemClock } from '../../lib/clock.ts';
import { createPrng } from '../../lib/prng.ts';
import { Batcher } from './batcher.ts';
import { Dispatched } from './dispatched.ts';
import type { Entry, EntryOwner, InstancePort } from './entry.ts';
import { toSchedulerPolicy } from './scheduler-policy.ts';
import { makeEntry, makeRequest } from './test-entry.ts';

const OUTPUTS: ReceivedOutputs = { outputs: [], parameters: undefined };
const LOST = new StatusError('UNAVAILABLE', 'the host was killed');

class NotedInstance implements InstancePort {
  readonly name = 'm_0';
  readonly state = 'ready';
  inFlightCount = 0;
  readonly lastError = undefined;
  readonly isAdmitted = true;
  readonly notes: string[] = [];
  /** Thrown by the next execute. */
  defect: Error | undefined;

  execute(batchId: number): void {
    if (this.defect !== undefined) throw this.defect;
    this.inFlightCount++;
    this.notes.push(`execute ${batchId}`);
  }

  cancel(batchId: number, request: number): void {
    this.notes.push(`cancel ${batchId}.${request}`);
  }

  setPaused(batchId: number, request: number, isPaused: boolean): void {
    this.notes.push(`${isPaused ? 'pause' : 'resume'} ${batchId}.${request}`);
  }
}

/** Everything that reached clients and statistics, as one list of words. */
class World {
  readonly told: string[] = [];
  readonly instance = new NotedInstance();
  readonly owner: EntryOwner;
  readonly dispatched: Dispatched;
  /** What clients answer to a response. */
  hasRoom = true;
  progressCount = 0;

  constructor(options: { isOrderPreserved?: boolean } = {}) {
    const tell = (entry: Entry, what: string) => this.told.push(`${entry.request.id} ${what}`);
    this.owner = {
      entryStarted: () => {},
      entryRequeued: (entry) => tell(entry, 'requeued'),
      succeed: (entry) => tell(entry, 'succeed'),
      respond: (entry, result, isFinal) => {
        const what = result === undefined ? 'empty' : result instanceof StatusError ? 'error' : 'part';
        tell(entry, isFinal ? `final ${what}` : what);
        return this.hasRoom;
      },
      finish: (entry) => tell(entry, 'finish'),
      executed: (entry) => {
        entry.isCounted = true;
        tell(entry, 'executed');
      },
      fail: (entry, error, reason) => tell(entry, `fail ${error.code} ${reason}`),
      batchExecuted: (batchSize) => this.told.push(`batch of ${batchSize}`),
    };
    this.dispatched = new Dispatched({
      owner: this.owner,
      isOrderPreserved: options.isOrderPreserved ?? false,
      onProgress: () => {
        this.progressCount++;
      },
    });
  }

  /** One batch, given to the instance. */
  send(...ids: string[]): Entry[] {
    const entries = ids.map((id) => makeEntry({ request: makeRequest({ id }) }));
    for (const entry of entries) this.dispatched.accept(entry);
    this.dispatched.send(this.instance, entries, 0);
    return entries;
  }

  reply(batchId: number, ...results: ReceivedResult[]): void {
    this.dispatched.onReply({ batchId, results, computeInputNs: 1, computeInferNs: 2, computeOutputNs: 3 });
  }

  part(batchId: number, request: number, options: { isFinal?: boolean; result?: ReceivedResult } = {}): void {
    const { isFinal = false, result = OUTPUTS } = options;
    this.dispatched.onPart({ batchId, request, isFinal, result });
  }

  end(batchId: number, request: number): void {
    this.part(batchId, request, { isFinal: true, result: BY_SENDER });
  }

  take(): string[] {
    return this.told.splice(0);
  }
}

test('a client that cancels as it gets the last response has had its end once', () => {
  const world = new World();
  const [entry] = world.send('a');
  world.reply(1, BY_SENDER);
  const { respond } = world.owner;
  world.owner.respond = (...args) => {
    const hasRoom = respond(...args);
    world.dispatched.cancel(entry!);
    return hasRoom;
  };
  world.take();
  world.part(1, 0, { isFinal: true });
  assert.deepEqual(world.take(), ['a final part', 'a fail CANCELLED CANCELED']);
  assert.ok(world.dispatched.isEmpty);
  assert.equal(world.dispatched.openCount, 0);
});

describe('a batch with one answer for each request', () => {
  test('ends with its RESPONSE; a second one, parts and a cancellation do nothing', () => {
    const world = new World();
    world.send('a', 'b');
    assert.equal(world.dispatched.openCount, 2);
    world.reply(1, OUTPUTS, new ReceivedError('INTERNAL', 'x', 'failed'));
    assert.deepEqual(world.take(), ['batch of 2', 'a succeed', 'b fail INTERNAL BACKEND']);
    assert.ok(world.dispatched.isEmpty);
    world.reply(1, OUTPUTS, OUTPUTS);
    world.part(1, 0);
    world.end(1, 1);
    assert.deepEqual(world.take(), []);
  });

  test('counts nothing that was not executed, and errors of the model itself as executed', () => {
    const world = new World();
    world.send('a');
    world.reply(1, new ReceivedError('CANCELLED', '', 'not executed'));
    assert.deepEqual(world.take(), ['a fail CANCELLED CANCELED']);
    assert.equal(world.dispatched.computeNs, Number.POSITIVE_INFINITY);
    world.send('b');
    world.reply(2, new ReceivedError('INTERNAL', 'x', 'answered'));
    assert.deepEqual(world.take(), ['batch of 1', 'b executed', 'b fail INTERNAL BACKEND']);
    assert.equal(world.dispatched.computeNs, 2);
  });

  test('a host that forgets a request fails it', () => {
    const world = new World();
    world.send('a', 'b');
    world.reply(1, OUTPUTS);
    assert.deepEqual(world.take(), ['batch of 1', 'a succeed', 'b fail INTERNAL BACKEND']);
    assert.ok(world.dispatched.isEmpty);
  });

  test('that cannot be sent fails its requests', () => {
    const world = new World();
    world.instance.defect = new Error('no socket');
    world.send('a', 'b');
    assert.deepEqual(world.take(), ['a fail INTERNAL OTHER', 'b fail INTERNAL OTHER']);
    assert.ok(world.dispatched.isEmpty);
  });
});

describe('a request that is answered part by part', () => {
  test('goes on after its RESPONSE', () => {
    const world = new World();
    world.send('a');
    world.part(1, 0);
    world.reply(1, BY_SENDER);
    assert.deepEqual(world.take(), ['a part', 'batch of 1', 'a executed']);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 1);
    world.part(1, 0, { result: new ReceivedError('INTERNAL', 'x', 'failed') });
    const { progressCount } = world;
    world.end(1, 0);
    assert.deepEqual(world.take(), ['a error', 'a finish']);
    assert.ok(world.dispatched.isEmpty);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 0);
    assert.ok(world.progressCount > progressCount, 'the scheduler was not told');
    world.part(1, 0);
    world.end(1, 0);
    assert.deepEqual(world.take(), []);
  });

  test('may end before its RESPONSE, and is counted then', () => {
    const world = new World();
    world.send('a');
    world.part(1, 0, { isFinal: true });
    assert.deepEqual(world.take(), ['a final part', 'a finish']);
    assert.equal(world.dispatched.openCount, 0);
    world.part(1, 0);
    world.reply(1, BY_SENDER);
    assert.deepEqual(world.take(), ['batch of 1', 'a executed']);
    assert.ok(world.dispatched.isEmpty);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 0);
  });

  test('a response without content is one; the end without content is none', () => {
    const world = new World();
    world.send('a');
    world.part(1, 0, { result: BY_SENDER });
    world.end(1, 0);
    assert.deepEqual(world.take(), ['a empty', 'a finish']);
  });

  test('shares its batch with others', () => {
    const world = new World();
    world.send('a', 'b', 'c');
    world.reply(1, BY_SENDER, OUTPUTS, BY_SENDER);
    assert.deepEqual(world.take(), ['batch of 3', 'a executed', 'b succeed', 'c executed']);
    world.end(1, 2);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 1);
    world.end(1, 0);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 0);
    assert.deepEqual(world.take(), ['c finish', 'a finish']);
  });

  test('parts of batches and requests that are not there cost nothing', () => {
    const world = new World();
    world.send('a');
    world.part(9, 0);
    world.part(1, 7);
    assert.deepEqual(world.take(), []);
  });
});

describe('a slow client', () => {
  test('pauses its model once and lets it go on when it has room', () => {
    const world = new World();
    const [a] = world.send('a', 'b');
    world.hasRoom = false;
    world.part(1, 0);
    world.part(1, 0);
    assert.deepEqual(world.instance.notes, ['execute 1', 'pause 1.0']);
    world.hasRoom = true;
    a!.sink.onRoom?.();
    a!.sink.onRoom?.();
    assert.deepEqual(world.instance.notes, ['execute 1', 'pause 1.0', 'resume 1.0']);
    world.hasRoom = false;
    world.part(1, 0);
    world.hasRoom = true;
    world.part(1, 0);
    assert.deepEqual(world.instance.notes.slice(3), ['pause 1.0', 'resume 1.0']);
  });

  test('whose last response came is not paused, and room after the end tells nobody', () => {
    const world = new World();
    const [a, b] = world.send('a', 'b');
    world.hasRoom = false;
    world.part(1, 0, { isFinal: true });
    world.part(1, 1);
    world.end(1, 1);
    a!.sink.onRoom?.();
    b!.sink.onRoom?.();
    assert.deepEqual(world.instance.notes, ['execute 1', 'pause 1.1']);
  });
});

describe('cancel', () => {
  test('of one request in a batch ends that one and tells the host', () => {
    const world = new World();
    const [, b] = world.send('a', 'b');
    world.dispatched.cancel(b!);
    assert.deepEqual(world.instance.notes, ['execute 1', 'cancel 1.1']);
    assert.deepEqual(world.take(), ['b fail CANCELLED CANCELED']);
    world.part(1, 1);
    world.reply(1, OUTPUTS, OUTPUTS);
    assert.deepEqual(world.take(), ['batch of 2', 'a succeed']);
    assert.ok(world.dispatched.isEmpty);
  });

  test('of a paused request that lingers frees it', () => {
    const world = new World();
    const [a] = world.send('a');
    world.reply(1, BY_SENDER);
    world.hasRoom = false;
    world.part(1, 0);
    world.dispatched.cancel(a!);
    assert.ok(world.dispatched.isEmpty);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 0);
    world.end(1, 0);
    assert.equal(world.take().filter((word) => word.startsWith('a f')).length, 1);
  });
});

test('a lost instance fails what it had, also what lingers, and nothing else', () => {
  const world = new World();
  const other = new NotedInstance();
  world.send('a', 'b');
  world.reply(1, BY_SENDER, OUTPUTS);
  world.send('c');
  world.dispatched.send(other, [makeEntry({ request: makeRequest({ id: 'd' }) })], 0);
  world.take();
  world.dispatched.onLost(world.instance, LOST);
  assert.deepEqual(world.take(), ['a fail UNAVAILABLE BACKEND', 'c fail UNAVAILABLE BACKEND']);
  assert.equal(world.dispatched.lingeringCountOf(world.instance), 0);
  assert.equal(world.dispatched.openCount, 1);
  world.send('e');
  world.reply(4, BY_SENDER);
  assert.equal(world.dispatched.lingeringCountOf(world.instance), 1);
  world.reply(3, OUTPUTS);
  world.end(4, 0);
  assert.ok(world.dispatched.isEmpty);
});

test('a host that answers later than it executes takes in so many batches and no more', () => {
  const { owner, instance } = new World();
  const deferred: (() => void)[] = [];
  const batcher = new Batcher({
    owner,
    policy: toSchedulerPolicy(createMessage('ModelConfig') as unknown as ModelConfig),
    clock: systemClock,
    instances: [instance],
    defer: (fn) => deferred.push(fn),
    delayedStartCount: 0,
  });
  const answer = (batchId: number) => {
    instance.inFlightCount = 0;
    // So slow that no batch is sent ahead.
    const timing = { computeInputNs: 0, computeInferNs: 1e9, computeOutputNs: 0 };
    batcher.onReply({ batchId, results: [BY_SENDER], ...timing });
  };
  for (let i = 1; i <= OPEN_BATCHES_PER_INSTANCE_MAX + 2; i++) {
    batcher.enqueue(makeEntry());
    for (const run of deferred.splice(0)) run();
    answer(i);
  }
  assert.equal(instance.notes.length, OPEN_BATCHES_PER_INSTANCE_MAX);
  assert.equal(batcher.waitingCount, 2);
  batcher.onPart({ batchId: 5, request: 0, isFinal: true, result: BY_SENDER });
  for (const run of deferred.splice(0)) run();
  assert.equal(instance.notes.length, OPEN_BATCHES_PER_INSTANCE_MAX + 1);
  batcher.failAll(LOST);
  assert.equal(batcher.openCount, 0);
});

test('failAll answers everything that is open, once', () => {
  const world = new World();
  world.send('a', 'b');
  world.end(1, 0);
  world.send('c');
  world.take();
  world.dispatched.failAll(LOST);
  assert.deepEqual(world.take(), ['b fail UNAVAILABLE OTHER', 'c fail UNAVAILABLE OTHER']);
  assert.ok(world.dispatched.isEmpty);
});

test('under preserve_ordering parts wait for their turn, and the model is paused meanwhile', () => {
  const world = new World({ isOrderPreserved: true });
  world.send('a');
  world.send('b');
  world.part(2, 0);
  world.part(2, 0);
  assert.deepEqual(world.instance.notes.slice(2), ['pause 2.0']);
  world.part(1, 0);
  assert.deepEqual(world.take(), ['a part']);
  world.end(1, 0);
  assert.deepEqual(world.take(), ['a finish', 'b part', 'b part']);
  assert.deepEqual(world.instance.notes.slice(2), ['pause 2.0', 'resume 2.0']);
  world.end(2, 0);
  assert.deepEqual(world.take(), ['b finish']);
});

test('whatever comes in whatever order, each request has one end and nothing after it', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const prng = createPrng(seed);
    const world = new World({ isOrderPreserved: prng.boolean(0.3) });
    const entries = [world.send('0', '1', '2'), world.send('3'), world.send('4', '5')].flat();
    const result = () =>
      prng.pick<ReceivedResult>([OUTPUTS, BY_SENDER, new ReceivedError('INTERNAL', 'x', 'failed')]);
    for (let step = 0; step < 60; step++) {
      world.hasRoom = prng.boolean(0.7);
      const batchId = prng.integer(0, 4);
      const entry = prng.pick(entries);
      const chance = prng.float();
      if (chance < 0.6) {
        world.part(batchId, prng.integer(0, 3), { isFinal: prng.boolean(0.2), result: result() });
      } else if (chance < 0.7) world.reply(batchId, result(), result(), result());
      else if (chance < 0.8 && !entry.isAnswered) world.dispatched.cancel(entry);
      else if (chance < 0.9) entry.sink.onRoom?.();
      else if (chance < 0.91) world.dispatched.onLost(world.instance, LOST);
    }
    world.dispatched.onLost(world.instance, LOST);
    for (const { request } of entries) {
      const words = world.told.filter(
        (word) => word.startsWith(`${request.id} `) && !word.endsWith('executed'),
      );
      const ends = words.filter((word) => /succeed|finish|fail/.test(word));
      assert.equal(ends.length, 1, `seed ${seed}: ${words.join(', ')}`);
      assert.equal(words.at(-1), ends[0], `seed ${seed}: ${words.join(', ')}`);
    }
    assert.ok(world.dispatched.isEmpty);
    assert.equal(world.dispatched.lingeringCountOf(world.instance), 0, `seed ${seed}`);
  }
});

describe('places and requests that are executed once more', () => {
  const filled = { inputs: [], requestedOutputs: [] };

  function open(options: { isIterative: boolean }) {
    const world = new World();
    const hooks: string[] = [];
    const note = (what: string) => (entry: Entry) => hooks.push(`${entry.request.id} ${what}`);
    const dispatched = new Dispatched({
      owner: world.owner,
      isOrderPreserved: false,
      onProgress: () => {},
      onDone: note('done'),
      ...(options.isIterative ? { onReschedule: note('reschedule') } : {}),
    });
    const entries = ['a', 'b'].map((id) => makeEntry({ request: makeRequest({ id }) }));
    const [a, b] = entries as [Entry, Entry];
    const places = [
      { entry: undefined, sent: filled },
      { entry: a, sent: filled },
      { entry: b, sent: filled },
    ];
    dispatched.sendPlaces(world.instance, places, 0);
    const reply = (results: ReceivedResult[]) =>
      dispatched.onReply({ batchId: 1, results, computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 });
    return { world, hooks, dispatched, reply, a, b };
  }

  test('results go by place, and a place without a request counts only in the size of the batch', () => {
    const { world, dispatched, hooks, reply, a, b } = open({ isIterative: false });
    assert.equal(dispatched.openCount, 2);
    assert.deepEqual(
      [0, 1, 2].map((place) => dispatched.entryOf(1, place)),
      [undefined, a, b],
    );
    reply([new ReceivedError('INTERNAL', 'nobody sees it', 'failed'), OUTPUTS, BY_SENDER]);
    assert.deepEqual(world.told, ['batch of 3', 'a succeed', 'b executed']);
    assert.deepEqual(hooks, ['a done']);
    dispatched.onPart({ batchId: 1, request: 0, isFinal: true, result: OUTPUTS });
    dispatched.onPart({ batchId: 1, request: 2, isFinal: true, result: OUTPUTS });
    assert.deepEqual(world.told.slice(3), ['b final part', 'b finish']);
    assert.deepEqual(hooks, ['a done', 'b done']);
    assert.ok(dispatched.isEmpty);
  });

  test('done comes after the end and the execution, whichever is first', () => {
    const { world, dispatched, hooks, reply, a } = open({ isIterative: false });
    dispatched.cancel(a);
    assert.deepEqual([world.told, hooks], [['a fail CANCELLED CANCELED'], []]);
    reply([OUTPUTS, OUTPUTS, OUTPUTS]);
    assert.deepEqual(hooks, ['a done', 'b done']);
  });

  test('what was lost is done, also what was answered before', () => {
    const { world, dispatched, hooks, b } = open({ isIterative: false });
    dispatched.cancel(b);
    dispatched.onLost(world.instance, LOST);
    assert.deepEqual(hooks.sort(), ['a done', 'b done']);
    assert.deepEqual(world.told, ['b fail CANCELLED CANCELED', 'a fail UNAVAILABLE BACKEND']);
  });

  test('a request leaves its batch to be executed once more', () => {
    const { world, dispatched, hooks, reply, a, b } = open({ isIterative: true });
    reply([OUTPUTS, RESCHEDULE, BY_SENDER]);
    assert.deepEqual(world.told, ['batch of 3', 'a executed', 'a requeued', 'b executed']);
    assert.deepEqual(hooks, ['a reschedule']);
    assert.deepEqual([a.payload, a.isCounted, dispatched.openCount], [undefined, false, 1]);
    dispatched.onPart({ batchId: 1, request: 1, isFinal: true, result: OUTPUTS });
    assert.ok(!a.isAnswered, 'a late part of the old execution is nobody’s');
    dispatched.onLost(world.instance, LOST);
    assert.deepEqual([a.isAnswered, b.isAnswered], [false, true]);
  });

  test('who is answered is not executed again', () => {
    const { hooks, dispatched, reply, a } = open({ isIterative: true });
    dispatched.cancel(a);
    reply([OUTPUTS, RESCHEDULE, OUTPUTS]);
    assert.deepEqual(hooks, ['a done', 'b done']);
  });
});
