// The end of gRPC connections: by SIGTERM with calls in flight, by their age; and calls that are not allowed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { addRepeat } from '../support/decoupled.ts';
import {
  decodeAnswer,
  floatOf,
  framed,
  GrpcClient,
  identityRequest,
  openRaw,
  openSession,
  repeatRequest,
} from '../support/grpc.ts';
import { procSkip } from '../support/processes.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const UNAVAILABLE = 14;
const STOPPING = 'GRPC server is shutting down and has stopped accepting new requests.';

describe('gRPC and the end of things', { skip: procSkip }, () => {
  let repository: TestRepository;

  before(() => {
    repository = createRepository();
    addIdentity(repository, { name: 'slow', delayMs: 1500 });
    addIdentity(repository, { name: 'quick' });
    addRepeat(repository);
  });
  after(() => repository.remove());

  async function withServer(
    args: readonly string[],
    body: (server: RunningServer, client: GrpcClient) => Promise<void>,
  ): Promise<void> {
    const server = await startServer({ repository: repository.path, isGrpc: true, args });
    const client = new GrpcClient(server.grpcAddress);
    try {
      await client.infer(identityRequest('quick', 1));
      await body(server, client);
    } finally {
      client.close();
      await server.stop('SIGKILL');
    }
  }

  /** As a client out of the box, over connections that end under it. */
  async function inferFor(durationMs: number, address: string): Promise<void> {
    const client = new GrpcClient(address, { isRetrying: true });
    try {
      const endMs = performance.now() + durationMs;
      for (let i = 0; performance.now() < endMs; i++) {
        assert.equal(floatOf(await client.infer(identityRequest('quick', i))), i);
        await sleep(i % 3);
      }
    } finally {
      client.close();
    }
  }

  test('SIGTERM: what is in flight finishes, new requests hear why not, code 0', () =>
    withServer([], async (server, client) => {
      const unary = client.call('ModelInfer', identityRequest('slow', 7));
      const stream = client.stream().read();
      stream.send(repeatRequest('repeat', { count: 15, delayMs: 100, id: 'r' }));
      await stream.received(1);
      const startMs = performance.now();
      process.kill(server.pid, 'SIGTERM');
      await server.waitForLog(/Waiting for in-flight requests/);

      const refused = await client.call('ModelInfer', identityRequest('quick', 1));
      assert.deepEqual([refused.code, refused.details], [UNAVAILABLE, STOPPING]);
      const ready = await client.call('ServerReady', Buffer.alloc(0));
      assert.equal(ready.code, UNAVAILABLE);
      stream.send(identityRequest('quick', 1, 'new'));
      const answered = await unary;
      assert.equal(floatOf(decodeAnswer(answered.bytes!)), 7);
      await stream.received(16);
      assert.equal((await stream.end()).code, 0);
      const errors = stream.answers.filter(({ error_message: error }) => error !== '');
      assert.deepEqual(
        errors.map(({ error_message: error, infer_response: answer }) => [error, answer?.id]),
        [[STOPPING, 'new']],
      );
      assert.equal(stream.answers.filter((answer) => answer.infer_response?.id === 'r').length, 15);
      assert.deepEqual(await server.exited, { code: 0, signal: null });
      assert.ok(performance.now() - startMs < 10_000);
    }));

  test('SIGTERM: open streams, watchers and silent connections do not hold the server', () =>
    withServer([], async (server, client) => {
      const stream = client.stream().read();
      stream.send(identityRequest('quick', 1));
      await stream.received(1);
      const session = openSession(server.grpcAddress);
      const watch = openRaw(session, { method: '/grpc.health.v1.Health/Watch' });
      watch.write(framed(Buffer.alloc(0)));
      await once(watch, 'data');
      const startMs = performance.now();
      process.kill(server.pid, 'SIGTERM');
      assert.deepEqual(await server.exited, { code: 0, signal: null });
      assert.ok(performance.now() - startMs < 8000, 'the server waited for clients that want nothing');
      await stream.ended;
      session.destroy();
    }));

  test('an old connection is ended after its grace; the next ones lose no request', () =>
    withServer(
      [
        '--grpc-max-connection-age=500',
        '--grpc-max-connection-age-grace=1000',
        '--grpc-keepalive-time=1000',
        '--grpc-keepalive-timeout=1000',
        '--grpc-keepalive-permit-without-calls=true',
        '--grpc-http2-max-pings-without-data=0',
        '--grpc-http2-min-recv-ping-interval-without-data=100',
        '--grpc-http2-max-ping-strikes=0',
      ],
      async (server) => {
        const session = openSession(server.grpcAddress);
        let isAway = false;
        session.on('goaway', () => {
          isAway = true;
        });
        const call = openRaw(session, { method: 'ModelStreamInfer' });
        // Calls of a connection that is old finish within the grace; this one does not.
        call.write(framed(repeatRequest('repeat', { count: 1000, delayMs: 50 })));
        let bytes = 0;
        call.on('data', (piece: Buffer) => {
          bytes += piece.length;
        });
        const startMs = performance.now();
        await once(session, 'close', { signal: AbortSignal.timeout(10_000) });
        assert.ok(isAway, 'no GOAWAY came first');
        assert.ok(bytes > 0);
        assert.ok(performance.now() - startMs >= 1400, 'the call had no grace');
        await Promise.all(Array.from({ length: 4 }, () => inferFor(2500, server.grpcAddress)));
      },
    ));

  test('a restricted protocol is refused without its key, unary and stream, and served with it', () =>
    withServer(['--grpc-restricted-protocol=health,metadata:admin=secret'], async (server, client) => {
      const refused = {
        code: UNAVAILABLE,
        text: "This protocol is restricted, expecting header 'triton-grpc-protocol-admin'",
      };
      for (const method of ['ServerLive', 'ServerMetadata']) {
        for (const metadata of [
          {},
          { 'triton-grpc-protocol-admin': 'wrong' },
          { admin: 'secret' },
        ] as const) {
          const { code, details } = await client.call(method, Buffer.alloc(0), { metadata });
          assert.deepEqual({ code, text: details }, refused);
        }
        const metadata = { 'triton-grpc-protocol-admin': 'secret' };
        assert.equal((await client.call(method, Buffer.alloc(0), { metadata })).code, 0);
      }
      assert.equal(floatOf(await client.infer(identityRequest('quick', 3))), 3);
      assert.ok(server.pid > 0);
    }));

  test('so is a restricted stream, when it is opened', async () => {
    const args = ['--grpc-restricted-protocol=inference:infer-key=infer-value'];
    const server = await startServer({ repository: repository.path, isGrpc: true, args });
    const client = new GrpcClient(server.grpcAddress);
    try {
      const text = "This protocol is restricted, expecting header 'triton-grpc-protocol-infer-key'";
      const refused = client.stream().read();
      const { code, details } = await refused.ended;
      assert.deepEqual([code, details], [UNAVAILABLE, text]);
      assert.equal((await client.call('ModelInfer', identityRequest('quick', 1))).details, text);
      const metadata = { 'triton-grpc-protocol-infer-key': 'infer-value' };
      const stream = client.stream({ metadata }).read().send(identityRequest('quick', 4));
      assert.equal((await stream.end()).code, 0);
      assert.equal(floatOf(stream.answers[0]!.infer_response!), 4);
      assert.equal((await client.call('ServerLive', Buffer.alloc(0))).code, 0);
    } finally {
      client.close();
      await server.stop();
    }
  });
});
