// Shadows: copies without copying, bounds, and that nothing of them reaches a client.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InferRequest } from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { createPrng } from '../../lib/prng.ts';
import { Catalog } from '../repository/catalog.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import { CountingSink, makeRequest, makeRouter, put, TestTarget, target } from './test-target.ts';

function setUp(shadow: { percent?: number; max_inflight_requests?: number; max_inflight_bytes?: number }) {
  const clock = new SimulatedClock();
  const catalog = new Catalog();
  const registry = new MetricsRegistry(clock);
  const prng = createPrng(1);
  const main = new TestTarget('a', clock);
  const copy = new TestTarget('next', clock);
  for (const model of [main, copy]) put(catalog, model);
  const defaults = { name: '', version: '', percent: 0, max_inflight_requests: 0, max_inflight_bytes: 0 };
  const router = makeRouter(
    { target: [target('a', 1)], shadow: [{ ...defaults, model: 'next', ...shadow }] },
    { catalog, clock, registry, random: () => prng.float() },
  );
  const send = (fields: Partial<InferRequest> = {}) => {
    const sink = new CountingSink();
    const request = makeRequest(fields);
    router.infer({ request, sink, cancellation: undefined, trace: undefined });
    return { sink, request };
  };
  const count = (family: string, outcome = '') => {
    const found = registry.collect().find(({ name }) => name === `nereid_router_shadow_${family}`);
    let sum = 0;
    for (const sample of found?.samples ?? []) {
      const isWanted = outcome === '' || sample.labels.some(([, value]) => value === outcome);
      if (isWanted && 'value' in sample) sum += sample.value;
    }
    return sum;
  };
  return { clock, catalog, main, copy, router, send, count };
}

test('a shadow gets the very same tensors, and its answer goes nowhere', () => {
  const { clock, main, copy, send, count } = setUp({});
  const { sink, request } = send();
  assert.equal(copy.seen[0]!.request, request);
  assert.equal(main.seen[0]!.request, request);
  clock.run();
  assert.equal(sink.endCount, 1);
  assert.equal(sink.response?.modelName, 'ab');
  assert.equal(count('requests_total', 'success'), 1);
  assert.equal(count('in_flight'), 0);
});

test('its errors, refusals and absence never reach the client', () => {
  const { clock, catalog, copy, send, count } = setUp({});
  const sinks: CountingSink[] = [];
  for (const behaviour of [
    { kind: 'fail', delayMs: 1 },
    { kind: 'refuse', error: new StatusError('UNAVAILABLE', 'full') },
    { kind: 'hang' },
  ] as const) {
    copy.behaviour = behaviour;
    sinks.push(send().sink);
  }
  catalog.remove('next', 1);
  sinks.push(send().sink);
  clock.run();
  assert.ok(sinks.every(({ endCount, error }) => endCount === 1 && error === undefined));
  assert.equal(count('requests_total', 'error'), 3);
  assert.equal(count('in_flight'), 1);
});

test('no request waits for a shadow, and what is too much for it is dropped and counted', () => {
  const { clock, copy, send, count, router } = setUp({ max_inflight_requests: 5 });
  copy.behaviour = { kind: 'hang' };
  const sinks = Array.from({ length: 20 }, () => send().sink);
  clock.run();
  assert.ok(sinks.every((sink) => sink.endCount === 1));
  assert.equal(copy.openCount, 5);
  assert.equal(count('dropped_total'), 15);
  assert.equal(router.openCount, 0);
  copy.release();
  send();
  assert.equal(count('dropped_total'), 15);
});

test('bytes are bounded too', () => {
  const { copy, send, count } = setUp({ max_inflight_bytes: 10 });
  copy.behaviour = { kind: 'hang' };
  for (let i = 0; i < 4; i++) send();
  assert.equal(copy.openCount, 2);
  assert.equal(count('dropped_total'), 2);
});

test('a part of the requests can be asked for; of a sequence it is all or nothing', () => {
  const { copy, send } = setUp({ percent: 25, max_inflight_requests: 100_000 });
  for (let i = 0; i < 10_000; i++) send();
  assert.ok(Math.abs(copy.seen.length / 10_000 - 0.25) < 0.02, String(copy.seen.length));
  copy.seen.length = 0;
  for (let i = 0; i < 400; i++) send({ correlationId: BigInt((i % 100) + 1) });
  const perSequence = new Map<unknown, number>();
  for (const { request } of copy.seen) {
    perSequence.set(request.correlationId, (perSequence.get(request.correlationId) ?? 0) + 1);
  }
  assert.ok(perSequence.size > 10 && perSequence.size < 45, String(perSequence.size));
  assert.ok([...perSequence.values()].every((count) => count === 4));
});

test('a request that the target refuses is not copied', () => {
  const { main, copy, send } = setUp({});
  main.behaviour = { kind: 'refuse', error: new StatusError('INVALID_ARG', 'wrong') };
  assert.throws(() => send(), { message: 'wrong' });
  assert.equal(copy.seen.length, 0);
});
