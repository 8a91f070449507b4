// Length-prefixed messages, cut into pieces anywhere.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import { CHUNK_BYTES, ChunkPool, type Lease } from '../../lib/chunk-pool.ts';
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

describe('large messages', () => {
  const prng = createPrng(11);
  const contentOf = (byteLength: number): Buffer =>
    Buffer.from(Uint8Array.from({ length: byteLength }, () => prng.integer(0, 255)));

  function pushInPieces(reader: MessageReader, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      const length = prng.pick([1, 500, 9_000, 40_000]);
      reader.push(bytes.subarray(at, at + length));
      at += length;
    }
  }

  test('are received into lent memory, and the others are not', () => {
    const pool = new ChunkPool();
    const received: { bytes: Buffer; lease: Lease | undefined }[] = [];
    const asked: number[] = [];
    const reader = new MessageReader(({ pieces, lease }) => {
      received.push({ bytes: Buffer.concat(pieces), lease });
      lease?.release();
    });
    reader.lender = {
      lend(byteLength) {
        asked.push(byteLength);
        return pool.lend();
      },
    };
    const messages = [10, CHUNK_BYTES, CHUNK_BYTES + 1, 300, 700_000, 700_000, 0, 200_000].map(contentOf);
    for (const bytes of messages) pushInPieces(reader, frame({ bytes, isCompressed: false }));
    for (const [i, bytes] of messages.entries()) assert.ok(received[i]!.bytes.equals(bytes), `message ${i}`);
    assert.deepEqual(
      received.map(({ lease }) => lease !== undefined),
      messages.map(({ length }) => length > CHUNK_BYTES),
    );
    assert.deepEqual(asked, [CHUNK_BYTES + 1, 700_000, 700_000, 200_000]);
    assert.equal(pool.freeCount, Math.ceil(700_000 / CHUNK_BYTES));
  });

  test('of two streams at once keep apart', () => {
    const pool = new ChunkPool();
    for (let round = 0; round < 20; round++) {
      const sent = Array.from({ length: 3 }, () => contentOf(prng.integer(CHUNK_BYTES + 1, 300_000)));
      const received: { pieces: readonly Buffer[]; lease: Lease | undefined }[] = [];
      const streams = sent.map((bytes, i) => {
        const reader = new MessageReader(({ pieces, lease }) => {
          received[i] = { pieces, lease };
        });
        reader.lender = pool;
        return { reader, rest: frame({ bytes, isCompressed: false }) };
      });
      while (streams.some(({ rest }) => rest.length > 0)) {
        const stream = prng.pick(streams);
        const length = prng.integer(1, 30_000);
        stream.reader.push(stream.rest.subarray(0, length));
        stream.rest = stream.rest.subarray(length);
      }
      for (const [i, bytes] of sent.entries()) {
        assert.ok(Buffer.concat(received[i]!.pieces).equals(bytes));
        // One of three is forgotten.
        if (i > 0) received[i]!.lease!.release();
      }
    }
  });

  test('get no memory for what is only announced, and none when they are compressed', () => {
    let askedCount = 0;
    const reader = new MessageReader(() => {});
    reader.lender = {
      lend: () => {
        askedCount++;
        return undefined;
      },
    };
    const announced = frame({ bytes: Buffer.alloc(1_000_000), isCompressed: false });
    reader.push(announced.subarray(0, PREFIX_BYTES + 4095));
    assert.equal(askedCount, 0);
    reader.push(announced.subarray(PREFIX_BYTES + 4095, PREFIX_BYTES + 4096));
    reader.push(announced.subarray(PREFIX_BYTES + 4096));
    assert.equal(askedCount, 1);
    reader.push(frame({ bytes: Buffer.alloc(1_000_000), isCompressed: true }));
    assert.equal(askedCount, 1);
  });

  test('stay in their pieces when nothing is lent', () => {
    const { reader, received } = createReader();
    reader.lender = { lend: () => undefined };
    const bytes = contentOf(200_000);
    pushInPieces(reader, frame({ bytes, isCompressed: false }));
    assert.ok(received[0]!.bytes.equals(bytes));
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
