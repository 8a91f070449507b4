// Real clients against Http2Connection: node:http2, which is nghttp2, and @grpc/grpc-js.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { createPrng } from '../../../lib/prng.ts';
import { encodeHeaderBlock } from './hpack-encoder.ts';
import type { Http2Handler } from './http2-types.ts';
import { createEcho, HEAD_BLOCK, serve, TRAILER_BLOCK } from './test-loopback.ts';

const MEGABYTE = 1024 * 1024;

function open(t: TestContext, port: number, settings: Record<string, number> = {}): ClientHttp2Session {
  // in megabytes; the default is less than the messages that wait in the client here
  const session = connect(`http://127.0.0.1:${port}`, { settings, maxSessionMemory: 1000 });
  session.on('error', () => {});
  t.after(() => session.destroy());
  return session;
}

interface Answer {
  readonly headers: Record<string, unknown>;
  readonly body: Buffer;
  readonly trailers: Record<string, unknown>;
}

async function call(
  session: ClientHttp2Session,
  body: Buffer | undefined,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const stream = session.request(
    { ':method': 'POST', ':path': '/a.B/C', ...headers },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  const pieces: Buffer[] = [];
  let answered: Record<string, unknown> = {};
  let trailers: Record<string, unknown> = {};
  stream.on('response', (received) => {
    answered = received;
  });
  stream.on('trailers', (received) => {
    trailers = received;
  });
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  await once(stream, 'end');
  return { headers: answered, body: Buffer.concat(pieces), trailers };
}

function randomBytes(byteLength: number): Buffer {
  const random = createPrng(byteLength);
  const bytes = Buffer.alloc(byteLength);
  for (let at = 0; at + 4 <= byteLength; at += 4) bytes.writeUInt32LE(random.uint32(), at);
  return bytes;
}

describe('node:http2', () => {
  test('gets headers, body and trailers', async (t) => {
    const session = open(t, (await serve(t, createEcho())).port);
    const answer = await call(session, Buffer.from('hello'));
    assert.equal(answer.headers[':status'], 200);
    assert.equal(answer.headers['content-type'], 'application/grpc');
    assert.equal(answer.body.toString(), 'hello');
    assert.equal(answer.trailers['grpc-status'], '0');
    assert.equal((await call(session, undefined)).body.length, 0);
  });

  test('sends headers of all characters with its Huffman code', async (t) => {
    const echo = createEcho();
    const session = open(t, (await serve(t, echo)).port);
    const text = Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at))
      .join('')
      .trim();
    for (let round = 0; round < 3; round++) {
      await call(session, undefined, {
        'x-text': text,
        'x-round': String(round),
        'x-long': 'ab1'.repeat(2000),
      });
      const headers = new Map(echo.events[round]!.headers);
      assert.equal(headers.get('x-text'), text);
      assert.equal(headers.get('x-round'), String(round));
      assert.equal(headers.get('x-long'), 'ab1'.repeat(2000));
    }
  });

  test('moves 50 MB in both directions at once', { timeout: 60_000 }, async (t) => {
    const defects: unknown[] = [];
    const handler: Http2Handler = {
      // a pipe: what came goes back, and credit is given when it could leave
      onRequest(stream) {
        let heldBytes = 0;
        let isEnded = false;
        stream.sendHeaderBlock(HEAD_BLOCK, false);
        const release = (): void => {
          stream.consumed(heldBytes);
          heldBytes = 0;
        };
        return {
          onData(data) {
            heldBytes += data.length;
            stream.sendData([data]);
            assert.ok(stream.queuedBytes <= 2 * MEGABYTE, `queued ${stream.queuedBytes}`);
            if (stream.queuedBytes === 0) release();
          },
          onEnd() {
            isEnded = true;
            stream.sendTrailers(TRAILER_BLOCK);
          },
          onAbort: () => {},
          onDrain() {
            if (!isEnded) release();
          },
        };
      },
      onDefect: (thrown) => void defects.push(thrown),
    };
    const { port } = await serve(t, handler);
    const body = randomBytes(50 * MEGABYTE);
    for (const initialWindowSize of [65_535, 20_000]) {
      const answer = await call(open(t, port, { initialWindowSize }), body);
      assert.equal(answer.body.equals(body), true);
      assert.equal(answer.trailers['grpc-status'], '0');
    }
    assert.deepEqual(defects, []);
  });

  test('gets one answer of 50 MB through small windows', { timeout: 60_000 }, async (t) => {
    const large = randomBytes(50 * MEGABYTE);
    const { port } = await serve(t, {
      onRequest(stream) {
        stream.sendAll(HEAD_BLOCK, [Buffer.from('abcde'), large, Buffer.from('end')], TRAILER_BLOCK);
        return { onData: () => {}, onEnd: () => {}, onAbort: () => {}, onDrain: () => {} };
      },
    });
    const session = open(t, port, { initialWindowSize: 30_000, maxFrameSize: 20_000 });
    const answer = await call(session, undefined);
    assert.equal(answer.body.equals(Buffer.concat([Buffer.from('abcde'), large, Buffer.from('end')])), true);
  });

  test('has 1000 streams at once with their own answers', { timeout: 60_000 }, async (t) => {
    const echo = createEcho();
    const session = open(t, (await serve(t, echo)).port);
    const random = createPrng(3);
    const bodies = Array.from({ length: 1000 }, (_, at) => {
      return Buffer.alloc(random.pick([1, 100, 5000, 16_384, 16_385, 100_000]), `${at};`);
    });
    const answers = await Promise.all(bodies.map((body) => call(session, body)));
    for (const [at, { body }] of answers.entries())
      assert.equal(body.equals(bodies[at]!), true, `answer ${at}`);
    assert.equal(echo.events.length, 1000);
    assert.deepEqual(echo.defects, []);
  });

  test('resets a stream, and the others go on', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const session = open(t, (await serve(t, echo)).port);
    const cancelled = session.request({ ':method': 'POST', ':path': '/a' });
    const kept = session.request({ ':method': 'POST', ':path': '/b' });
    kept.end('x');
    cancelled.on('error', () => {});
    cancelled.write('abc');
    while (echo.events.length < 2 || !echo.events[1]!.isEnd)
      await new Promise((resolve) => setTimeout(resolve, 2));
    cancelled.close(constants.NGHTTP2_CANCEL);
    while (echo.events[0]!.abortCount === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    assert.equal(echo.events[1]!.abortCount, 0);
    echo.events[1]!.stream.sendAll(HEAD_BLOCK, echo.events[1]!.received, TRAILER_BLOCK);
    kept.resume();
    await once(kept, 'end');
  });

  test('hears GOAWAY and finishes its streams', async (t) => {
    const echo = createEcho();
    const { port, connections } = await serve(t, echo);
    const session = open(t, port);
    const stream = session.request({ ':method': 'POST', ':path': '/a' });
    stream.write('abc');
    while (echo.events.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    const goaway = once(session, 'goaway');
    [...connections][0]!.endSoon();
    assert.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR);
    stream.end('def');
    let text = '';
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
    await once(stream, 'end');
    assert.equal(text, 'abcdef');
    if (!session.destroyed) await once(session, 'close');
  });
});

