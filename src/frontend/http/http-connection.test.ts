// One connection over real sockets on the loopback: order of answers, bounds, and what happens when the client, the
// handler or the server breaks off.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HTTP_AHEAD_BYTES_MAX, HTTP_BODY_BYTES_MAX, HTTP_HEAD_BYTES_MAX } from '../../domain/limits.ts';
import { createPrng } from '../../lib/prng.ts';
import { type HttpAnswer, TEXT_TYPE, textAnswer } from './answer.ts';
import type { Body } from './body-reader.ts';
import type { HttpExchange, HttpHandler } from './http-connection.ts';
import { type Answer, Client, parseAnswers, serve, until } from './test-loopback.ts';

function textOf(text: string): HttpAnswer {
  return textAnswer(200, text, { type: TEXT_TYPE });
}

function echoOf(exchange: HttpExchange, body: Body): HttpAnswer {
  const bytes = Buffer.concat(body.pieces).toString('latin1');
  return textOf(`${exchange.head.method} ${exchange.head.target} ${bytes}`);
}

const echo: HttpHandler['begin'] = (exchange) => ({
  isBodyKept: true,
  onBody: (body) => exchange.respond(echoOf(exchange, body)),
});

/** Answers when the test says so. */
function held(): { begin: HttpHandler['begin']; exchanges: HttpExchange[] } {
  const exchanges: HttpExchange[] = [];
  const begin: HttpHandler['begin'] = (exchange) => ({
    isBodyKept: true,
    onBody: () => exchanges.push(exchange),
  });
  return { begin, exchanges };
}

function get(target: string, ...headers: string[]): string {
  return [`GET ${target} HTTP/1.1`, ...headers, '', ''].join('\r\n');
}

function post(target: string, body: string, ...headers: string[]): string {
  return [`POST ${target} HTTP/1.1`, `Content-Length: ${body.length}`, ...headers, '', body].join('\r\n');
}

const CHUNKED =
  'POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nA: b\r\n\r\n';
const MIXED = `${get('/1')}${post('/2', 'two')}${CHUNKED}\r\n${post('/4', '')}${get('/5')}`;
const MIXED_BODIES = ['GET /1 ', 'POST /2 two', 'POST /c abcde', 'POST /4 ', 'GET /5 '];

function bodiesOf(answers: readonly Answer[]): string[] {
  return answers.map((answer) => answer.body);
}

