import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CACHE_LOOKUPS_MAX, CACHE_STEP_BYTES_MAX } from '../../domain/limits.ts';
import type { InferRequest } from '../../domain/request.ts';
import { internal, unavailable } from '../../domain/status.ts';
import type { CacheStore } from './cache-store.ts';
import { CachedModel } from './cached-model.ts';
import { LocalStore } from './local-store.ts';
import { input, output, requestOf, settle, TestModel, TestSink, testCache } from './test-served.ts';

/** Answers later, as Redis does; `release` lets every look-up go on. */
class SlowStore implements CacheStore {
  readonly isShared = true;
  readonly entryBytesMax = 1_000_000;
  readonly #inner = new LocalStore(1_000_000);
  #waiting: (() => void)[] = [];

  async find(scope: string, digest: string): Promise<Buffer | undefined> {
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.#inner.find(scope, digest);
  }

  has(): boolean {
    return false;
  }

  put(scope: string, digest: string, entry: Buffer): void {
    this.#inner.put(scope, digest, entry);
  }

  forget(): void {}

  close(): void {}

  async release(): Promise<void> {
    await settle();
    for (const go of this.#waiting.splice(0)) go();
    await settle();
  }
}

/** The worst digest there is: every request has the same. */
class CollidingStore implements CacheStore {
  readonly isShared = false;
  readonly entryBytesMax = 1_000_000;
  #entry: Buffer | undefined;

  find(): Buffer | undefined {
    return this.#entry;
  }

  has(): boolean {
    return false;
  }

  put(_scope: string, _digest: string, entry: Buffer): void {
    this.#entry = entry;
  }

  forget(): void {}