describe('@grpc/grpc-js', () => {
  const same = (bytes: Buffer): Buffer => bytes;

  function createClient(t: TestContext, port: number): Client {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
    t.after(() => client.close());
    return client;
  }

  function unary(client: Client, body: Buffer, deadlineMs = 30_000): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const deadline = Date.now() + deadlineMs;
      client.makeUnaryRequest('/a.B/C', same, same, body, { deadline }, (error, answer) => {
        if (error !== null) reject(error);
        else resolve(answer!);
      });
    });
  }

  test('calls, one after another, at once, and with large messages', { timeout: 60_000 }, async (t) => {
    const client = createClient(t, (await serve(t, createEcho())).port);
    for (let at = 0; at < 20; at++) {
      assert.equal((await unary(client, Buffer.from(`message ${at}`))).toString(), `message ${at}`);
    }
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) => unary(client, Buffer.alloc(1000 + at, 'x'))),
    );
    assert.deepEqual(
      answers.map(({ length }) => length),
      answers.map((_, at) => 1000 + at),
    );
    const large = randomBytes(20 * MEGABYTE);
    assert.equal((await unary(client, large)).equals(large), true);
  });

  test('streams in both directions', { timeout: 30_000 }, async (t) => {
    const handler: Http2Handler = {
      onRequest(stream) {
        stream.sendHeaderBlock(HEAD_BLOCK, false);
        return {
          onData(data) {
            stream.sendData([data]);
            stream.consumed(data.length);
          },
          onEnd: () => stream.sendTrailers(TRAILER_BLOCK),
          onAbort: () => {},
          onDrain: () => {},
        };
      },
    };
    const client = createClient(t, (await serve(t, handler)).port);
    const duplex = client.makeBidiStreamRequest('/a.B/C', same, same);
    const received: string[] = [];
    duplex.on('data', (message: Buffer) => received.push(message.toString()));
    for (let at = 0; at < 500; at++) duplex.write(Buffer.from(`m${at}`));
    duplex.end();
    await once(duplex, 'end');
    assert.deepEqual(
      received,
      Array.from({ length: 500 }, (_, at) => `m${at}`),
    );
  });

  test('sees a status without a message, a deadline, and a lost connection', {
    timeout: 30_000,
  }, async (t) => {
    const refusal = encodeHeaderBlock([
      [':status', '200'],
      ['content-type', 'application/grpc'],
      ['grpc-status', '5'],
      ['grpc-message', 'nothing there'],
    ]);
    let abortCount = 0;
    let requestCount = 0;
    const { port, connections } = await serve(t, {
      onRequest(stream) {
        if (requestCount++ === 0) stream.sendHeaderBlock(refusal, true);
        return { onData: () => {}, onEnd: () => {}, onAbort: () => void abortCount++, onDrain: () => {} };
      },
    });
    const client = createClient(t, port);
    const isStatus = (code: number) => (thrown: unknown) => (thrown as ServiceError).code === code;
    await assert.rejects(unary(client, Buffer.from('a')), isStatus(status.NOT_FOUND));
    await assert.rejects(unary(client, Buffer.from('a'), 100), isStatus(status.DEADLINE_EXCEEDED));
    while (abortCount === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const lost = unary(client, Buffer.from('a'));
    while (requestCount < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    for (const connection of connections) connection.destroy();
    await assert.rejects(lost, isStatus(status.UNAVAILABLE));
    assert.equal(abortCount, 2);
  });
});
