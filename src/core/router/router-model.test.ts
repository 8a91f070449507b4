// A router over models on a simulated clock: who gets a request, what the client sees, and when weights move.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ModelRouter } from '../../domain/model-config.ts';
import { type InferRequest, SEQUENCE_END, SEQUENCE_START } from '../../domain/request.ts';
import { invalidArgument, StatusError } from '../../domain/status.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { createPrng } from '../../lib/prng.ts';
import { Catalog } from '../repository/catalog.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import type { RouterModel } from './router-model.ts';
import { CountingSink, makeRequest, makeRouter, put, TestTarget, target } from './test-target.ts';

function setUp(router: Partial<ModelRouter>, names = ['a', 'b']) {
  const clock = new SimulatedClock();
  const catalog = new Catalog();
  const registry = new MetricsRegistry(clock);
  const prng = createPrng(1);
  const logged: string[] = [];
  const log = { warn: (text: string) => logged.push(text), info: (text: string) => logged.push(text) };
  const models = names.map((name) => new TestTarget(name, clock));
  for (const model of models) put(catalog, model);
  const parts = { catalog, clock, registry, log, random: () => prng.float() };
  const make = (changed: Partial<ModelRouter>, memory?: RouterModel['memory']) =>
    makeRouter({ ...router, ...changed }, memory === undefined ? parts : { ...parts, memory });
  return { clock, catalog, registry, logged, models, make, router: make({}) };
}

function send(
  router: RouterModel,
  fields: Partial<InferRequest> = {},
  headers?: Readonly<Record<string, string>>,
): CountingSink {
  const sink = new CountingSink();
  router.infer({
    request: makeRequest(fields),
    sink,
    cancellation: undefined,
    trace: undefined,
    headers: headers === undefined ? undefined : new Map(Object.entries(headers)),
  });
  return sink;
}

function samplesOf(registry: MetricsRegistry, family: string): Record<string, number> {
  const found = registry.collect().find(({ name }) => name === family);
  const samples = found === undefined || !('samples' in found) ? [] : found.samples;
  return Object.fromEntries(
    samples.map((sample) => [
      sample.labels
        .filter(([name]) => name !== 'router')
        .map(([, value]) => value)
        .join(' '),
      'value' in sample ? sample.value : sample.count,
    ]),
  );
}

const AB = { target: [target('a', 90), target('b', 10)] };

describe('a request', () => {
  test('goes to exactly one target, by the weights', () => {
    const { router, models, clock, registry } = setUp(AB);
    const sinks = Array.from({ length: 10_000 }, () => send(router));
    clock.run();
    assert.ok(sinks.every((sink) => sink.endCount === 1));
    const [a, b] = models.map((model) => model.seen.length) as [number, number];
    assert.equal(a + b, 10_000);
    assert.ok(Math.abs(b / 10_000 - 0.1) < 0.01, String(b));
    const counts = samplesOf(registry, 'nereid_router_requests_total');
    assert.equal(counts['success a'], a);
    assert.equal(counts['success b'], b);
    assert.equal(samplesOf(registry, 'nereid_router_request_duration_seconds').a, a);
    assert.equal(router.openCount, 0);
  });

  test('is answered under the name and version of the router, without a word of the target', () => {
    const { router, clock } = setUp(AB);
    const sink = send(router, { id: 'x' });
    clock.run();
    assert.equal(sink.response?.modelName, 'ab');
    assert.equal(sink.response?.modelVersion, 1);
    assert.equal(sink.response?.id, 'x');
    assert.equal(sink.response?.parameters, undefined);
  });

  test('is answered with the name of the target where the config asks for it', () => {
    const { router, clock } = setUp({ target: [target('a', 1)], report_target: true });
    const sink = send(router);
    clock.run();
    assert.deepEqual([...(sink.response?.parameters ?? [])], [['nereid_target', 'a']]);
  });

  test('meets the model that serves now, after a reload of the target', () => {
    const { router, models, clock, catalog } = setUp({ target: [target('a', 1)] });
    send(router);
    const reloaded = new TestTarget('a', clock);
    put(catalog, reloaded);
    send(router);
    assert.deepEqual([models[0]!.seen.length, reloaded.seen.length], [1, 1]);
  });

  test('goes to the version or the label that the target names', () => {
    const { router, catalog, clock } = setUp(
      { target: [target('a', 1, { version: 'stable' }), target('b', 0, { model: 'a', version: '4' })] },
      [],
    );
    const labels = { version_labels: { stable: 3 } };
    const versions = [3, 4].map((version) => new TestTarget('a', clock, { version, ...labels }));
    for (const model of versions) put(catalog, model);
    send(router);
    assert.deepEqual(
      versions.map((model) => model.seen.length),
      [1, 0],
    );
  });
});

