// One call over a real connection: what the handler hears and when, what the client gets, and that it ends once.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Stream, connect } from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { GRPC_QUEUED_BYTES_MAX } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';
import { GrpcCall, outgoing } from './grpc-call.ts';
import { type GrpcEncoding, readCallHeaders } from './grpc-headers.ts';
import { serve } from './http2/test-loopback.ts';
import { PREFIX_BYTES } from './message-reader.ts';

/** Everything that one call's handler was told. */
interface Watched {
  readonly call: GrpcCall;
  readonly heard: string[];
  readonly stream: ClientHttp2Stream;
  roomCount: number;
  /** Runs with each message. */
  onMessage: (text: string) => void;
}

async function open(
  t: TestContext,
  options: { headers?: Record<string, string>; encoding?: GrpcEncoding } = {},
): Promise<Watched> {
  let onCall: (call: GrpcCall) => void = () => {};
  const opened = new Promise<GrpcCall>((resolve) => {
    onCall = resolve;
  });
  const heard: string[] = [];
  const watched: Omit<Watched, 'call' | 'stream'> = { heard, roomCount: 0, onMessage: () => {} };
  const { port } = await serve(t, {
    onRequest: (stream, pairs) => {
      const call = new GrpcCall(stream, readCallHeaders(pairs));
      call.encoding = options.encoding ?? 'identity';
      call.cancellation.onCancel(() => heard.push('cancel'));
      call.start({
        onMessage: (pieces, byteLength) => {
          const text = Buffer.concat(pieces).toString();
          assert.equal(byteLength, Buffer.byteLength(text));
          heard.push(text.length > 20 ? `${text.length} bytes` : text);
          watched.onMessage(text);
        },
        onHalfClose: () => heard.push('half-close'),
        onRoom: () => {
          watched.roomCount++;
        },
      });
      onCall(call);
      return call;
    },
    onDefect: (thrown) => assert.fail(String(thrown)),
  });
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  t.after(() => session.destroy());
  const stream = session.request({ ':method': 'POST', ':path': '/a.B/C', ...options.headers });
  stream.on('error', () => {});
  return Object.assign(watched, { call: await opened, stream });
}

function framed(bytes: Buffer | string, flag = 0): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, Buffer.from(bytes)]);
}

async function until(isTrue: () => boolean): Promise<void> {
  for (const endMs = performance.now() + 10_000; performance.now() < endMs; await sleep(2)) {
    if (isTrue()) return;
  }
  assert.fail('it never came');
}

interface Received {
  readonly messages: readonly { readonly flag: number; readonly bytes: Buffer }[];
  readonly status: number;
  readonly message: string;
}

async function receive(stream: ClientHttp2Stream): Promise<Received> {
  let headers: Record<string, unknown> = {};
  let trailers: Record<string, unknown> = {};
  stream.on('response', (received) => {
    headers = received;
  });
  stream.on('trailers', (received) => {
    trailers = received;
  });
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  await once(stream, 'close');
  const body = Buffer.concat(pieces);
  const messages: { flag: number; bytes: Buffer }[] = [];
  for (let at = 0; at < body.length; ) {
    const end = at + PREFIX_BYTES + body.readUInt32BE(at + 1);
    messages.push({ flag: body[at]!, bytes: body.subarray(at + PREFIX_BYTES, end) });
    at = end;
  }
  const status = Number(trailers['grpc-status'] ?? headers['grpc-status']);
  return { messages, status, message: String(trailers['grpc-message'] ?? headers['grpc-message'] ?? '') };
}

describe('the end', () => {
  test('comes once, whoever else would end it', async (t) => {
    const { call, stream } = await open(t);
    const received = receive(stream);
    call.respond(outgoing(Buffer.from('answer')));
    assert.equal(call.isEnded, true);
    call.fail(internal('too late'));
    call.finish();
    call.write(outgoing(Buffer.from('too late')));
    const { messages, status } = await received;
    assert.deepEqual([messages.length, status], [1, 0]);
  });

  test('with an error alone, and after messages', async (t) => {
    for (const count of [0, 3]) {
      const { call, stream } = await open(t);
      const received = receive(stream);
      for (let i = 0; i < count; i++) call.write(outgoing(Buffer.from(`${i}`)));
      call.fail(internal('broken'));
      const { messages, status, message } = await received;
      assert.deepEqual([messages.length, status, message], [count, 13, 'broken']);
    }
  });

  test('by deadline cancels; a call that was answered hears nothing of it', async (t) => {
    const headers = { 'grpc-timeout': '50m' };
    const late = await open(t, { headers });
    assert.equal((await receive(late.stream)).status, 4);
    assert.deepEqual(late.heard, ['cancel']);
    const early = await open(t, { headers });
    early.call.respond(outgoing(Buffer.alloc(0)));
    await sleep(100);
    assert.deepEqual(early.heard, []);
  });

  test('by the client cancels once', async (t) => {
    const { heard, stream, call } = await open(t);
    stream.close(8);
    await until(() => call.isEnded);
    call.finish();
    assert.deepEqual(
      heard.filter((word) => word !== 'half-close'),
      ['cancel'],
    );
  });
});

