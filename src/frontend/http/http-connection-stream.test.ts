// Answers written piece by piece, over real sockets on the loopback: framing, the next request, clients that go away
// and clients that do not read.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HTTP_AHEAD_BYTES_MAX } from '../../domain/limits.ts';
import { EVENT_STREAM_TYPE, TEXT_TYPE, textAnswer } from './answer.ts';
import type { HttpStreamWriter } from './answer-stream.ts';
import type { HttpExchange, HttpHandler } from './http-connection.ts';
import { Client, serve, until } from './test-loopback.ts';

const HEAD = { status: 200, type: EVENT_STREAM_TYPE };

/** `/s…` begins a stream that the test writes, anything else is answered at once. */
function streams(): { begin: HttpHandler['begin']; writers: HttpStreamWriter[]; exchanges: HttpExchange[] } {
  const writers: HttpStreamWriter[] = [];
  const exchanges: HttpExchange[] = [];
  const begin: HttpHandler['begin'] = (exchange) => ({
    isBodyKept: true,
    onBody: () => {
      exchanges.push(exchange);
      if (exchange.head.target.startsWith('/s')) writers.push(exchange.begin(HEAD));
      else exchange.respond(textAnswer(200, exchange.head.target, { type: TEXT_TYPE }));
    },
  });
  return { begin, writers, exchanges };
}

function get(target: string, version = '1.1', ...headers: string[]): string {
  return [`GET ${target} HTTP/${version}`, ...headers, '', ''].join('\r\n');
}

describe('a streamed answer', () => {
  test('is chunked, one chunk for each piece, and the connection goes on', async (t) => {
    const { begin, writers } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s1'));
    await until(() => writers.length === 1);
    assert.equal(writers[0]!.write(Buffer.from('data: one\n\n')), true);
    writers[0]!.write(Buffer.from('data: twelve bytes\n\n'));
    writers[0]!.end();
    const [answer] = await client.answered(1);
    assert.equal(answer?.status, 200);
    assert.equal(answer?.body, 'data: one\n\ndata: twelve bytes\n\n');
    assert.match(answer!.head, /\r\nContent-Type: text\/event-stream; charset=utf-8\r\n/);
    assert.match(answer!.head, /\r\nTransfer-Encoding: chunked\r\n/);
    assert.ok(!/Content-Length|Connection/.test(answer!.head), answer!.head);
    assert.ok(client.received.includes('\r\nb\r\ndata: one\n\n\r\n14\r\n'), client.received);
    client.send(get('/next'));
    assert.equal((await client.answered(2))[1]?.body, '/next');
  });

  test('sends each piece when it is written, the head with the first', async (t) => {
    const { begin, writers } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s'));
    await until(() => writers.length === 1);
    await sleep(20);
    assert.equal(client.received, '');
    for (const piece of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
      writers[0]!.write(Buffer.from(piece));
      await until(() => client.received.endsWith(`9\r\n${piece}\r\n`));
    }
    writers[0]!.end();
    await client.answered(1);
  });

  test('may be empty, or end with its only piece', async (t) => {
    const { begin, writers } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s1'));
    await until(() => writers.length === 1);
    writers[0]!.end();
    assert.equal((await client.answered(1))[0]?.body, '');
    client.send(get('/s2'));
    await until(() => writers.length === 2);
    writers[1]!.write(Buffer.alloc(0));
    writers[1]!.end(Buffer.from('all'));
    assert.equal((await client.answered(2))[1]?.body, 'all');
  });

  test('carries pieces of any size', async (t) => {
    const { begin, writers } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s'));
    await until(() => writers.length === 1);
    const pieces = [1, 65_535, 65_536, 65_537, 300_000].map((length) => Buffer.alloc(length, 'x'));
    for (const piece of pieces) writers[0]!.write(piece);
    writers[0]!.end(Buffer.alloc(100_000, 'y'));
    const [answer] = await client.answered(1);
    assert.equal(answer?.body.length, Buffer.concat(pieces).length + 100_000);
  });

  test('holds back the requests behind it until its end', async (t) => {
    const { begin, writers, exchanges } = streams();
    const client = new Client(await serve(t, begin));
    client.send(`${get('/s1')}${get('/after')}${get('/s2')}${get('/last')}`);
    await until(() => writers.length === 1);
    writers[0]!.write(Buffer.from('first'));
    await sleep(20);
    assert.equal(exchanges.length, 1);
    writers[0]!.end();
    await until(() => writers.length === 2);
    assert.equal(exchanges.length, 3);
    writers[1]!.end(Buffer.from('second'));
    const answers = await client.answered(4);
    assert.deepEqual(
      answers.map(({ body }) => body),
      ['first', '/after', 'second', '/last'],
    );
  });

  test('for HTTP/1.0 has no chunks and ends with the connection', async (t) => {
    const { begin, writers } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s', '1.0', 'Connection: keep-alive'));
    await until(() => writers.length === 1);
    writers[0]!.write(Buffer.from('data: 1\n\n'));
    writers[0]!.write(Buffer.from('data: 2\n\n'));
    writers[0]!.end();
    await client.closed();
    const [head, body] = client.received.split('\r\n\r\n');
    assert.match(head!, /\r\nConnection: close$/);
    assert.ok(!head!.includes('Transfer-Encoding'), head);
    assert.equal(body, 'data: 1\n\ndata: 2\n\n');
  });

  test('after Connection: close is the last', async (t) => {
    const { begin, writers } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s', '1.1', 'Connection: close'));
    await until(() => writers.length === 1);
    writers[0]!.end(Buffer.from('x'));
    const [answer] = await client.answered(1);
    assert.match(answer!.head, /\r\nConnection: close\r\n/);
    await client.closed();
  });

  test('on a server that closes is written to its end', async (t) => {
    const { begin, writers } = streams();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.send(get('/s'));
    await until(() => writers.length === 1);
    writers[0]!.write(Buffer.from('one,'));
    loopback.connections[0]!.endSoon();
    await sleep(20);
    writers[0]!.end(Buffer.from('two'));
    assert.equal((await client.answered(1))[0]?.body, 'one,two');
    await client.closed();
  });

  test('comes once: later answers and pieces do nothing', async (t) => {
    const { begin, writers, exchanges } = streams();
    const client = new Client(await serve(t, begin));
    client.send(get('/s'));
    await until(() => writers.length === 1);
    exchanges[0]!.respond(textAnswer(200, 'too late', { type: TEXT_TYPE }));
    exchanges[0]!.begin(HEAD).write(Buffer.from('too late'));
    writers[0]!.end(Buffer.from('once'));
    writers[0]!.write(Buffer.from('too late'));
    writers[0]!.end(Buffer.from('too late'));
    client.send(get('/next'));
    assert.deepEqual(
      (await client.answered(2)).map(({ body }) => body),
      ['once', '/next'],
    );
  });
});