describe('sticky requests', () => {
  const sticky = (key: ModelRouter['sticky']) => ({ ...AB, ...(key === undefined ? {} : { sticky: key }) });

  test('with the same header, parameter or correlation id meet the same target', () => {
    for (const [key, fieldsOf] of [
      [{ header: 'X-User' }, () => ({})],
      [{ parameter: 'user' }, (user: string) => ({ parameters: new Map([['user', user]]) })],
      [{ correlation_id: true }, (user: string) => ({ correlationId: user })],
    ] as const) {
      const { router, models } = setUp(sticky({ ...key }));
      for (let i = 0; i < 500; i++) {
        const user = `user-${i % 50}`;
        send(router, fieldsOf(user), { 'x-user': user });
      }
      const [a, b] = models.map((model) => model.seen.length) as [number, number];
      assert.ok(a % 10 === 0 && b % 10 === 0 && a > 0 && b > 0, `${JSON.stringify(key)}: ${a} and ${b}`);
    }
  });

  test('without a key go by chance', () => {
    const { router, models } = setUp({
      target: [target('a', 1), target('b', 1)],
      sticky: { header: 'x-user' },
    });
    for (let i = 0; i < 200; i++) send(router, {}, {});
    assert.ok(models.every((model) => model.seen.length > 50));
  });

  test('ask the frontends for the headers they need, and routers without any for none', () => {
    const router = setUp({ ...AB, sticky: { header: 'X-User' }, force_header: 'X-Target' }).router;
    assert.deepEqual(router.wantedHeaders, ['x-target', 'x-user']);
    assert.equal(setUp(AB).router.wantedHeaders, undefined);
  });
});

describe('a forced target', () => {
  const forced = { target: [target('a', 1), target('b', 0)], force_header: 'x-nereid-target' };

  test('gets the request whatever its weight', () => {
    const { router, models } = setUp(forced);
    for (let i = 0; i < 10; i++) send(router, {}, { 'x-nereid-target': 'b' });
    assert.equal(models[1]!.seen.length, 10);
  });

  test('that does not exist is an error that lists the names', () => {
    const { router } = setUp(forced);
    assert.throws(() => send(router, {}, { 'x-nereid-target': 'c' }), {
      code: 'INVALID_ARG',
      message: "router 'ab' has no target 'c'; its targets are 'a', 'b'",
    });
    assert.equal(router.openCount, 0);
  });
});

describe('a target that cannot be used', () => {
  test('gets nothing, its share goes to the others, and the log says so once', () => {
    const { router, models, catalog, clock, logged, registry } = setUp({
      target: [target('a', 1), target('b', 1), target('typo', 100)],
    });
    for (let i = 0; i < 100; i++) send(router);
    assert.equal(models[0]!.seen.length + models[1]!.seen.length, 100);
    assert.equal(logged.length, 1);
    assert.match(logged[0]!, /target 'typo' gets no requests.*'typo' is not found/);
    assert.deepEqual(samplesOf(registry, 'nereid_router_target_ready'), { a: 1, b: 1, typo: 0 });
    put(catalog, new TestTarget('typo', clock));
    for (let i = 0; i < 10; i++) send(router);
    assert.match(logged[1]!, /'typo' takes requests again/);
  });

  test('is left out too when all of its instances have failed', () => {
    const { router, models } = setUp({ target: [target('a', 1), target('b', 1)] });
    models[1]!.failure = new StatusError('UNAVAILABLE', 'dead');
    for (let i = 0; i < 50; i++) send(router);
    assert.equal(models[0]!.seen.length, 50);
    assert.equal(router.failure, undefined);
  });

  test('leaves a clear error when there is no other', () => {
    const { router } = setUp(AB, []);
    const message =
      "no target of router 'ab' can take requests: 'a': Request for unknown model: 'a' is not found; 'b': Request for unknown model: 'b' is not found";
    assert.throws(() => send(router), { code: 'UNAVAILABLE', message });
    assert.equal(router.failure?.message, message);
    assert.equal(router.isHealthy, false);
    assert.deepEqual(router.inputs, []);
  });
});