describe('requests', () => {
  test('one after another on the same connection', async (t) => {
    const client = new Client(await serve(t, echo));
    for (let i = 1; i <= 5; i++) {
      client.send(post(`/${i}`, `body ${i}`));
      const answer = (await client.answered(i))[i - 1];
      assert.equal(answer?.body, `POST /${i} body ${i}`);
      assert.ok(!answer.head.includes('Connection:'));
    }
  });

  test('several in one packet', async (t) => {
    const client = new Client(await serve(t, echo));
    client.send(MIXED);
    assert.deepEqual(bodiesOf(await client.answered(5)), MIXED_BODIES);
  });

  test('byte by byte', async (t) => {
    const client = new Client(await serve(t, echo));
    for (const byte of Buffer.from(MIXED)) {
      client.send(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    assert.deepEqual(bodiesOf(await client.answered(5)), MIXED_BODIES);
  });

  test('sent ahead are answered in order, however late each answer is', async (t) => {
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: true,
      onBody: (body) =>
        void sleep(body.byteLength === 3 ? 30 : 1).then(() => exchange.respond(echoOf(exchange, body))),
    });
    const client = new Client(await serve(t, begin));
    client.send(MIXED);
    assert.deepEqual(bodiesOf(await client.answered(5)), MIXED_BODIES);
  });

  test('a body that is not kept is read and dropped', async (t) => {
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: false,
      onBody: (body) => exchange.respond(echoOf(exchange, body)),
    });
    const client = new Client(await serve(t, begin));
    client.send(MIXED);
    assert.deepEqual(bodiesOf(await client.answered(5)), [
      'GET /1 ',
      'POST /2 ',
      'POST /c ',
      'POST /4 ',
      'GET /5 ',
    ]);
  });

  test('empty lines before a request are skipped and start no clock', async (t) => {
    const loopback = await serve(t, echo);
    const client = new Client(loopback);
    client.send('\r\n\r\n');
    await sleep(20);
    assert.equal(loopback.connections[0]?.isIdle, true);
    client.send(`\r\n${get('/a')}`);
    assert.deepEqual(bodiesOf(await client.answered(1)), ['GET /a ']);
  });

  test('a body of 5 MB in random pieces arrives intact', async (t) => {
    const random = createPrng(21);
    const bytes = Buffer.alloc(5_000_000);
    for (let i = 0; i + 4 <= bytes.length; i += 4) bytes.writeUInt32LE(random.uint32(), i);
    const bodies: Buffer[] = [];
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: true,
      onBody: (body) => {
        bodies.push(Buffer.concat(body.pieces));
        exchange.respond(textOf('ok'));
      },
    });
    const client = new Client(await serve(t, begin));
    client.send(`POST / HTTP/1.1\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    for (let at = 0; at < bytes.length; ) {
      const length = random.pick([1, 100, 5_000, 100_000]);
      client.send(bytes.subarray(at, at + length));
      at += length;
    }
    await client.answered(1);
    assert.ok(bodies[0]?.equals(bytes));
  });

  test('Expect: 100-continue is answered before the body', async (t) => {
    const client = new Client(await serve(t, echo));
    client.send('POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n');
    await client.answered(1);
    assert.equal(client.received, 'HTTP/1.1 100 Continue\r\n\r\n');
    client.send('ab');
    assert.equal((await client.answered(2))[1]?.body, 'POST / ab');
  });

  test('HEAD is answered without a body, and the next request finds its answer', async (t) => {
    const client = new Client(await serve(t, echo));
    client.send('HEAD /abc HTTP/1.1\r\n\r\nHEAD /d HTTP/1.1\r\n\r\n');
    await until(() => parseAnswers(client.received, true).length === 2);
    const [first] = parseAnswers(client.received, true);
    assert.match(first!.head, /Content-Length: 10\r\n/);
    assert.ok(!client.received.includes('HEAD'));
  });
});

describe('the end of a connection', () => {
  test('Connection: close is said and done; what follows is not read', async (t) => {
    const client = new Client(await serve(t, echo));
    client.send(`${get('/1', 'Connection: close')}${get('/2')}`);
    await client.closed();
    assert.deepEqual(bodiesOf(client.answers), ['GET /1 ']);
    assert.match(client.answers[0]!.head, /\r\nConnection: close\r\n/);
  });

  test('HTTP/1.0 is closed, or kept and told so', async (t) => {
    const client = new Client(await serve(t, echo));
    client.send('GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n');
    assert.match((await client.answered(1))[0]!.head, /\r\nConnection: keep-alive\r\n/);
    client.send('GET /2 HTTP/1.0\r\n\r\n');
    await client.closed();
    assert.match((await client.answered(2))[1]!.head, /\r\nConnection: close\r\n/);
  });

  test('closeAfterAnswer', async (t) => {
    const begin: HttpHandler['begin'] = (exchange) => {
      exchange.closeAfterAnswer();
      return echo(exchange);
    };
    const client = new Client(await serve(t, begin));
    client.send(get('/1') + get('/2'));
    await client.closed();
    assert.match((await client.answered(1))[0]!.head, /\r\nConnection: close\r\n/);
  });

  test('what is not HTTP is closed without an answer', async (t) => {
    const loopback = await serve(t, echo);
    const texts = [
      'garbage\r\n\r\n',
      'GET / HTTP/1.1\n',
      'GET / HTTP/1.1\nHost: a\n\n',
      '\n',
      '\x16\x03\x01\x00\xf1\n',
      `GET /${'a'.repeat(HTTP_HEAD_BYTES_MAX)}`,
      `GET / HTTP/1.1\r\nA: ${'a'.repeat(HTTP_HEAD_BYTES_MAX)}\r\n\r\n`,
      'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      'POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ];
    for (const text of texts) {
      const client = new Client(loopback);
      client.send(text);
      await client.closed();
      assert.equal(client.received, '', JSON.stringify(text.slice(0, 80)));
    }
  });

  test('a body beyond the bound is refused with 400', async (t) => {
    const client = new Client(await serve(t, echo));
    client.send(`POST / HTTP/1.1\r\nContent-Length: ${HTTP_BODY_BYTES_MAX + 1}\r\n\r\nxyz`);
    await client.closed();
    assert.equal((await client.answered(1))[0]?.status, 400);
  });

  test('bytes after the end are dropped, and a client that does not close is closed', async (t) => {
    const loopback = await serve(t, echo);
    const client = new Client(loopback, true);
    client.send(get('/1', 'Connection: close'));
    await client.answered(1);
    for (let i = 0; i < 20; i++) client.send(Buffer.alloc(100_000, 'GET / HTTP/1.1\r\n\r\n'));
    const [connection, socket] = [loopback.connections[0]!, loopback.sockets[0]!];
    await until(() => socket.bytesRead > 2_000_000);
    assert.equal(client.answers.length, 1);
    const limits = { headMsMax: 1000, requestMsMax: 5000 };
    const nowMs = performance.now();
    for (const afterMs of [0, 900]) connection.checkTime(nowMs + afterMs, limits);
    assert.equal(socket.destroyed, false);
    connection.checkTime(nowMs + 1100, limits);
    assert.equal(socket.destroyed, true);
    client.socket.destroy();
  });
});

describe('a client that goes away', () => {
  for (const [how, leave] of [
    ['closes', (socket: Socket) => socket.end()],
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    test(`${how}: cancelled once, and a late answer does nothing`, async (t) => {
      const { begin, exchanges } = held();
      const client = new Client(await serve(t, begin));
      client.send(get('/1') + get('/2'));
      await until(() => exchanges.length === 1);
      let count = 0;
      exchanges[0]!.cancellation.onCancel(() => count++);
      leave(client.socket);
      await until(() => count > 0);
      exchanges[0]!.respond(textOf('late'));
      await client.closed();
      await sleep(20);
      assert.equal(count, 1);
      assert.equal(exchanges.length, 1, 'what was sent ahead is not begun');
      assert.equal(client.received, '');
    });
  }

  test('in the middle of a body: the handler hears of it, and gets no body', async (t) => {
    const begun: HttpExchange[] = [];
    const begin: HttpHandler['begin'] = (exchange) => {
      begun.push(exchange);
      return { isBodyKept: true, onBody: () => assert.fail('a body that never came') };
    };
    const client = new Client(await serve(t, begin));
    client.send('POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc');
    await until(() => begun.length === 1);
    client.socket.end();
    await until(() => begun[0]!.cancellation.isCancelled);
  });

  test('after its answer: nothing is cancelled', async (t) => {
    const { begin, exchanges } = held();
    const client = new Client(await serve(t, begin));
    client.send(get('/1'));
    await until(() => exchanges.length === 1);
    exchanges[0]!.respond(textOf('done'));
    await client.answered(1);
    client.socket.end();
    await client.closed();
    assert.equal(exchanges[0]!.cancellation.isCancelled, false);
  });
});

describe('a handler', () => {
  test('that answers twice is heard once, also while the next request is open', async (t) => {
    const { begin, exchanges } = held();
    const client = new Client(await serve(t, begin));
    client.send(get('/1') + get('/2'));
    await until(() => exchanges.length === 1);
    exchanges[0]!.respond(textOf('first'));
    exchanges[0]!.respond(textOf('again'));
    await until(() => exchanges.length === 2);
    exchanges[0]!.respond(textOf('and again'));
    exchanges[1]!.respond(textOf('second'));
    assert.deepEqual(bodiesOf(await client.answered(2)), ['first', 'second']);
  });

  test('that answers before the body has come ends the connection', async (t) => {
    const begin: HttpHandler['begin'] = (exchange) => {
      exchange.respond(textOf('early'));
      return { isBodyKept: true, onBody: () => assert.fail('answered already') };
    };
    const loopback = await serve(t, begin);
    for (const request of [get('/'), post('/', 'body'), CHUNKED]) {
      const client = new Client(loopback);
      client.send(request + get('/2'));
      await client.closed();
      assert.deepEqual(bodiesOf(client.answers), ['early']);
      assert.match(client.answers[0]!.head, /\r\nConnection: close\r\n/);
    }
    assert.deepEqual(loopback.defects, []);
  });

  test('that throws at the head costs the connection', async (t) => {
    const loopback = await serve(t, () => {
      throw new Error('thrown in begin');
    });
    for (const request of [get('/'), post('/', 'body')]) {
      const client = new Client(loopback);
      client.send(request);
      await client.closed();
      assert.equal((await client.answered(1))[0]?.status, 500);
      assert.equal(client.answers[0]?.body, '{"error":"thrown in begin"}');
    }
    assert.equal(loopback.defects.length, 2);
  });

  test('that throws at the body costs the request', async (t) => {
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: true,
      onBody: (body) => {
        if (body.byteLength > 0) throw new Error('thrown in onBody');
        exchange.respond(echoOf(exchange, body));
      },
    });
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.send(post('/1', 'x') + get('/2') + post('/3', 'x') + get('/4'));
    const answers = await client.answered(4);
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [500, 200, 500, 200],
    );
    assert.equal(loopback.defects.length, 2);
  });
});

describe('bounds', () => {
  test('what is sent ahead of an answer waits outside, and nothing is lost', async (t) => {
    const { begin, exchanges } = held();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    const body = 'b'.repeat(300_000);
    const requestCount = 40;
    client.send(get('/first'));
    await until(() => exchanges.length === 1);
    for (let i = 0; i < requestCount; i++) client.send(post(`/${i}`, body));
    const socket = loopback.sockets[0]!;
    await until(() => socket.isPaused());
    await sleep(30);
    assert.ok(socket.bytesRead < HTTP_AHEAD_BYTES_MAX + 300_000, `${socket.bytesRead} bytes were read`);
    for (let i = 0; i <= requestCount; i++) {
      await until(() => exchanges.length > i);
      exchanges[i]!.respond(textOf(exchanges[i]!.head.target));
      assert.ok(socket.bytesRead < (i + 1) * 300_200 + HTTP_AHEAD_BYTES_MAX + 300_000);
    }
    const answers = await client.answered(requestCount + 1);
    assert.deepEqual(
      bodiesOf(answers).slice(1),
      Array.from({ length: requestCount }, (_, i) => `/${i}`),
    );
  });

  test('small requests sent ahead do not pile up while they are answered', async (t) => {
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: true,
      onBody: () => void setImmediate(() => exchange.respond(textOf(exchange.head.target))),
    });
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    const count = 3000;
    const padding = `P: ${'p'.repeat(1500)}`;
    for (let i = 0; i < count; i++) client.send(get(`/${i}`, padding));
    let worst = 0;
    const bytesEach = get('/1000', padding).length;
    const watch = setInterval(() => {
      const answeredCount = client.received.split('HTTP/1.1 200').length - 1;
      worst = Math.max(worst, (loopback.sockets[0]?.bytesRead ?? 0) - answeredCount * bytesEach);
    }, 20);
    await until(() => client.received.endsWith(`/${count - 1}`));
    clearInterval(watch);
    assert.deepEqual(
      bodiesOf(client.answers),
      Array.from({ length: count }, (_, i) => `/${i}`),
    );
    assert.ok(worst < 2 * HTTP_AHEAD_BYTES_MAX, `${worst} bytes ahead`);
  });

  test('single bytes sent ahead are bounded by their number', async (t) => {
    const { begin, exchanges } = held();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.send(get('/first'));
    await until(() => exchanges.length === 1);
    const socket = loopback.sockets[0]!;
    for (let i = 0; i < 1100; i++) socket.emit('data', Buffer.from('\r'));
    assert.ok(socket.isPaused());
  });

  test('a client that never reads keeps one answer in memory, and its next requests wait', async (t) => {
    const large = Buffer.alloc(64 * 1024 * 1024);
    let count = 0;
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: true,
      onBody: () => {
        count++;
        exchange.respond({ status: 200, type: TEXT_TYPE, parts: [large], byteLength: large.length });
      },
    });
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.socket.pause();
    client.send(get('/1') + get('/2') + get('/3'));
    await until(() => count > 0);
    for (let i = 0; i < 60; i++) client.send(Buffer.alloc(100_000, get('/x')));
    const socket = loopback.sockets[0]!;
    await until(() => socket.isPaused());
    await sleep(30);
    assert.equal(count, 1);
    assert.ok(socket.writableLength <= large.length + 1000);
    assert.ok(socket.bytesRead < HTTP_AHEAD_BYTES_MAX + 300_000, `${socket.bytesRead} bytes were read`);
    let received = 0;
    client.socket.removeAllListeners('data');
    client.socket.on('data', (piece) => {
      received += piece.length;
    });
    client.socket.resume();
    await until(() => received > large.length && count === 2);
    client.socket.destroy();
  });

  test('many answers at once stop at the same bound', async (t) => {
    const answer = textOf('a'.repeat(50_000));
    let count = 0;
    const begin: HttpHandler['begin'] = (exchange) => ({
      isBodyKept: true,
      onBody: () => {
        count++;
        exchange.respond(answer);
      },
    });
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.socket.pause();
    client.send(get('/').repeat(2000));
    await until(() => count > 0);
    await sleep(30);
    assert.ok(loopback.sockets[0]!.writableLength < HTTP_AHEAD_BYTES_MAX + 100_000);
    client.socket.resume();
    await until(() => count === 2000);
    client.socket.destroy();
  });
});

describe('time', () => {
  const limits = { headMsMax: 1000, requestMsMax: 5000 };

  test('a slow head is refused with 408, a slow body too but later', async (t) => {
    const loopback = await serve(t, echo);
    for (const [text, limitMs] of [
      ['GET / HT', limits.headMsMax],
      ['POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na', limits.requestMsMax],
    ] as const) {
      const client = new Client(loopback);
      client.send(text);
      const before = loopback.connections.length;
      await until(() => loopback.connections[before]?.isIdle === false);
      const connection = loopback.connections[before]!;
      const nowMs = performance.now();
      connection.checkTime(nowMs + limitMs - 500, limits);
      await sleep(20);
      assert.equal(client.received, '');
      connection.checkTime(nowMs + limitMs + 500, limits);
      connection.checkTime(nowMs + limitMs + 501, limits);
      await client.closed();
      assert.equal((await client.answered(1))[0]?.status, 408);
    }
  });

  test('neither an idle connection nor one that waits for its answer is slow', async (t) => {
    const { begin, exchanges } = held();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    await until(() => loopback.connections.length === 1);
    const connection = loopback.connections[0]!;
    connection.checkTime(performance.now() + 1e9, limits);
    client.send(get('/1'));
    await until(() => exchanges.length === 1);
    connection.checkTime(performance.now() + 1e9, limits);
    exchanges[0]!.respond(textOf('done'));
    await client.answered(1);
    connection.checkTime(performance.now() + 1e9, limits);
    client.send(get('/2'));
    await until(() => exchanges.length === 2);
  });
});

describe('a server that closes', () => {
  test('ends a busy connection after its answer', async (t) => {
    const { begin, exchanges } = held();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.send(get('/1') + get('/2'));
    await until(() => exchanges.length === 1);
    loopback.connections[0]!.endSoon();
    await sleep(20);
    assert.equal(client.isClosed, false);
    exchanges[0]!.respond(textOf('done'));
    await client.closed();
    assert.match((await client.answered(1))[0]!.head, /\r\nConnection: close\r\n/);
    assert.equal(exchanges.length, 1);
  });

  test('ends an idle connection at once, and begins nothing that comes later', async (t) => {
    const { begin, exchanges } = held();
    const loopback = await serve(t, begin);
    const client = new Client(loopback, true);
    await until(() => loopback.connections.length === 1);
    loopback.connections[0]!.endSoon();
    client.send(get('/late'));
    await once(client.socket, 'end');
    await sleep(20);
    assert.equal(exchanges.length, 0);
    client.socket.end();
    await client.closed();
  });
});
