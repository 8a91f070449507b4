// Deadlines and cancellations of gRPC calls: told promptly, and the host is free for the next request at once.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { addRepeat, pendingCount } from '../support/decoupled.ts';
import {
  floatOf,
  framed,
  GrpcClient,
  identityRequest,
  openSession,
  rawCall,
  repeatRequest,
} from '../support/grpc.ts';
import { waitUntil } from '../support/load.ts';
import { procSkip } from '../support/processes.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const CANCELLED = 1;
const DEADLINE_EXCEEDED = 4;
/** A model that would not stop takes far longer than any of these tests. */
const SLOW_MS = 60_000;
const PROMPT_MS_MAX = 1000;
/** Of the model that others wait for; one after another would take twice as long. */
const SECOND_MS = 1500;
const NEXT_MS_MAX = SECOND_MS + 1100;

describe('gRPC deadlines and cancellations', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: GrpcClient;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'slow', delayMs: SLOW_MS });
    addIdentity(repository, { name: 'second', delayMs: SECOND_MS });
    addIdentity(repository, { name: 'quick' });
    addRepeat(repository);
    server = await startServer({ repository: repository.path, isGrpc: true });
    client = new GrpcClient(server.grpcAddress);
    await client.infer(identityRequest('quick', 1));
  });
  after(async () => {
    client?.close();
    await server?.stop();
    repository?.remove();
  });

  async function executionFailures(model: string, reason: string): Promise<number> {
    const text = await (await fetch(server.metricsUrl, { headers: { Connection: 'close' } })).text();
    const pattern = new RegExp(
      `^nv_inference_request_failure\\{model="${model}",reason="${reason}".*\\} ([0-9]+)`,
      'm',
    );
    return Number(pattern.exec(text)?.[1] ?? 0);
  }

  test('a deadline shorter than the model is told by the server, in time', async () => {
    const session = openSession(server.grpcAddress);
    for (const method of ['ModelInfer', 'ModelStreamInfer']) {
      const startMs = performance.now();
      const headers = { 'grpc-timeout': '300m' };
      const answer = await rawCall(session, { method, headers, bytes: framed(identityRequest('slow', 1)) });
      const tookMs = performance.now() - startMs;
      assert.equal(answer.grpcStatus, DEADLINE_EXCEEDED);
      assert.equal(answer.grpcMessage, 'Deadline Exceeded');
      assert.ok(tookMs >= 290 && tookMs < 300 + PROMPT_MS_MAX, `${tookMs} ms`);
    }
    session.destroy();
    assert.ok(await waitUntil(async () => (await executionFailures('slow', 'CANCELED')) === 2));
  });

  test('a deadline that has passed already', async () => {
    const session = openSession(server.grpcAddress);
    const answer = await rawCall(session, {
      method: 'ModelInfer',
      headers: { 'grpc-timeout': '0n' },
      bytes: framed(identityRequest('slow', 1)),
    });
    assert.equal(answer.grpcStatus, DEADLINE_EXCEEDED);
    session.destroy();
  });

  test('a deadline that is long enough, or no timer can hold, changes nothing', async () => {
    const session = openSession(server.grpcAddress);
    for (const timeout of ['20S', '99999999H', 'soon']) {
      const headers = { 'grpc-timeout': timeout };
      const bytes = framed(identityRequest('quick', 1));
      assert.equal((await rawCall(session, { method: 'ModelInfer', headers, bytes })).grpcStatus, 0, timeout);
    }
    session.destroy();
  });

  test('after a deadline the host is free at once', async () => {
    const late = await client.call('ModelInfer', identityRequest('second', 1), { timeoutMs: 200 });
    assert.equal(late.code, DEADLINE_EXCEEDED);
    const next = await client.call('ModelInfer', identityRequest('second', 2));
    assert.equal(next.code, 0);
    assert.ok(next.tookMs < NEXT_MS_MAX, `the next request took ${next.tookMs} ms`);
  });

  test('after a cancellation too, also of requests that wait in the queue', async () => {
    const calls = Array.from({ length: 10 }, (_, i) =>
      client.start('ModelInfer', identityRequest('slow', i)),
    );
    assert.ok(await waitUntil(async () => (await pendingCount(server.metricsUrl, 'slow')) > 0));
    // Those that wait, first.
    for (const { cancel } of calls.slice(1)) cancel();
    assert.ok(await waitUntil(async () => (await pendingCount(server.metricsUrl, 'slow')) === 0));
    calls[0]!.cancel();
    for (const { answer } of calls) assert.equal((await answer).code, CANCELLED);
    const before = await executionFailures('slow', 'CANCELED');
    const last = await client.call('ModelInfer', identityRequest('slow', 1), { timeoutMs: 300 });
    assert.equal(last.code, DEADLINE_EXCEEDED);
    assert.ok(await waitUntil(async () => (await executionFailures('slow', 'CANCELED')) === before + 1));
  });

  test('a stream that is cancelled takes its requests with it, and no other', async () => {
    const stream = client.stream().read();
    for (let i = 0; i < 5; i++) stream.send(identityRequest('second', i));
    stream.send(repeatRequest('repeat', { count: 10_000, delayMs: 10, id: 'r' }));
    const other = client
      .stream()
      .read()
      .send(repeatRequest('repeat', { count: 40, delayMs: 10, id: 'o' }));
    await stream.received(3);
    stream.call.cancel();
    assert.equal((await stream.ended).code, CANCELLED);
    assert.ok(await waitUntil(async () => (await pendingCount(server.metricsUrl)) === 0));
    const next = await client.call('ModelInfer', identityRequest('second', 7));
    assert.ok(next.tookMs < NEXT_MS_MAX, `the next request took ${next.tookMs} ms`);
    assert.equal((await other.end()).code, 0);
    assert.equal(other.answers.length, 40);
    const { length } = stream.answers;
    await sleep(100);
    assert.equal(stream.answers.length, length);
  });

  test('the deadline of a stream ends it in the middle of its responses', async () => {
    const stream = client.stream({ timeoutMs: 400 }).read();
    stream.send(repeatRequest('repeat', { count: 10_000, delayMs: 20 }));
    assert.equal((await stream.ended).code, DEADLINE_EXCEEDED);
    assert.ok(stream.answers.length > 3 && stream.answers.length < 40, `${stream.answers.length} answers`);
    assert.equal(floatOf(await client.infer(identityRequest('quick', 2))), 2);
  });
});