describe('a sequence', () => {
  const step = (correlationId: bigint, sequenceFlags = 0) => ({ correlationId, sequenceFlags });

  test('stays where it began, whatever happens to the weights', () => {
    const { router, models, make } = setUp({ target: [target('a', 1), target('b', 1)] });
    const ids = Array.from({ length: 40 }, (_, i) => BigInt(i + 1));
    for (const id of ids) send(router, step(id, SEQUENCE_START));
    const homes = ids.map((id) =>
      models.findIndex(({ seen }) => seen.some(({ request }) => request.correlationId === id)),
    );
    assert.ok(homes.includes(0) && homes.includes(1));
    const reloaded = make({ target: [target('a', 1), target('b', 0)] }, router.memory);
    for (const id of ids) send(reloaded, step(id));
    for (const id of ids) send(reloaded, step(id, SEQUENCE_END));
    for (const [i, id] of ids.entries()) {
      const counts = models.map(
        ({ seen }) => seen.filter(({ request }) => request.correlationId === id).length,
      );
      assert.deepEqual(counts, homes[i] === 0 ? [3, 0] : [0, 3]);
    }
    assert.equal(router.memory.homes.count, 0);
  });

  test('that was refused at its start has no home', () => {
    const { router, models } = setUp({ target: [target('a', 1)] });
    models[0]!.behaviour = { kind: 'refuse', error: new StatusError('UNAVAILABLE', 'full') };
    assert.throws(() => send(router, step(1n, SEQUENCE_START)), { message: 'full' });
    assert.equal(router.memory.homes.count, 0);
  });
});