  close(): void {}
}

function setUp(store: CacheStore = new LocalStore(1_000_000), config = '') {
  const { cache, registry, logged } = testCache(store);
  const inner = new TestModel(registry, config);
  const model = new CachedModel(inner, { cache, scope: 'm:1:first' });
  const ask = (request: InferRequest, sink = new TestSink()): TestSink => {
    model.infer({ request, sink, cancellation: undefined, trace: undefined });
    return sink;
  };
  const value = (name: string): number | undefined => {
    const family = registry.collect().find((one) => one.name === name);
    return family?.type === 'counter' || family?.type === 'gauge' ? family.samples[0]?.value : undefined;
  };
  return { cache, registry, logged, inner, model, ask, value };
}

describe('a cached model', () => {
  test('answers the second of two equal requests without executing it', async () => {
    const { inner, ask, model, value } = setUp();
    const first = ask(requestOf([1, 2], { id: 'a' }));
    inner.execute();
    const second = ask(requestOf([1, 2], { id: 'b' }));
    assert.equal(second.endCount, 0, 'an answer may not come before infer returns');
    await settle();
    assert.deepEqual(second.bytes, first.bytes);
    assert.deepEqual(
      second.responses.map(({ id, modelName, modelVersion }) => [id, modelName, modelVersion]),
      [['b', 'm', 1]],
    );
    assert.equal(second.endCount, 1);
    assert.equal(inner.executedCount, 1);
    const { success, queue, computeInfer, cacheHit, cacheMiss, inferenceCount } = model.stats.snapshot();
    assert.deepEqual(
      [success, queue, computeInfer, cacheHit, cacheMiss].map(({ count }) => count),
      [2, 2, 1, 1, 1],
    );
    assert.equal(inferenceCount, 1);
    assert.deepEqual(
      ['hits', 'misses', 'lookups', 'entries', 'evictions'].map((name) => value(`nv_cache_num_${name}`)),
      [1, 1, 2, 1, 0],
    );
    assert.equal(value('nv_cache_num_hits_per_model'), 1);
    assert.equal(value('nv_cache_num_misses_per_model'), 1);
    assert.ok(value('nv_cache_util')! > 0);
  });

  test('executes what differs in shape, datatype, parameters or requested outputs', async () => {
    const { inner, ask } = setUp();
    ask(requestOf([1, 2]));
    inner.execute();
    const others = [
      requestOf([], { inputs: [input('X', [1, 2], { shape: [2, 1] })] }),
      requestOf([], { inputs: [input('X', [1, 2], { datatype: 'INT32' })] }),
      requestOf([1, 2], { parameters: new Map([['p', 1n]]) }),
      requestOf([1, 2], { requestedOutputs: ['Y'] }),
    ];
    for (const request of others) ask(request);
    await settle();
    assert.equal(inner.openCount, others.length);
  });

  test('executes equal requests that come before the first answer, and counts one miss', async () => {
    const { inner, ask, model } = setUp();
    const sinks = [ask(requestOf([1])), ask(requestOf([1]))];
    inner.execute();
    inner.execute();
    assert.deepEqual(
      sinks.map((sink) => sink.endCount),
      [1, 1],
    );
    assert.equal(model.stats.snapshot().cacheMiss.count, 1);
  });

  test('keeps no failure', () => {
    const { inner, ask, model } = setUp();
    const failed = ask(requestOf([1]));
    inner.execute(internal('no'));
    assert.equal(failed.errors[0]?.message, 'no');
    ask(requestOf([1]));
    assert.equal(inner.openCount, 1);
    assert.equal(model.stats.snapshot().cacheMiss.count, 0);
  });

  test('never answers with what another request got, even when all digests are equal', async () => {
    const { inner, ask } = setUp(new CollidingStore());
    for (const value of [1, 2, 1, 2]) {
      const sink = ask(requestOf([value]));
      await settle();
      assert.equal(inner.openCount, 1, 'an answer came from the cache');
      inner.execute();
      assert.equal(sink.bytes!.readFloatLE(), value);
    }
    const hit = ask(requestOf([2]));
    await settle();
    assert.equal(inner.openCount, 0);
    assert.equal(hit.bytes!.readFloatLE(), 2);
  });

  test('passes a refusal on as it is', () => {
    const { inner, ask } = setUp();
    inner.refusal = unavailable('full');
    assert.throws(() => ask(requestOf([1])), /full/);
  });

  test('executes what is larger than the cache, and says so once', () => {
    const { inner, ask, logged, model, value } = setUp(new LocalStore(1_000));
    for (let i = 0; i < 2; i++) {
      const sink = ask(requestOf(new Array<number>(1_000).fill(i)));
      inner.execute();
      assert.equal(sink.endCount, 1);
    }
    // the key fits, the answer beside it does not
    const sink = ask(requestOf(new Array<number>(100).fill(1)));
    inner.execute();
    assert.equal(sink.endCount, 1);
    const lines = logged.filter((line) =>
      /Requested byte_size: \d+ is greater than total cache size/.test(line),
    );
    assert.equal(lines.length, 1, logged.join(''));
    assert.equal(value('nv_cache_num_entries'), 0);
    assert.equal(model.stats.snapshot().cacheMiss.count, 3);
  });

  test('large tensors are found too, in steps', async () => {
    const { inner, ask, model } = setUp(new LocalStore(20 * CACHE_STEP_BYTES_MAX));
    const data = [Buffer.alloc(2 * CACHE_STEP_BYTES_MAX, 7), Buffer.alloc(3, 8)];
    const byteLength = data[0]!.length + 3;
    const request = requestOf([], { inputs: [input('X', [], { data, byteLength, shape: [1] })] });
    ask(request);
    assert.equal(model.openCount, 1);
    while (inner.openCount === 0) await settle();
    inner.execute();
    for (let i = 0; i < 20; i++) await settle();
    await new Promise<void>((resolve) => ask(request, new TestSink(resolve)));
    assert.equal(inner.executedCount, 1);
    assert.equal(model.openCount, 0);
  });
});

describe('a cached model whose store answers later', () => {
  test('finds and stores as with memory', async () => {
    const store = new SlowStore();
    const { inner, ask, model } = setUp(store);
    const first = ask(requestOf([1]));
    await store.release();
    inner.execute();
    const second = ask(requestOf([1]));
    await store.release();
    assert.deepEqual(second.bytes, first.bytes);
    assert.equal(inner.executedCount, 1);
    assert.equal(model.stats.snapshot().cacheHit.count, 1);
  });

  test('answers with the refusal of the model when that comes after the look-up', async () => {
    const store = new SlowStore();
    const { inner, ask } = setUp(store, 'dynamic_batching { preserve_ordering: true }');
    inner.refusal = unavailable('full');
    const sink = ask(requestOf([1]));
    await store.release();
    assert.equal(sink.errors[0]?.message, 'full');
    assert.equal(sink.endCount, 1);
  });

  test('unloads after its look-ups, so that none of their requests is lost', async () => {
    const store = new SlowStore();
    const { inner, ask, model } = setUp(store);
    ask(requestOf([1]));
    const unloaded = model.unload();
    await settle();
    assert.equal(inner.isUnloaded, false);
    await store.release();
    assert.equal(inner.openCount, 1);
    await unloaded;
    assert.equal(inner.isUnloaded, true);
  });

  test('answers what waits when the server must exit now, once', async () => {
    const store = new SlowStore();
    const { inner, ask, model } = setUp(store);
    const sink = ask(requestOf([1]));
    model.abandon(unavailable('Server exiting'));
    await store.release();
    assert.deepEqual(
      sink.errors.map(({ message }) => message),
      ['Server exiting'],
    );
    assert.equal(sink.endCount, 1);
    assert.equal(inner.openCount, 0);
  });

  test('does not look up more at one time than the bound', async () => {
    const store = new SlowStore();
    const { inner, ask } = setUp(store);
    for (let i = 0; i < CACHE_LOOKUPS_MAX; i++) ask(requestOf([i]));
    await settle();
    assert.equal(inner.openCount, 0);
    ask(requestOf([-1]));
    assert.equal(inner.openCount, 1);
    await store.release();
    assert.equal(inner.openCount, CACHE_LOOKUPS_MAX + 1);
  });
});

test('under preserve_ordering a hit waits for what came before it', async () => {
  const { inner, ask } = setUp(undefined, 'dynamic_batching { preserve_ordering: true }');
  const order: string[] = [];
  const named = (name: string) => new TestSink(() => order.push(name));
  ask(requestOf([1]), named('first'));
  inner.execute();
  ask(requestOf([2]), named('miss'));
  const hit = named('hit');
  ask(requestOf([1]), hit);
  inner.refusal = unavailable('full');
  assert.throws(() => ask(requestOf([3])), /full/);
  ask(requestOf([1]), named('second hit'));
  await settle();
  assert.equal(hit.endCount, 0);
  inner.execute();
  assert.deepEqual(order, ['first', 'miss', 'hit', 'second hit']);
});

test('another load of the model has no use for the answers of the first, which go with it', async () => {
  const { cache, inner, model, ask, value } = setUp();
  ask(requestOf([1]));
  inner.execute();
  assert.equal(value('nv_cache_num_entries'), 1);
  const reloaded = new CachedModel(inner, { cache, scope: 'm:1:second' });
  reloaded.infer({
    request: requestOf([1]),
    sink: new TestSink(),
    cancellation: undefined,
    trace: undefined,
  });
  await settle();
  assert.equal(inner.openCount, 1);
  await model.unload();
  await settle();
  assert.equal(value('nv_cache_num_entries'), 0);
});

test('a failed response among several is not kept', () => {
  const { inner, ask } = setUp();
  ask(requestOf([1]));
  const { sink } = inner.open.shift()!;
  const outputs = [output('Y', [1])];
  sink.send({ modelName: 'm', modelVersion: 1, id: '', parameters: undefined, outputs }, false);
  sink.sendError(internal('half'), true);
  sink.finish();
  ask(requestOf([1]));
  assert.equal(inner.openCount, 1);
});
