// The iterator over the responses of a called model: order, bound, end, error and leaving early.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseStream } from './response-stream.ts';

function makeStream() {
  const told: string[] = [];
  const stream = new ResponseStream<number>({
    cancel: () => told.push('cancel'),
    setPaused: (isPaused) => told.push(isPaused ? 'pause' : 'go on'),
  });
  return { stream, told };
}

async function readAll(stream: ResponseStream<number>): Promise<number[]> {
  const read: number[] = [];
  for await (const response of stream) read.push(response);
  return read;
}

test('what came before and what comes while it is read, in order', async () => {
  const { stream, told } = makeStream();
  stream.push(1);
  const reading = readAll(stream);
  setImmediate(() => {
    stream.push(2);
    stream.push(3);
    stream.end();
  });
  assert.deepEqual(await reading, [1, 2, 3]);
  assert.deepEqual(told, []);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
});

test('a slow reader pauses the sender, and lets it go on', async () => {
  const { stream, told } = makeStream();
  for (let i = 0; i < 20; i++) stream.push(i);
  assert.deepEqual(told, ['pause']);
  for (let i = 0; i < 16; i++) assert.deepEqual(await stream.next(), { value: i, done: false });
  assert.deepEqual(told, ['pause', 'go on']);
  stream.end();
  assert.deepEqual(await readAll(stream), [16, 17, 18, 19]);
});

test('an error comes after what was sent before it, and once', async () => {
  const { stream, told } = makeStream();
  stream.push(1);
  stream.fail(new Error('broken'));
  stream.push(2);
  assert.deepEqual(await stream.next(), { value: 1, done: false });
  await assert.rejects(stream.next(), /broken/);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
  assert.deepEqual(told, ['cancel']);
  const waiting = makeStream().stream;
  const reading = readAll(waiting);
  waiting.fail(new Error('later'));
  await assert.rejects(reading, /later/);
});

test('to leave the loop cancels the request, unless it is over', async () => {
  const { stream, told } = makeStream();
  stream.push(1);
  stream.push(2);
  for await (const response of stream) {
    assert.equal(response, 1);
    break;
  }
  assert.deepEqual(told, ['cancel']);
  stream.push(3);
  assert.deepEqual(await readAll(stream), []);
  const over = makeStream();
  over.stream.push(1);
  over.stream.end();
  for await (const _ of over.stream) break;
  assert.deepEqual(over.told, []);
});
