// Senders of a host on a socket that can be full: pauses, cancellations, the end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { BY_SENDER } from '../backend/sdk.ts';
import { decodePartFrame, type ReceivedPart } from './part-frame.ts';
import { PREAMBLE_BYTES } from './protocol.ts';
import { RequestSenders, type SenderSocket } from './request-senders.ts';

class FullableSocket implements SenderSocket {
  readonly parts: ReceivedPart[] = [];
  #drained: Promise<void> | undefined;
  #onDrained: (() => void) | undefined;

  write([frame]: readonly Buffer[]): void {
    this.parts.push(decodePartFrame(frame!.subarray(PREAMBLE_BYTES), []));
  }

  whenDrained(): Promise<void> | undefined {
    return this.#drained;
  }

  set isFull(isFull: boolean) {
    this.#onDrained?.();
    this.#drained = isFull
      ? new Promise((resolve) => {
          this.#onDrained = resolve;
        })
      : undefined;
  }
}

function create(): { socket: FullableSocket; senders: RequestSenders } {
  const socket = new FullableSocket();
  return { socket, senders: new RequestSenders(socket) };
}

/** Whether it has resolved after a few turns of the event loop. */
async function isDone(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  return done;
}

test('there is one sender for a request until its end', () => {
  const { socket, senders } = create();
  const sender = senders.of(1, 0);
  assert.equal(senders.of(1, 0), sender);
  assert.notEqual(senders.of(1, 1), sender);
  assert.notEqual(senders.of(2, 0), sender);
  sender.send([], false);
  sender.finish();
  sender.finish();
  assert.deepEqual(
    socket.parts.map(({ isFinal, result }) => [isFinal, result === BY_SENDER]),
    [
      [false, false],
      [true, true],
    ],
  );
  assert.throws(() => sender.send([], false), /after the final one/);
  assert.notEqual(senders.of(1, 0), sender);
});

test('a final response is the end', () => {
  const { socket, senders } = create();
  const sender = senders.of(1, 0);
  sender.send([], true);
  sender.finish();
  assert.equal(socket.parts.length, 1);
  assert.equal(socket.parts[0]?.isFinal, true);
});

test('a pause holds its own sender until it is taken back', async () => {
  const { senders } = create();
  const [paused, other] = [senders.of(1, 0), senders.of(1, 1)];
  senders.setPaused(1, 0, true);
  const room = paused.whenRoom();
  assert.equal(await isDone(room), false);
  assert.equal(await isDone(other.whenRoom()), true);
  senders.setPaused(1, 0, false);
  assert.equal(await isDone(room), true);
  assert.equal(await isDone(paused.whenRoom()), true);
});

test('a cancellation wakes a paused sender and no pause holds it any more', async () => {
  const { senders } = create();
  const sender = senders.of(1, 0);
  senders.setPaused(1, 0, true);
  const room = sender.whenRoom();
  senders.cancel(1, 0);
  assert.equal(await isDone(room), true);
  assert.equal(sender.isCancelled, true);
  senders.setPaused(1, 0, true);
  assert.equal(await isDone(sender.whenRoom()), true);
});

test('a full socket holds everybody', async () => {
  const { socket, senders } = create();
  socket.isFull = true;
  const rooms = [senders.of(1, 0).whenRoom(), senders.of(1, 1).whenRoom()];
  assert.deepEqual(await Promise.all(rooms.map(isDone)), [false, false]);
  socket.isFull = false;
  assert.deepEqual(await Promise.all(rooms.map(isDone)), [true, true]);
});

test('a model that sends without end hears a pause', async () => {
  const { socket, senders } = create();
  const sender = senders.of(1, 0);
  const run = (async () => {
    while (!sender.isCancelled) {
      await sender.whenRoom();
      sender.send([], false);
    }
    sender.finish();
  })();
  // However slow the machine is: it goes on until the test has seen it send.
  while (socket.parts.length <= 16) await setImmediate();
  senders.setPaused(1, 0, true);
  for (let turn = 0; turn < 20; turn++) await setImmediate();
  const { length } = socket.parts;
  await sleep(20);
  assert.equal(socket.parts.length, length);
  senders.cancel(1, 0);
  await run;
  assert.equal(socket.parts.at(-1)?.isFinal, true);
});

test('messages for requests that are not there cost nothing', () => {
  const { senders } = create();
  senders.cancel(7, 7);
  senders.setPaused(7, 7, true);
  senders.setPaused(7, 7, false);
});
