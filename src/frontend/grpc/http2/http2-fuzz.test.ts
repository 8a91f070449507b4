// Seeded garbage and mutations of valid conversations: nothing throws, every connection ends or goes on, streams are
// told at most once, memory stays bounded, and after each batch a new connection is served.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng, type Prng } from '../../../lib/prng.ts';
import { FLAG, FRAME, PREFACE, SETTING } from './frames.ts';
import type { Http2Handler } from './http2-types.ts';
import {
  createEcho,
  encodeData,
  encodeFrame,
  encodeRequest,
  encodeSettings,
  HEAD_BLOCK,
  RawClient,
  REQUEST_BLOCK,
  serve,
  TRAILER_BLOCK,
  uint32,
} from './test-loopback.ts';

const SEED = 41;
const CONNECTIONS = 1500;
const BATCH = 25;
const HEAP_GROWTH_BYTES_MAX = 200 * 1024 * 1024;

const FLAGS = [0, 1, 4, 5, 8, 9, 12, 13, 0x20, 0x25, 0x2d, 0xff];
const STREAM_IDS = [0, 1, 1, 1, 3, 3, 5, 7, 2, 9, 101, 2 ** 31 - 1];
const VALUES = [
  0,
  1,
  5,
  100,
  16_383,
  16_384,
  65_535,
  2 ** 24 - 1,
  2 ** 24,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
];

function randomBytes(random: Prng, byteLength: number): Buffer {
  return Buffer.from(Array.from({ length: byteLength }, () => random.integer(0, 255)));
}

/** Often right, sometimes with a field that is not. */
function randomFrame(random: Prng): Buffer {
  const id = random.pick(STREAM_IDS);
  const flags = random.pick(FLAGS);
  switch (random.integer(0, 13)) {
    case 0:
      return encodeRequest(id, { isEnd: random.boolean() });
    case 1:
      return encodeData(id, randomBytes(random, random.integer(0, 300)), random.boolean());
    case 2:
      return encodeFrame(FRAME.data, flags, id, randomBytes(random, random.integer(0, 40)));
    case 3:
      return encodeFrame(FRAME.headers, flags, id, Buffer.concat([randomBytes(random, 6), REQUEST_BLOCK]));
    case 4:
      return encodeFrame(FRAME.headers, FLAG.endHeaders, id, randomBytes(random, random.integer(0, 60)));
    case 5:
      return encodeSettings([random.integer(0, 8), random.pick(VALUES)]);
    case 6:
      return encodeSettings([SETTING.initialWindowSize, random.integer(0, 70_000)]);
    case 7:
      return encodeFrame(FRAME.windowUpdate, 0, id, uint32(random.pick(VALUES)));
    case 8:
      return encodeFrame(FRAME.rstStream, 0, id, uint32(random.pick(VALUES)));
    case 9:
      return encodeFrame(FRAME.ping, random.pick([0, 1]), 0, Buffer.alloc(8));
    case 10:
      return encodeFrame(FRAME.continuation, flags, id, REQUEST_BLOCK.subarray(random.integer(0, 20)));
    case 11:
      return Buffer.concat([
        encodeFrame(FRAME.headers, 0, id, REQUEST_BLOCK.subarray(0, 9)),
        encodeFrame(FRAME.continuation, FLAG.endHeaders, id, REQUEST_BLOCK.subarray(9)),
      ]);
    case 12:
      return encodeFrame(
        random.integer(0, 20),
        flags,
        id,
        randomBytes(random, random.pick([0, 4, 5, 8, 20])),
      );
    default:
      return encodeFrame(FRAME.goaway, 0, 0, Buffer.alloc(8));
  }
}

function mutate(bytes: Buffer, random: Prng): Buffer {
  const at = random.integer(0, bytes.length - 1);
  switch (random.integer(0, 3)) {
    case 0: {
      const copy = Buffer.from(bytes);
      copy[at] = random.integer(0, 255);
      return copy;
    }
    case 1:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.integer(1, 12))]);
    case 2:
      return Buffer.concat([
        bytes.subarray(0, at),
        randomBytes(random, random.integer(1, 12)),
        bytes.subarray(at),
      ]);
    default:
      return bytes.subarray(0, at);
  }
}

