// Length-prefixed messages, cut into pieces anywhere.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import { createPrng } from '../../lib/prng.ts';
import { MessageReader, MessageTooLarge, PREFIX_BYTES } from './message-reader.ts';

interface Message {
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
}

function frame({ bytes, isCompressed }: Message): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix[0] = isCompressed ? 1 : 0;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

function createReader(): { reader: MessageReader; received: Message[] } {
  const received: Message[] = [];
  const reader = new MessageReader(({ pieces, byteLength, isCompressed }) => {
    const bytes = Buffer.concat(pieces);
    assert.equal(byteLength, bytes.length);
    received.push({ bytes, isCompressed });
  });
  return { reader, received };
}

describe('messages', () => {
  const messages: Message[] = [
    { bytes: Buffer.from('first'), isCompressed: false },
    { bytes: Buffer.alloc(0), isCompressed: true },
    { bytes: Buffer.from('x'), isCompressed: true },
    { bytes: Buffer.alloc(0), isCompressed: false },
    { bytes: Buffer.alloc(300, 'abc'), isCompressed: false },
    { bytes: Buffer.alloc(0), isCompressed: false },
  ];
  const bytes = Buffer.concat(messages.map(frame));

  test('are the same in one piece, byte by byte, and cut once anywhere', () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const { reader, received } = createReader();
      reader.push(bytes.subarray(0, cut));
      reader.push(bytes.subarray(cut));
      assert.deepEqual(received, messages, `cut at ${cut}`);
    }
    const { reader, received } = createReader();
    for (const byte of bytes) reader.push(Buffer.of(byte));
    assert.deepEqual(received, messages);
  });

  test('are the same cut at random', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const prng = createPrng(seed);
      const sent = Array.from({ length: prng.integer(1, 8) }, () => ({
        bytes: Buffer.alloc(prng.pick([0, 1, 4, 5, 6, 1000]), prng.uint32()),
        isCompressed: prng.boolean(0.5),
      }));
      const all = Buffer.concat(sent.map(frame));
      const { reader, received } = createReader();
      for (let at = 0; at < all.length; ) {
        const length = prng.integer(0, 12);
        reader.push(all.subarray(at, at + length));
        at += length;
      }
      assert.deepEqual(received, sent, `seed ${seed}`);
    }
  });

  test('in one chunk are views of it', () => {
    const chunk = frame(messages[0]!);
    const seen: Buffer[] = [];
    new MessageReader(({ pieces }) => seen.push(...pieces)).push(chunk);
    assert.equal(seen.length, 1);
    assert.equal(seen[0]!.buffer, chunk.buffer);
    assert.equal(seen[0]!.byteOffset, chunk.byteOffset + PREFIX_BYTES);
  });

  test('that are not complete are not handed on', () => {
    const { reader, received } = createReader();
    reader.push(bytes.subarray(0, PREFIX_BYTES + 4));
    assert.deepEqual(received, []);
  });
});

describe('refused', () => {
  test('a message that no protobuf can be, before its bytes come', () => {
    const { reader, received } = createReader();
    assert.throws(
      () => reader.push(Buffer.from('00b2d05e00', 'hex')),
      (thrown) =>
        thrown instanceof MessageTooLarge &&
        thrown.message === 'Received message larger than max (3000000000 vs. 2147483647)',
    );
    assert.deepEqual(received, []);
  });

  test('also when its prefix comes in pieces', () => {
    const { reader } = createReader();
    reader.push(Buffer.from('00ff', 'hex'));
    assert.throws(() => reader.push(Buffer.from('ffffff', 'hex')), MessageTooLarge);
  });

  test('a prefix that begins with neither 0 nor 1', () => {
    const { reader } = createReader();
    assert.throws(
      () => reader.push(Buffer.from('GET / HTTP/1.1')),
      (thrown) => thrown instanceof StatusError && thrown.message === 'Bad GRPC frame type 0x47',
    );
  });
});
