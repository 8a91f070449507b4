// Events over a real connection: when they are written, and what a slow client does.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HttpExchange } from '../http/http-exchange.ts';
import { Client, serve, until } from '../http/test-loopback.ts';
import type { RoutedCall } from '../http-routes.ts';
import { EventStream } from './event-stream.ts';

const REQUEST = 'POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n';

/** Counts the writes of a call. */
function callOf(exchange: HttpExchange, writes: Buffer[]): RoutedCall {
  return {
    method: 'POST',
    path: '/',
    bodyLength: 0,
    cancellation: exchange.cancellation,
    header: () => undefined,
    respond: (answer) => exchange.respond(answer),
    begin: (head) => {
      const writer = exchange.begin(head);
      return {
        write: (bytes) => {
          writes.push(bytes);
          return writer.write(bytes);
        },
        end: (bytes) => {
          if (bytes !== undefined) writes.push(bytes);
          writer.end(bytes);
        },
        set onDrain(listener: (() => void) | undefined) {
          writer.onDrain = listener;
        },
        get onDrain() {
          return writer.onDrain;
        },
      };
    },
  };
}

describe('an event stream', () => {
  test('writes all events of a turn at once, and ends with the last of them', async (t) => {
    const writes: Buffer[] = [];
    const streams: EventStream[] = [];
    const loopback = await serve(t, (exchange) => ({
      isBodyKept: true,
      onBody: () => streams.push(new EventStream(callOf(exchange, writes), () => {})),
    }));
    const client = new Client(loopback);
    client.send(REQUEST);
    await until(() => streams.length === 1);
    const stream = streams[0]!;
    assert.equal(stream.isOpen, false);
    stream.push('{"a":1}');
    stream.push('{"a":2}');
    assert.equal(stream.isOpen, true);
    assert.equal(writes.length, 0);
    await until(() => writes.length === 1);
    assert.equal(String(writes[0]), 'data: {"a":1}\n\ndata: {"a":2}\n\n');
    stream.push('{"a":3}');
    stream.finish();
    stream.push('{"late":1}');
    stream.finish();
    assert.equal(writes.length, 2);
    const [answer] = await client.answered(1);
    assert.equal(answer?.body, 'data: {"a":1}\n\ndata: {"a":2}\n\ndata: {"a":3}\n\ndata: [DONE]\n\n');
  });

  test('tells that the client is behind, and that it has caught up', async (t) => {
    let roomCount = 0;
    const streams: EventStream[] = [];
    const loopback = await serve(t, (exchange) => ({
      isBodyKept: true,
      onBody: () =>
        streams.push(
          new EventStream(callOf(exchange, []), () => {
            roomCount++;
          }),
        ),
    }));
    const client = new Client(loopback);
    client.socket.pause();
    client.send(REQUEST);
    await until(() => streams.length === 1);
    const stream = streams[0]!;
    const large = 'x'.repeat(100_000);
    let count = 0;
    while (!stream.isBehind) {
      stream.push(large);
      count++;
    }
    assert.equal(roomCount, 0);
    client.socket.resume();
    await until(() => roomCount === 1);
    assert.equal(stream.isBehind, false);
    stream.finish();
    const [answer] = await client.answered(1);
    assert.equal(answer?.body.split(large).length, count + 1);
  });
});
