// When an answer counts as sent, so that its memory may be used again: when the system has all of it, and at no other time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPrng } from '../../../lib/prng.ts';
import { ERROR_CODE, FRAME, SETTING } from './frames.ts';
import type { Http2Stream } from './http2-types.ts';
import {
  createEcho,
  encodeFrame,
  encodeRequest,
  encodeSettings,
  HEAD_BLOCK,
  RawClient,
  serve,
  TRAILER_BLOCK,
  uint32,
} from './test-loopback.ts';

/** More than a socket on this machine takes while nobody reads. */
const LARGE_BYTES = 40_000_000;
const WIDE = encodeSettings([SETTING.initialWindowSize, 2 ** 30]);
const WIDE_CONNECTION = encodeFrame(FRAME.windowUpdate, 0, 0, uint32(2 ** 30));

async function until(check: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !check(); i++) await sleep(10);
  assert.ok(check());
}

function sendAll(stream: Http2Stream, bytes: Buffer): { count: number } {
  const sent = { count: 0 };
  const release = (): void => {
    sent.count++;
  };
  stream.sendAll(HEAD_BLOCK, [bytes], TRAILER_BLOCK, { release });
  return sent;
}

test('an answer is sent once, and not before it has left', async (t) => {
  const echo = createEcho({ isAnswering: false });
  const { port } = await serve(t, echo);
  const client = await RawClient.open(port, WIDE);
  client.send(encodeRequest(1, { isEnd: true }), encodeRequest(3, { isEnd: true }), WIDE_CONNECTION);
  await until(() => echo.events.length === 2);
  const small = sendAll(echo.events[0]!.stream, Buffer.alloc(10));
  assert.equal(small.count, 0);
  await until(() => small.count === 1);
  client.socket.pause();
  const large = sendAll(echo.events[1]!.stream, Buffer.alloc(LARGE_BYTES));
  await sleep(100);
  assert.equal(large.count, 0);
  client.socket.resume();
  assert.equal((await client.takeAnswer(3)).length, LARGE_BYTES);
  await until(() => large.count === 1);
  assert.equal(small.count, 1);
});

test('memory that is written again as soon as it is sent spoils no answer', async (t) => {
  const prng = createPrng(3);
  const echo = createEcho({ isAnswering: false });
  const { port } = await serve(t, echo);
  const client = await RawClient.open(port, WIDE);
  client.send(WIDE_CONNECTION);
  const sizes = Array.from({ length: 40 }, () => prng.pick([100, 20_000, 300_000, 2_000_000]));
  client.send(...sizes.map((_, i) => encodeRequest(2 * i + 1, { isEnd: true })));
  await until(() => echo.events.length === sizes.length);
  for (const [i, size] of sizes.entries()) {
    const bytes = Buffer.alloc(size, i + 1);
    echo.events[i]!.stream.sendAll(HEAD_BLOCK, [bytes], TRAILER_BLOCK, { release: () => bytes.fill(0xff) });
  }
  for (const [i, size] of sizes.entries()) {
    const answer = await client.takeAnswer(2 * i + 1);
    assert.ok(answer.equals(Buffer.alloc(size, i + 1)), `answer ${i}`);
  }
});

test('an answer that the client resets is never sent', async (t) => {
  const echo = createEcho({ isAnswering: false });
  const { port } = await serve(t, echo);
  // The window of a stream is closed after its first 64 KiB.
  const client = await RawClient.open(port);
  client.send(encodeRequest(1, { isEnd: true }));
  await until(() => echo.events.length === 1);
  const sent = sendAll(echo.events[0]!.stream, Buffer.alloc(200_000));
  await client.takeType(FRAME.data, 1);
  client.send(encodeFrame(FRAME.rstStream, 0, 1, uint32(ERROR_CODE.cancel)));
  await client.roundTrip();
  await sleep(20);
  assert.equal(sent.count, 0);
  // Neither is one that comes after the end.
  assert.equal(sendAll(echo.events[0]!.stream, Buffer.alloc(10)).count, 0);
  await client.roundTrip();
  assert.equal(sent.count, 0);
});

test('what a connection that breaks has not taken is never sent', async (t) => {
  const echo = createEcho({ isAnswering: false });
  const { port, connections } = await serve(t, echo);
  const client = await RawClient.open(port, WIDE);
  client.send(encodeRequest(1, { isEnd: true }), encodeRequest(3, { isEnd: true }), WIDE_CONNECTION);
  await until(() => echo.events.length === 2);
  client.socket.pause();
  const large = sendAll(echo.events[0]!.stream, Buffer.alloc(LARGE_BYTES));
  const behind = sendAll(echo.events[1]!.stream, Buffer.alloc(LARGE_BYTES));
  await sleep(50);
  client.socket.destroy();
  await until(() => connections.size === 0);
  await sleep(20);
  assert.deepEqual([large.count, behind.count], [0, 0]);
});
