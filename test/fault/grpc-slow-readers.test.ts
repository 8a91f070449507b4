// Clients of ModelStreamInfer that do not read what a decoupled model sends: server and host keep little for them,
// others are served, and whoever reads at last gets every response in order.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync, inflateSync } from 'node:zlib';
import { addRepeat, addSquare, pendingCount } from '../support/decoupled.ts';
import {
  decodeAnswer,
  decodeStreamAnswer,
  drop,
  encodeRequest,
  floatOf,
  framed,
  GrpcClient,
  identityRequest,
  openRaw,
  openSession,
  rawCall,
  repeatRequest,
  squareRequest,
} from '../support/grpc.ts';
import { waitUntil } from '../support/load.ts';
import { childrenOf, cpuMsOf, descriptorCountOf, procSkip, residentBytesOf } from '../support/processes.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

/** Each response is about 60 bytes on the wire, so this would be hundreds of megabytes for each client. */
const ENDLESS = 20_000_000;
const CLIENTS = 4;
/** Of all processes together, for what has left the models before they paused. */
const MEMORY_GROWTH_BYTES_MAX = 100 * 1024 * 1024;
/** Read late and whole. */
const RESPONSES = 60_000;
/** Of a request to another model meanwhile; it takes about one on an idle machine. */
const OTHER_MS_MAX = 1000;

describe('clients that do not read their responses', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: GrpcClient;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'quick' });
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

  const processes = () => [server.pid, ...childrenOf(server.pid)];
  const memory = () => processes().reduce((sum, pid) => sum + residentBytesOf(pid), 0);

  /** Nothing runs: the models have heard that they must wait. */
  async function isQuiet(): Promise<boolean> {
    const cpuMs = () => processes().reduce((sum, pid) => sum + cpuMsOf(pid), 0);
    const before = cpuMs();
    await sleep(300);
    return cpuMs() - before < 60;
  }

  async function checkOthers(): Promise<void> {
    for (let i = 0; i < 20; i++) {
      const startMs = performance.now();
      assert.equal(floatOf(await client.infer(identityRequest('quick', i))), i);
      const tookMs = performance.now() - startMs;
      assert.ok(tookMs < OTHER_MS_MAX, `another client waited for ${tookMs} ms`);
    }
  }

  test('hold their model and little memory, and nobody else; gone, they leave nothing', async () => {
    const memoryBefore = memory();
    const descriptorsBefore = descriptorCountOf(server.pid);
    const sessions = Array.from({ length: CLIENTS }, () => openSession(server.grpcAddress));
    const streams = sessions.map((session) => {
      const stream = openRaw(session, { method: 'ModelStreamInfer' });
      stream.write(framed(squareRequest('square', ENDLESS)));
      return stream;
    });
    await checkOthers();
    assert.ok(await waitUntil(isQuiet, 15_000), 'the models go on sending');
    const grownBytes = memory() - memoryBefore;
    assert.ok(grownBytes < MEMORY_GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
    await checkOthers();
    // Half of them by a reset of the stream, half with their connection.
    for (const stream of streams.slice(0, 2)) drop(stream);
    for (const session of sessions.slice(2)) session.destroy();
    assert.ok(await waitUntil(isQuiet, 15_000), 'the models go on for nobody');
    for (const session of sessions) session.destroy();
    assert.ok(await waitUntil(() => descriptorCountOf(server.pid) <= descriptorsBefore + 1));
    assert.equal(await pendingCount(server.metricsUrl), 0);
    assert.ok(memory() - memoryBefore < MEMORY_GROWTH_BYTES_MAX);
    const stream = client.stream().read().send(squareRequest('square', 3));
    assert.equal((await stream.end()).code, 0);
    assert.equal(stream.answers.length, 3);
  });

  test('and read at last get every response in order', async () => {
    const session = openSession(server.grpcAddress);
    const stream = openRaw(session, { method: 'ModelStreamInfer' });
    stream.end(framed(repeatRequest('repeat', { count: RESPONSES, id: 'late' })));
    assert.ok(await waitUntil(isQuiet, 15_000), 'the model goes on sending');
    const pieces: Buffer[] = [];
    for await (const piece of stream) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces);
    let count = 0;
    for (let at = 0; at < bytes.length; count++) {
      const end = at + 5 + bytes.readUInt32BE(at + 1);
      const answer = decodeStreamAnswer(bytes.subarray(at + 5, end)).infer_response!;
      assert.equal(answer.id, 'late');
      assert.deepEqual(
        answer.raw_output_contents.map((raw) => Buffer.from(raw).readUInt32LE()),
        [count, count],
      );
      at = end;
    }
    assert.equal(count, RESPONSES);
    session.destroy();
  });

  test('a slow reader does not hold the other requests of its model', async () => {
    const session = openSession(server.grpcAddress);
    const stream = openRaw(session, { method: 'ModelStreamInfer' });
    stream.write(framed(squareRequest('square', ENDLESS)));
    assert.ok(await waitUntil(isQuiet, 15_000), 'the model goes on sending');
    const other = client.stream().read().send(squareRequest('square', 1000));
    assert.equal((await other.end()).code, 0);
    assert.equal(other.answers.length, 1000);
    session.destroy();
  });
});

