// Many gRPC streams and many requests on one: dropped at every stage, more than the server keeps, on a host that is
// killed. Nothing is lost, nothing is left.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientHttp2Session } from 'node:http2';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { addRepeat, addSquare, pendingCount } from '../support/decoupled.ts';
import {
  drop,
  floatOf,
  framed,
  GrpcClient,
  type InferStream,
  identityRequest,
  openRaw,
  openSession,
  repeatRequest,
  squareRequest,
} from '../support/grpc.ts';
import { waitUntil } from '../support/load.ts';
import { childrenOf, descriptorCountOf, procSkip, residentBytesOf, titleOf } from '../support/processes.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const STREAMS = 10_000;
const SESSIONS = 5;
/** Streams that are open at one time on one connection. */
const ROUND = 200;
/** After the first streams, which warm the server up: 10 KB for each of the others. */
const MEMORY_GROWTH_BYTES_MAX = 96 * 1024 * 1024;
/** Twice what the server reads ahead of its answers (GRPC_STREAM_REQUESTS_MAX). */
const IN_FLIGHT = 2000;

describe('gRPC streams', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: GrpcClient;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'quick' });
    addIdentity(repository, { name: 'slow', delayMs: 20, config: 'dynamic_batching { }' });
    addIdentity(repository, { name: 'endless', delayMs: 600_000 });
    addRepeat(repository);
    addSquare(repository);
    server = await startServer({ repository: repository.path, isGrpc: true });
    client = new GrpcClient(server.grpcAddress);
    await client.infer(identityRequest('quick', 1));
  });
  after(async () => {
    client?.close();
    await server?.stop();
    repository?.remove();
  });

  /** Opens a stream and drops it at the stage that its number says. */
  async function openAndDrop(session: ClientHttp2Session, i: number): Promise<void> {
    const isUnary = i % 2 === 0;
    const stream = openRaw(session, { method: isUnary ? 'ModelInfer' : 'ModelStreamInfer' });
    const stage = i % 5;
    if (stage === 1) stream.write(framed(identityRequest('quick', i)).subarray(0, 12));
    if (stage === 2) stream.write(framed(identityRequest('slow', i)));
    if (stage === 3) stream.write(framed(identityRequest('quick', i)));
    if (stage === 4 && !isUnary) {
      stream.write(framed(squareRequest('square', 1_000_000)));
      await once(stream, 'data');
    } else await new Promise(setImmediate);
    drop(stream);
    if (!stream.closed) await once(stream, 'close');
  }

  async function openMany(sessions: readonly ClientHttp2Session[], count: number): Promise<void> {
    for (let at = 0; at < count; at += ROUND * sessions.length) {
      const streams = sessions.flatMap((session) =>
        Array.from({ length: ROUND }, (_, i) => openAndDrop(session, at + i)),
      );
      await Promise.all(streams);
    }
  }

  test(`${STREAMS} that are dropped leave neither memory nor descriptors nor requests`, async () => {
    const descriptors = descriptorCountOf(server.pid);
    const sessions = Array.from({ length: SESSIONS }, () => openSession(server.grpcAddress));
    // V8 lets its heap grow at first; what leaks goes on after that.
    await openMany(sessions, STREAMS / 4);
    const memory = residentBytesOf(server.pid);
    await openMany(sessions, STREAMS);
    for (const session of sessions) {
      assert.equal(session.destroyed, false, 'a connection was closed');
      session.destroy();
    }
    assert.ok(await waitUntil(async () => (await pendingCount(server.metricsUrl)) === 0));
    assert.ok(await waitUntil(() => descriptorCountOf(server.pid) <= descriptors + 1));
    const grownBytes = residentBytesOf(server.pid) - memory;
    assert.ok(grownBytes < MEMORY_GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
    assert.equal(floatOf(await client.infer(identityRequest('slow', 4))), 4);
    const stream = client.stream().read().send(squareRequest('square', 2));
    assert.equal((await stream.end()).code, 0);
    assert.equal(stream.answers.length, 2);
  });

  test(`${IN_FLIGHT} requests on one stream are answered in their order`, async () => {
    const stream = client.stream().read();
    for (let i = 0; i < IN_FLIGHT; i++) {
      // Of models of different speed, so that later ones are ready earlier.
      stream.send(identityRequest(i % 3 === 0 ? 'slow' : 'quick', i, String(i)));
    }
    assert.equal((await stream.end()).code, 0);
    assert.deepEqual(
      stream.answers.map((answer) => answer.infer_response?.id),
      Array.from({ length: IN_FLIGHT }, (_, i) => String(i)),
    );
    assert.ok(stream.answers.every((answer, i) => floatOf(answer.infer_response!) === i));
  });

  test('refused requests have their answer in the same order', async () => {
    const stream = client.stream().read();
    stream.send(
      identityRequest('slow', 1, 'a'),
      identityRequest('no_such', 2, 'b'),
      identityRequest('quick', 3, 'c'),
    );
    assert.equal((await stream.end()).code, 0);
    assert.deepEqual(
      stream.answers.map(({ error_message: error, infer_response: answer }) => [answer?.id, error]),
      [
        ['a', ''],
        ['b', "Request for unknown model: 'no_such' is not found"],
        ['c', ''],
      ],
    );
  });

  test('requests that are refused behind one that never ends are held back, and go with the stream', async () => {
    const memory = residentBytesOf(server.pid);
    const session = openSession(server.grpcAddress);
    const stream = openRaw(session, { method: 'ModelStreamInfer' });
    stream.write(framed(identityRequest('endless', 1)));
    // 64 MB of requests: far more than the window of a stream.
    const requests = Buffer.concat(new Array<Buffer>(10_000).fill(framed(identityRequest('no_such', 2))));
    let sentBytes = 0;
    const send = () => {
      sentBytes += requests.length;
      if (sentBytes < 64 * 1024 * 1024) stream.write(requests);
    };
    stream.on('drain', send);
    send();
    await sleep(1500);
    const grownBytes = residentBytesOf(server.pid) - memory;
    session.destroy();
    assert.ok(sentBytes < 3 * 1024 * 1024, `the server read ${sentBytes} bytes`);
    assert.ok(grownBytes < MEMORY_GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
    assert.ok(await waitUntil(async () => (await pendingCount(server.metricsUrl)) === 0));
    assert.equal(floatOf(await client.infer(identityRequest('quick', 6))), 6);
  });

  describe('on a host that is killed', () => {
    /** The host that runs the model: /proc shows the title that it gave itself. */
    async function killHostOf(model: string): Promise<void> {
      const pid = childrenOf(server.pid).find((child) => titleOf(child).includes(` ${model}:`));
      assert.ok(pid !== undefined, `no host of ${model}`);
      process.kill(pid, 'SIGKILL');
      await server.waitForLog(new RegExp(`${model}.* was restarted`));
    }

    async function checkLost(stream: InferStream, ids: readonly string[], good: Buffer): Promise<void> {
      const lost = stream.answers.filter(({ error_message: error }) => error !== '');
      for (const { error_message: error } of lost) assert.match(error, /SIGKILL/);
      assert.deepEqual(lost.map(({ infer_response: answer }) => answer?.id).sort(), [...ids].sort());
      const { length } = stream.answers;
      stream.send(good);
      await stream.received(length + 1);
      assert.equal(stream.answers.at(-1)?.error_message, '');
      assert.equal((await stream.end()).code, 0);
    }

    test('each request of an ordinary model has one error, and the stream goes on', async () => {
      const stream = client.stream().read();
      stream.send(identityRequest('endless', 1, 'a'), identityRequest('quick', 2, 'b'));
      await sleep(200);
      await killHostOf('endless');
      await stream.received(2);
      await checkLost(stream, ['a'], identityRequest('quick', 3, 'c'));
      assert.equal(stream.answers.length, 3);
    });

    test('so has each of a decoupled model, and the model serves again', async () => {
      const stream = client.stream().read();
      for (const id of ['a', 'b']) stream.send(repeatRequest('repeat', { count: 1000, delayMs: 50, id }));
      await stream.received(4);
      await killHostOf('repeat');
      assert.ok(
        await waitUntil(() => stream.answers.filter((answer) => answer.error_message !== '').length === 2),
      );
      await checkLost(stream, ['a', 'b'], repeatRequest('repeat', { count: 1, id: 'c' }));
    });
  });
});