describe('a handler that holds', () => {
  test('hears nothing more, the half-close included, until it lets go', async (t) => {
    const { call, heard, stream } = await open(t);
    call.isHolding = true;
    stream.write(framed('a'));
    stream.end(framed('b'));
    await sleep(50);
    assert.deepEqual(heard, []);
    call.isHolding = false;
    assert.deepEqual(heard, ['a', 'b', 'half-close']);
  });

  test('may hold and let go while it is told', async (t) => {
    const watched = await open(t);
    const { call, heard, stream } = watched;
    watched.onMessage = (text) => {
      call.isHolding = text === 'b';
    };
    for (const text of ['a', 'b', 'c', 'd']) {
      stream.write(framed(text));
      await sleep(10);
    }
    stream.end();
    await sleep(20);
    assert.deepEqual(heard, ['a', 'b']);
    call.isHolding = false;
    await until(() => heard.includes('half-close'));
    assert.deepEqual(heard, ['a', 'b', 'c', 'd', 'half-close']);
  });

  test('holds the client too', async (t) => {
    const { call, stream, heard } = await open(t);
    call.isHolding = true;
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    let isSent = false;
    stream.end(framed(bytes), () => {
      isSent = true;
    });
    await sleep(200);
    assert.equal(isSent, false);
    call.isHolding = false;
    await until(() => heard.length === 2);
    assert.deepEqual(heard, [`${bytes.length} bytes`, 'half-close']);
  });
});

describe('compressed messages', () => {
  const headers = { 'grpc-encoding': 'gzip' };

  test('keep their order among plain ones, and the half-close waits', async (t) => {
    const { heard, stream } = await open(t, { headers });
    for (const text of ['a', 'b', 'c']) {
      stream.write(framed(gzipSync(text), 1));
      stream.write(framed(text.toUpperCase()));
    }
    stream.end();
    await until(() => heard.includes('half-close'));
    assert.deepEqual(heard, ['a', 'A', 'b', 'B', 'c', 'C', 'half-close']);
  });

  test('that are garbage end the call, and what follows is not told', async (t) => {
    const { heard, stream } = await open(t, { headers });
    const received = receive(stream);
    stream.write(framed('garbage', 1));
    stream.end(framed('next'));
    assert.equal((await received).status, 13);
    assert.deepEqual(heard, ['cancel']);
  });
});

describe('a client that does not read', () => {
  const large = Buffer.alloc(300_000, 'x');

  test('is told of by write; room comes when it has read everything', async (t) => {
    const watched = await open(t);
    const { call, stream } = watched;
    let count = 1;
    while (call.write(outgoing(large))) count++;
    assert.ok(count * large.length <= GRPC_QUEUED_BYTES_MAX + 3 * large.length, `${count} messages`);
    await sleep(50);
    assert.equal(watched.roomCount, 0);
    const received = receive(stream);
    await until(() => watched.roomCount === 1);
    call.finish();
    const { messages, status } = await received;
    assert.deepEqual([messages.length, status], [count, 0]);
  });

  test('also while messages are still being packed', async (t) => {
    const watched = await open(t, { encoding: 'gzip' });
    const { call, stream } = watched;
    let count = 1;
    while (call.write(outgoing(large))) {
      count++;
      assert.ok(count < 100, 'messages heap up unpacked');
    }
    // Packed they are so small that nothing waits for the client: room comes all the same.
    await until(() => watched.roomCount === 1);
    assert.equal(call.wantRoom(), false);
    const received = receive(stream);
    call.write(outgoing(Buffer.from('x')));
    call.finish();
    const { messages, status } = await received;
    assert.equal(status, 0);
    assert.deepEqual(
      messages.map(({ flag, bytes }) => [flag, (flag === 1 ? gunzipSync(bytes) : bytes).length]),
      [...new Array(count).fill([1, large.length]), [0, 1]],
    );
  });
});