describe('a canary', () => {
  const rule = { target: 'b', stable: 'a', window_seconds: 10, min_requests: 20 };
  const canary = (
    bounds: { max_error_rate?: number; max_p99_ms?: number },
    more: Partial<ModelRouter> = {},
  ) => ({
    target: [target('a', 80), target('b', 20)],
    canary: [{ ...rule, max_error_rate: 0, max_p99_ms: 0, ...bounds }],
    ...more,
  });

  test('that fails loses its weight to the stable target, with a log line, metrics and the config', () => {
    const { router, models, clock, registry, logged } = setUp(canary({ max_error_rate: 0.1 }));
    assert.deepEqual(samplesOf(registry, 'nereid_router_target_weight'), { a: 80, b: 20 });
    models[1]!.behaviour = { kind: 'fail', delayMs: 1 };
    for (let i = 0; i < 2_000; i++) {
      send(router);
      clock.advance(2);
    }
    assert.equal(models[1]!.seen.length, 20);
    assert.deepEqual(samplesOf(registry, 'nereid_router_target_weight'), { a: 100, b: 0 });
    assert.equal(samplesOf(registry, 'nereid_router_rollbacks_total').b, 1);
    const reason = '20 of 20 requests in 10 s failed (100 %), more than 10 %';
    assert.deepEqual(logged, [`target 'b' is rolled back to 'a': ${reason}`]);
    assert.deepEqual(
      router.config.router?.target.map(({ name, weight, rolled_back }) => ({ name, weight, rolled_back })),
      [
        { name: 'a', weight: 100, rolled_back: '' },
        { name: 'b', weight: 0, rolled_back: reason },
      ],
    );
    assert.equal(router.isReloadWanted, true);
  });

  test('that is slow loses it too, even when it never answers', () => {
    for (const behaviour of [{ kind: 'answer', delayMs: 300 }, { kind: 'hang' }] as const) {
      const { router, models, clock } = setUp(canary({ max_p99_ms: 100 }));
      models[1]!.behaviour = behaviour;
      for (let i = 0; i < 2_000; i++) {
        send(router);
        clock.advance(2);
      }
      // Late ones are known after 100 ms, in which about ten more are sent.
      assert.ok(models[1]!.seen.length >= 20 && models[1]!.seen.length < 45, `${models[1]!.seen.length}`);
      models[1]!.release();
      assert.equal(router.openCount, 0);
    }
  });

  test('that is well keeps its weight through wrong requests and clients that go away', () => {
    const { router, models, clock } = setUp(canary({ max_error_rate: 0.01 }));
    models[1]!.behaviour = { kind: 'refuse', error: invalidArgument('wrong shape') };
    for (let i = 0; i < 1_000; i++) {
      try {
        send(router);
      } catch (thrown) {
        assert.match(String(thrown), /wrong shape/);
      }
      clock.advance(1);
    }
    models[1]!.behaviour = { kind: 'fail', delayMs: 1, error: new StatusError('CANCELLED', '') };
    for (let i = 0; i < 1_000; i++) send(router);
    clock.run();
    assert.equal(router.isReloadWanted, false);
  });

  test('that refuses requests because its inputs are others is to blame', () => {
    const { router, models, clock } = setUp(canary({ max_error_rate: 0.1 }));
    models[1]!.inputs = [{ name: 'RENAMED', datatype: 'FP32', dims: [1], optional: false }];
    models[1]!.behaviour = { kind: 'refuse', error: invalidArgument("unexpected inference input 'X'") };
    let refused = 0;
    for (let i = 0; i < 1_000; i++) {
      try {
        send(router);
      } catch {
        refused++;
      }
      clock.advance(1);
    }
    assert.equal(refused, 20);
  });

  test('moves only its own keys', () => {
    const { router, models, clock } = setUp(
      canary(
        { max_error_rate: 0.1 },
        {
          target: [target('a', 40), target('b', 30), target('c', 30)],
          sticky: { parameter: 'user' },
        },
      ),
      ['a', 'b', 'c'],
    );
    const userOf = (i: number) => ({ parameters: new Map([['user', `u${i}`]]) });
    const placesOf = () =>
      Array.from({ length: 300 }, (_, i) => {
        const before = models.map((model) => model.seen.length);
        send(router, userOf(i));
        return models.findIndex((model, m) => model.seen.length > before[m]!);
      });
    const before = placesOf();
    clock.run();
    models[1]!.behaviour = { kind: 'fail', delayMs: 1 };
    for (let i = 0; i < 1_000; i++) {
      send(router, userOf(i));
      clock.advance(1);
    }
    const after = placesOf();
    assert.deepEqual(
      after,
      before.map((place) => (place === 1 ? 0 : place)),
    );
  });

  test('has its weight back after a reload', () => {
    const { router, models, clock, make } = setUp(canary({ max_error_rate: 0.1 }));
    models[1]!.behaviour = { kind: 'fail', delayMs: 1 };
    for (let i = 0; i < 500; i++) {
      send(router);
      clock.advance(2);
    }
    assert.equal(router.isReloadWanted, true);
    assert.deepEqual(
      make({}).config.router?.target.map(({ weight }) => weight),
      [80, 20],
    );
  });
});

describe('what the router says of itself', () => {
  test('is what its first target says, where its config says nothing', () => {
    const { router } = setUp(AB);
    assert.deepEqual(
      router.inputs.map(({ name }) => name),
      ['X'],
    );
    assert.equal(router.maxBatchSize, 8);
    assert.equal(router.isHealthy, true);
  });

  test('comes to an end when targets lead back to it, and so do requests', () => {
    const { router, catalog } = setUp({ target: [target('ab', 1)] }, []);
    put(catalog, router);
    assert.match(router.failure?.message ?? '', /no target of router 'ab'/);
    assert.deepEqual(router.inputs, []);
    assert.equal(router.isHealthy, false);
    assert.throws(() => send(router), StatusError);
  });
});

test('an unload waits for what is open and takes the series away', async () => {
  const { router, clock, registry, models } = setUp(AB);
  models[0]!.behaviour = { kind: 'hang' };
  models[1]!.behaviour = { kind: 'hang' };
  const sink = send(router);
  let isUnloaded = false;
  const unloaded = router.unload().then(() => {
    isUnloaded = true;
  });
  await clock.advanceAsync(10);
  assert.equal(isUnloaded, false);
  assert.throws(() => send(router), { code: 'UNAVAILABLE' });
  for (const model of models) model.release();
  await unloaded;
  assert.equal(sink.endCount, 1);
  assert.deepEqual(samplesOf(registry, 'nereid_router_requests_total'), {});
});