describe('a client', () => {
  test('that goes away cancels, and what is written then is dropped', async (t) => {
    const { begin, writers, exchanges } = streams();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.send(get('/s'));
    await until(() => writers.length === 1);
    writers[0]!.write(Buffer.from('x'));
    let cancelCount = 0;
    // A core that answers the cancellation at once, as it does for a request that waits.
    exchanges[0]!.cancellation.onCancel(() => {
      cancelCount += 1;
      writers[0]!.end(Buffer.from('cancelled'));
    });
    client.socket.destroy();
    await until(() => exchanges[0]!.cancellation.isCancelled);
    assert.equal(cancelCount, 1);
    assert.equal(writers[0]!.write(Buffer.from('y')), true);
    writers[0]!.end();
    await sleep(20);
    assert.deepEqual(loopback.defects, []);
  });

  test('that does not read stops the writer within a bound, and may go on later', async (t) => {
    const { begin, writers } = streams();
    const loopback = await serve(t, begin);
    const client = new Client(loopback);
    client.socket.pause();
    client.send(get('/s'));
    await until(() => writers.length === 1);
    const piece = Buffer.alloc(100_000, 'x');
    const writer = writers[0]!;
    const pieceCount = 300;
    let writtenCount = 0;
    let drainCount = 0;
    const writeOn = (): void => {
      while (writtenCount < pieceCount) {
        writtenCount += 1;
        if (!writer.write(piece)) return;
      }
      writer.end();
    };
    writer.onDrain = () => {
      drainCount += 1;
      writeOn();
    };
    writeOn();
    await sleep(50);
    assert.ok(writtenCount < pieceCount, 'nothing stopped the writer');
    assert.ok(loopback.sockets[0]!.writableLength < HTTP_AHEAD_BYTES_MAX + 2 * piece.length);
    client.socket.resume();
    await client.answered(1);
    assert.ok(drainCount > 1);
    assert.equal(client.answers[0]?.body.length, pieceCount * piece.length);
  });

  test('that never reads and goes away leaves no writer waiting', async (t) => {
    const { begin, writers, exchanges } = streams();
    const client = new Client(await serve(t, begin));
    client.socket.pause();
    client.send(get('/s'));
    await until(() => writers.length === 1);
    const order: string[] = [];
    exchanges[0]!.cancellation.onCancel(() => order.push('cancelled'));
    writers[0]!.onDrain = () => order.push('room');
    while (writers[0]!.write(Buffer.alloc(1_000_000))) await sleep(1);
    client.socket.resetAndDestroy();
    await until(() => order.length === 2);
    assert.deepEqual(order, ['cancelled', 'room']);
    assert.equal(writers[0]!.write(Buffer.from('x')), true);
  });
});
