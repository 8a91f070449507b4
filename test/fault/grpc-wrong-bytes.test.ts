// gRPC clients that send what they should not: each costs its own call or connection, with the status that gRPC has
// for it, and the next good request is served.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import { encodeHeaderBlock } from '../../src/frontend/grpc/http2/hpack-encoder.ts';
import { addRepeat } from '../support/decoupled.ts';
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
  rawAnswer,
  rawCall,
  SERVICE,
} from '../support/grpc.ts';
import { waitUntil } from '../support/load.ts';
import { descriptorCountOf, procSkip } from '../support/processes.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const OK = 0;
const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

describe('wrong bytes on the gRPC port', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: GrpcClient;
  let session: ClientHttp2Session;
  let value = 1;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'quick' });
    addRepeat(repository);
    server = await startServer({ repository: repository.path, isGrpc: true });
    client = new GrpcClient(server.grpcAddress);
    session = openSession(server.grpcAddress);
  });
  after(async () => {
    client?.close();
    session?.destroy();
    await server?.stop();
    repository?.remove();
  });
  afterEach(async () => {
    value++;
    assert.equal(floatOf(await client.infer(identityRequest('quick', value))), value);
    assert.equal(session.destroyed, false, 'the connection of the wrong call was closed');
  });

  const good = () => framed(identityRequest('quick', 5));

  describe('messages that are none', () => {
    const garbage = Buffer.from('\xff\xff\xff\xff garbage', 'latin1');

    test('garbage instead of a ModelInferRequest', async () => {
      const answer = await rawCall(session, { method: 'ModelInfer', bytes: framed(garbage) });
      assert.equal(answer.grpcStatus, INTERNAL);
      assert.equal(answer.grpcMessage, 'Unable to parse request');
    });

    test('garbage for a small RPC, and a reflection', async () => {
      for (const method of ['ModelMetadata', '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo']) {
        const answer = await rawCall(session, { method, bytes: framed(garbage) });
        assert.equal(answer.grpcStatus, INTERNAL, method);
      }
      const stream = openRaw(session, { method: '/grpc.health.v1.Health/Watch' });
      stream.write(framed(garbage));
      assert.equal((await rawAnswer(stream)).grpcStatus, INTERNAL);
    });

    test('garbage in a stream, after a good request', async () => {
      const bytes = Buffer.concat([good(), framed(garbage)]);
      const answer = await rawCall(session, { method: 'ModelStreamInfer', bytes });
      assert.equal(answer.grpcStatus, INTERNAL);
    });

    test('no message at all, with and without an empty DATA frame', async () => {
      for (const bytes of [undefined, Buffer.alloc(0)]) {
        const options = bytes === undefined ? {} : { bytes };
        const infer = await rawCall(session, { method: 'ModelInfer', ...options });
        assert.equal(infer.grpcStatus, INTERNAL);
        const live = await rawCall(session, { method: 'ServerLive', ...options });
        assert.equal(live.grpcStatus, INTERNAL);
        const stream = await rawCall(session, { method: 'ModelStreamInfer', ...options });
        assert.equal(stream.grpcStatus, OK);
      }
    });

    test('a message of no bytes is a request without a model', async () => {
      const answer = await rawCall(session, { method: 'ModelInfer', bytes: framed(Buffer.alloc(0)) });
      assert.notEqual(answer.grpcStatus, OK);
      assert.notEqual(answer.grpcStatus, undefined);
    });
  });

  describe('lengths', () => {
    test('a message that claims 3 GB is refused before it comes', async () => {
      for (const method of ['ModelInfer', 'ModelStreamInfer', 'ServerLive']) {
        const stream = openRaw(session, { method });
        stream.write(Buffer.from('00b2d05e00616263', 'hex'));
        const answer = await rawAnswer(stream);
        assert.equal(answer.grpcStatus, RESOURCE_EXHAUSTED);
        assert.equal(answer.grpcMessage, 'Received message larger than max (3000000000 vs. 2147483647)');
      }
    });

    test('a message that claims 2 GB takes no memory before it comes', async () => {
      const streams = Array.from({ length: 20 }, () => {
        const stream = openRaw(session, { method: 'ModelInfer' });
        stream.write(Buffer.from('007fffffff616263', 'hex'));
        return stream;
      });
      assert.equal(floatOf(await client.infer(identityRequest('quick', 3))), 3);
      for (const stream of streams) drop(stream);
    });

    test('a message that is longer than its prefix says', async () => {
      const message = identityRequest('quick', 5);
      const bytes = framed(message);
      bytes.writeUInt32BE(message.length - 3, 1);
      const answer = await rawCall(session, { method: 'ModelInfer', bytes });
      assert.equal(answer.grpcStatus, INTERNAL);
    });

    test('a message that is shorter ends with the call', async () => {
      const cut = good().subarray(0, 20);
      const answer = await rawCall(session, { method: 'ModelInfer', bytes: cut });
      assert.equal(answer.grpcStatus, INTERNAL);
      const stream = await rawCall(session, {
        method: 'ModelStreamInfer',
        bytes: Buffer.concat([good(), cut]),
      });
      assert.notEqual(stream.grpcStatus, undefined);
      assert.equal(decodeStreamAnswer(stream.body.subarray(5)).error_message, '');
    });

    test('tensors that are not as long as their shape', async () => {
      const inputs = [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 1000], bytes: Buffer.alloc(4) }];
      const answer = await rawCall(session, {
        method: 'ModelInfer',
        bytes: framed(encodeRequest('quick', inputs)),
      });
      assert.equal(answer.grpcStatus, INVALID_ARGUMENT);
    });
  });

  describe('compression', () => {
    const headers = (encoding: string) => ({ headers: { 'grpc-encoding': encoding } });

    test('good messages of both encodings, also mixed with plain ones', async () => {
      const message = identityRequest('quick', 5);
      for (const [encoding, packed] of [
        ['gzip', gzipSync(message)],
        ['deflate', deflateSync(message)],
      ] as const) {
        const bytes = Buffer.concat([framed(packed, 1), framed(message), framed(packed, 1), framed(message)]);
        const answer = await rawCall(session, { method: 'ModelStreamInfer', ...headers(encoding), bytes });
        assert.equal(answer.grpcStatus, OK);
        let count = 0;
        for (let at = 0; at < answer.body.length; count++) {
          const end = at + 5 + answer.body.readUInt32BE(at + 1);
          assert.equal(decodeStreamAnswer(answer.body.subarray(at + 5, end)).error_message, '');
          at = end;
        }
        assert.equal(count, 4);
      }
    });

    test('an encoding that nobody knows', async () => {
      const answer = await rawCall(session, { method: 'ModelInfer', ...headers('snappy'), bytes: good() });
      assert.equal(answer.grpcStatus, UNIMPLEMENTED);
      assert.match(answer.grpcMessage, /snappy/);
    });

    test('the flag without an encoding: the message is as it is, as in gRPC core', async () => {
      const plain = await rawCall(session, {
        method: 'ModelInfer',
        bytes: framed(identityRequest('quick', 9), 1),
      });
      assert.equal(plain.grpcStatus, OK);
      assert.equal(floatOf(decodeAnswer(plain.body.subarray(5))), 9);
      const packed = framed(gzipSync(identityRequest('quick', 9)), 1);
      assert.equal((await rawCall(session, { method: 'ModelInfer', bytes: packed })).grpcStatus, INTERNAL);
    });

    test('a flag that does not exist', async () => {
      const bytes = framed(identityRequest('quick', 9), 2);
      const answer = await rawCall(session, { method: 'ModelInfer', bytes });
      assert.equal(answer.grpcStatus, INTERNAL);
      assert.equal(answer.grpcMessage, 'Bad GRPC frame type 0x02');
    });

    test('garbage, and the other encoding', async () => {
      for (const packed of [Buffer.from('garbage'), deflateSync(identityRequest('quick', 5))]) {
        const bytes = framed(packed, 1);
        const answer = await rawCall(session, { method: 'ModelInfer', ...headers('gzip'), bytes });
        assert.equal(answer.grpcStatus, INTERNAL);
      }
    });

    test('a stream of messages that grow a thousandfold ends with the first', async () => {
      const packed = framed(gzipSync(Buffer.alloc(8 * 1024 * 1024)), 1);
      const stream = openRaw(session, { method: 'ModelStreamInfer', ...headers('gzip') });
      stream.write(Buffer.concat(new Array<Buffer>(100).fill(packed)));
      // Zeros are no protobuf, so the first one already ends the stream.
      assert.equal((await rawAnswer(stream)).grpcStatus, INTERNAL);
    });
  });

  describe('requests that are no gRPC', () => {
    test('another content type or method is told by HTTP', async () => {
      for (const headers of [{ 'content-type': 'application/json' }, { 'content-type': '' }]) {
        const answer = await rawCall(session, { method: 'ModelInfer', headers, bytes: good() });
        assert.equal(answer.httpStatus, 415);
        assert.equal(answer.grpcStatus, undefined);
      }
      const answer = await rawCall(session, {
        method: 'ModelInfer',
        headers: { ':method': 'PUT' },
        bytes: good(),
      });
      assert.equal(answer.httpStatus, 415);
    });

    test('much data for such a request does not take the window of the connection', async () => {
      for (let i = 0; i < 20; i++) {
        const headers = { 'content-type': 'text/plain' };
        const bytes = Buffer.alloc(1024 * 1024);
        assert.equal((await rawCall(session, { method: 'ModelInfer', headers, bytes })).httpStatus, 415);
      }
      const answer = await rawCall(session, { method: 'ModelInfer', bytes: good() });
      assert.equal(answer.grpcStatus, OK);
    });

    test('a method that is not there', async () => {
      for (const method of ['NoSuch', '/other.Service/Live', '/', '/inference.GRPCInferenceService/']) {
        const answer = await rawCall(session, { method, bytes: good() });
        assert.equal(answer.grpcStatus, UNIMPLEMENTED, method);
      }
    });
  });

  describe('connections', () => {
    function open(...parts: readonly (string | Buffer)[]): Socket {
      const socket = connect({ port: server.grpcPort, host: '127.0.0.1', noDelay: true });
      socket.on('error', () => {});
      for (const part of parts) socket.write(part);
      return socket;
    }

    async function everything(socket: Socket): Promise<Buffer> {
      const pieces: Buffer[] = [];
      socket.on('data', (piece: Buffer) => pieces.push(piece));
      if (!socket.closed) await once(socket, 'close', { signal: AbortSignal.timeout(10_000) });
      return Buffer.concat(pieces);
    }

    test('HTTP/1.1 and garbage are closed', async () => {
      await everything(open('GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n'));
      await everything(open(Buffer.alloc(100, 0xff)));
      await everything(open(PREFACE, Buffer.alloc(5000, 0xee)));
    });

    test('that say hello and nothing else, or nothing at all, hold nobody and go with their client', async () => {
      const before = descriptorCountOf(server.pid);
      const sockets = Array.from({ length: 200 }, (_, i) => open(i % 2 === 0 ? PREFACE : ''));
      assert.ok(await waitUntil(() => descriptorCountOf(server.pid) >= before + 200));
      assert.equal(floatOf(await client.infer(identityRequest('quick', 8))), 8);
      for (const socket of sockets) socket.destroy();
      assert.ok(await waitUntil(() => descriptorCountOf(server.pid) <= before + 2));
    });

    function frame(head: { type: number; flags: number; streamId: number }, payload: Buffer): Buffer {
      const bytes = Buffer.alloc(9);
      bytes.writeUIntBE(payload.length, 0, 3);
      bytes.writeUInt8(head.type, 3);
      bytes.writeUInt8(head.flags, 4);
      bytes.writeUInt32BE(head.streamId, 5);
      return Buffer.concat([bytes, payload]);
    }

    test('a client that ends its side after its request costs its connection alone', async () => {
      const block = encodeHeaderBlock([
        [':method', 'POST'],
        [':scheme', 'http'],
        [':path', `${SERVICE}/ModelInfer`],
        ['content-type', 'application/grpc'],
      ]);
      const before = descriptorCountOf(server.pid);
      const sockets = Array.from({ length: 20 }, () => {
        const socket = connect({ port: server.grpcPort, host: '127.0.0.1', allowHalfOpen: true });
        socket.on('error', () => {});
        socket.write(PREFACE);
        socket.write(frame({ type: 4, flags: 0, streamId: 0 }, Buffer.alloc(0)));
        socket.write(frame({ type: 1, flags: 4, streamId: 1 }, block));
        socket.end(frame({ type: 0, flags: 1, streamId: 1 }, good()));
        return socket;
      });
      await Promise.all(sockets.map(everything));
      assert.ok(await waitUntil(() => descriptorCountOf(server.pid) <= before));
    });
  });
});