function randomConversation(random: Prng): Buffer {
  const frames = Array.from({ length: random.integer(1, 25) }, () => randomFrame(random));
  if (random.boolean(0.3)) {
    // a well-behaved beginning, so that later frames meet open streams
    frames.unshift(encodeRequest(1), encodeData(1, 'abc'), encodeRequest(3, { isEnd: true }));
  }
  let bytes: Buffer = Buffer.concat([PREFACE, encodeSettings(), ...frames]);
  if (random.boolean(0.05)) bytes = randomBytes(random, 200);
  const mutationCount = random.pick([0, 0, 0, 1, 1, 2, 5]);
  for (let i = 0; i < mutationCount; i++) bytes = mutate(bytes, random);
  return bytes;
}

/** In pieces of random length, then the client leaves in one of several ways. */
async function converse(port: number, random: Prng): Promise<void> {
  const client = await RawClient.connect(port);
  const bytes = randomConversation(random);
  for (let at = 0; at < bytes.length; ) {
    const end = at + random.pick([1, 3, 9, 50, 1000, bytes.length]);
    client.send(bytes.subarray(at, end));
    at = end;
    if (random.boolean(0.2)) await new Promise((resolve) => setImmediate(resolve));
  }
  if (random.boolean(0.3)) client.socket.destroy();
  else client.socket.end();
  await client.closed();
}

/** Checks the promises that a consumer is given; answers at once, late, in pieces, or not at all. */
function createWatch(random: Prng, wrong: string[]): Http2Handler {
  return {
    onRequest(stream, _headers, isEnd) {
      let isDead = false;
      let isEnded = isEnd;
      const alive = (what: string): void => {
        if (isDead) wrong.push(`${what} after onAbort`);
      };
      const answer = (): void => {
        if (random.boolean(0.5))
          stream.sendAll(HEAD_BLOCK, [Buffer.alloc(random.integer(0, 200_000))], TRAILER_BLOCK);
        else {
          stream.sendHeaderBlock(HEAD_BLOCK, false);
          stream.sendData([Buffer.alloc(random.integer(0, 30_000)), Buffer.alloc(3)]);
          if (random.boolean(0.7)) stream.sendTrailers(TRAILER_BLOCK);
        }
      };
      if (random.boolean(0.3)) answer();
      return {
        onData(data) {
          alive('onData');
          if (isEnded) wrong.push('onData after the end');
          if (random.boolean(0.8)) stream.consumed(data.length);
          if (random.boolean(0.1)) stream.reset(8);
          if (random.boolean(0.01)) throw new Error('a defect of the test');
        },
        onEnd() {
          alive('onEnd');
          if (isEnded) wrong.push('onEnd twice');
          isEnded = true;
          if (random.boolean(0.5)) answer();
          else setImmediate(answer);
        },
        onAbort() {
          alive('onAbort');
          if (stream.isOpen) wrong.push('open after onAbort');
          isDead = true;
        },
        onDrain() {
          alive('onDrain');
          if (stream.queuedBytes > 0) wrong.push('onDrain with bytes queued');
        },
      };
    },
    onDefect(thrown) {
      if (!String(thrown).includes('a defect of the test')) wrong.push(String(thrown));
    },
  };
}

test('whatever a client sends, nothing breaks', { timeout: 120_000 }, async (t) => {
  const random = createPrng(SEED);
  const wrong: string[] = [];
  const { port, connections } = await serve(t, createWatch(random, wrong), {
    streamWindowBytes: 65_535,
    connectionWindowBytes: 100_000,
    maxConcurrentStreams: 3,
  });
  const good = await serve(t, createEcho());
  const heapBytes = process.memoryUsage().heapUsed + process.memoryUsage().external;
  for (let done = 0; done < CONNECTIONS; done += BATCH) {
    await Promise.all(Array.from({ length: BATCH }, () => converse(port, random)));
    const client = await RawClient.open(good.port);
    client.send(encodeRequest(1), encodeData(1, 'still here', true));
    assert.equal((await client.takeAnswer(1)).toString(), 'still here');
    client.socket.destroy();
  }
  assert.deepEqual(wrong, []);
  const deadlineMs = performance.now() + 5000;
  while (connections.size > 0 && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.equal(connections.size, 0);
  const growthBytes = process.memoryUsage().heapUsed + process.memoryUsage().external - heapBytes;
  assert.ok(growthBytes < HEAP_GROWTH_BYTES_MAX, `the heap has grown by ${growthBytes} bytes`);
});