const LARGE_BYTES = 400_000;

function largeRequest(): Buffer {
  const bytes = Buffer.alloc(LARGE_BYTES);
  return encodeRequest('quick', [{ name: 'INPUT0', datatype: 'FP32', shape: [1, LARGE_BYTES / 4], bytes }]);
}

describe('with --grpc-max-response-pool-size=1 and compressed answers', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: GrpcClient;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'quick' });
    addRepeat(repository);
    server = await startServer({
      repository: repository.path,
      isGrpc: true,
      args: ['--grpc-max-response-pool-size=1', '--grpc-infer-response-compression-level=high'],
    });
    client = new GrpcClient(server.grpcAddress);
  });
  after(async () => {
    client?.close();
    await server?.stop();
    repository?.remove();
  });

  test('every response of several requests comes, in the order of its request', async () => {
    const stream = client.stream();
    for (const id of ['a', 'b', 'c']) stream.send(repeatRequest('repeat', { count: 2000, id }));
    await sleep(300);
    stream.read();
    assert.equal((await stream.end()).code, 0);
    for (const id of ['a', 'b', 'c']) {
      const indexes = stream.answers
        .filter((answer) => answer.infer_response?.id === id)
        .map((answer) => Buffer.from(answer.infer_response!.raw_output_contents[1]!).readUInt32LE());
      assert.deepEqual(
        indexes,
        Array.from({ length: 2000 }, (_, i) => i),
      );
    }
  });

  test('answers are packed for those who take it', async () => {
    const session = openSession(server.grpcAddress);
    const bytes = framed(largeRequest());
    for (const [accepted, encoding] of [
      ['identity,gzip', 'gzip'],
      ['gzip,deflate', 'deflate'],
      ['identity', undefined],
    ] as const) {
      for (const method of ['ModelInfer', 'ModelStreamInfer']) {
        const headers = { 'grpc-accept-encoding': accepted };
        const answer = await rawCall(session, { method, headers, bytes });
        assert.equal(answer.grpcStatus, 0);
        assert.equal(answer.grpcEncoding, encoding);
        assert.equal(answer.body[0], encoding === undefined ? 0 : 1);
        assert.equal(answer.body.readUInt32BE(1), answer.body.length - 5);
        const packed = answer.body.subarray(5);
        const unpacked =
          encoding === 'gzip' ? gunzipSync(packed) : encoding === 'deflate' ? inflateSync(packed) : packed;
        const message =
          method === 'ModelInfer' ? decodeAnswer(unpacked) : decodeStreamAnswer(unpacked).infer_response!;
        assert.equal(message.raw_output_contents[0]!.length, LARGE_BYTES);
      }
    }
    const health = await rawCall(session, {
      method: 'ServerLive',
      headers: { 'grpc-accept-encoding': 'gzip' },
      bytes: framed(Buffer.alloc(0)),
    });
    assert.equal(health.grpcEncoding, undefined);
    session.destroy();
  });
});
