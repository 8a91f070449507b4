// Random frames cut into random chunks come out whole, in order, with an aligned payload where one is asked for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng, type Prng } from '../lib/prng.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { alignUp, FRAME_ALIGNMENT, PREAMBLE_BYTES, writePreamble } from './protocol.ts';

interface PlainFrame {
  readonly type: number;
  readonly header: Buffer;
  readonly payload: Buffer;
}

function randomBytes(prng: Prng, bytesMax: number): Buffer {
  return Buffer.from(Array.from({ length: prng.integer(0, bytesMax) }, () => prng.integer(0, 255)));
}

function randomFrame(prng: Prng): PlainFrame {
  const payload = prng.boolean(0.3) ? Buffer.alloc(0) : randomBytes(prng, 700);
  return { type: prng.integer(1, 13), header: randomBytes(prng, 150), payload };
}

function encode(frame: PlainFrame): Buffer {
  const headBytes = alignUp(PREAMBLE_BYTES + frame.header.length);
  const bytes = Buffer.alloc(headBytes + alignUp(frame.payload.length), 0xee);
  writePreamble(bytes, {
    type: frame.type,
    headerBytes: frame.header.length,
    payloadBytes: frame.payload.length,
  });
  frame.header.copy(bytes, PREAMBLE_BYTES);
  frame.payload.copy(bytes, headBytes);
  return bytes;
}

function cut(prng: Prng, bytes: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  const chunkBytesMax = prng.pick([1, 20, 100, 2_000]);
  for (let at = 0; at < bytes.length; ) {
    const length = prng.integer(0, chunkBytesMax);
    chunks.push(bytes.subarray(at, at + length));
    at += length;
  }
  return chunks;
}

function plain(frame: Frame): PlainFrame {
  assert.equal(
    frame.payloadBytes,
    frame.payload.reduce((sum, piece) => sum + piece.length, 0),
  );
  return { type: frame.type, header: Buffer.from(frame.header), payload: Buffer.concat(frame.payload) };
}

for (const isContiguous of [false, true]) {
  test(`frames survive any cutting, ${isContiguous ? 'one aligned piece' : 'pieces as they come'}`, () => {
    for (let seed = 1; seed <= 60; seed++) {
      const prng = createPrng(seed);
      const sent = Array.from({ length: prng.integer(1, 12) }, () => randomFrame(prng));
      const received: PlainFrame[] = [];
      const reader = new FrameReader({
        isContiguous,
        onFrame: (frame) => {
          if (isContiguous && frame.payloadBytes > 0) {
            assert.equal(frame.payload.length, 1);
            assert.equal(frame.payload[0]!.byteOffset % FRAME_ALIGNMENT, 0);
          }
          received.push(plain(frame));
        },
      });
      for (const chunk of cut(prng, Buffer.concat(sent.map(encode)))) reader.push(chunk);
      assert.deepEqual(received, sent, `seed ${seed}`);
    }
  });
}

test('a frame is given as soon as its last byte is there, not before', () => {
  const count: number[] = [];
  const reader = new FrameReader({ isContiguous: true, onFrame: (frame) => count.push(frame.payloadBytes) });
  const bytes = encode({ type: 7, header: Buffer.from('h'), payload: Buffer.from('abc') });
  reader.push(bytes.subarray(0, -1));
  assert.deepEqual(count, []);
  reader.push(bytes.subarray(-1));
  assert.deepEqual(count, [3]);
});

test('a payload that lies whole and aligned in its chunk is not copied', () => {
  const bytes = Buffer.from(new ArrayBuffer(192));
  encode({ type: 7, header: Buffer.alloc(0), payload: Buffer.alloc(70, 1) }).copy(bytes);
  let payload: Buffer | undefined;
  const reader = new FrameReader({
    isContiguous: true,
    onFrame: (frame) => {
      payload = frame.payload[0];
    },
  });
  reader.push(bytes);
  assert.equal(payload?.buffer, bytes.buffer);
});

test('a frame that claims to be larger than any may be is refused before memory is taken for it', () => {
  const head = Buffer.alloc(64);
  writePreamble(head, { type: 8, headerBytes: 10, payloadBytes: 2 ** 52 });
  const reader = new FrameReader({ isContiguous: true, onFrame: () => assert.fail() });
  assert.throws(() => reader.push(head), /frame is too large/);
});
