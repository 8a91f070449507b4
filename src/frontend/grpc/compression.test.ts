// Compressed messages: what comes back, what is refused, and that a bomb is stopped.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { StatusError } from '../../domain/status.ts';
import { createPrng } from '../../lib/prng.ts';
import { isKnownEncoding, pack, unpack } from './compression.ts';
import { MessageTooLarge } from './message-reader.ts';

const ENCODINGS = ['gzip', 'deflate'] as const;

for (const encoding of ENCODINGS) {
  describe(encoding, () => {
    test('gives back what went in, in pieces of any size', async () => {
      const prng = createPrng(7);
      for (const byteLength of [0, 1, 100, 70_000, 1_000_000]) {
        const bytes = Buffer.from(Array.from({ length: byteLength }, () => prng.integer(0, 7)));
        const middle = byteLength >> 1;
        const packed = await pack([bytes.subarray(0, middle), bytes.subarray(middle)], encoding);
        if (byteLength >= 1000) assert.ok(packed.length < byteLength / 2);
        const cut = prng.integer(0, packed.length);
        const unpacked = await unpack([packed.subarray(0, cut), packed.subarray(cut)], encoding);
        assert.ok(unpacked.equals(bytes), `${byteLength} bytes`);
      }
    });

    test('refuses garbage, the other encoding, and what is cut short', async () => {
      const good = await pack([Buffer.alloc(1000, 'abc')], encoding);
      const other = await pack([Buffer.alloc(1000, 'abc')], encoding === 'gzip' ? 'deflate' : 'gzip');
      for (const bytes of [
        Buffer.alloc(0),
        Buffer.from('garbage'),
        other,
        good.subarray(0, good.length - 5),
      ]) {
        await assert.rejects(
          unpack([bytes], encoding),
          (thrown) => thrown instanceof StatusError && thrown.code === 'INTERNAL',
        );
      }
    });
  });
}

test('a bomb ends with an error where its bound is, and not with the memory', async () => {
  const bytesMax = 16 * 1024 * 1024;
  // A few kilobytes that become a gigabyte.
  const bomb = new Array<Buffer>(64).fill(gzipSync(Buffer.alloc(bytesMax)));
  const before = process.memoryUsage().rss;
  await assert.rejects(unpack(bomb, 'gzip', bytesMax), MessageTooLarge);
  assert.ok(process.memoryUsage().rss - before < 8 * bytesMax);
  assert.equal((await unpack([gzipSync(Buffer.alloc(bytesMax))], 'gzip', bytesMax)).length, bytesMax);
  assert.equal((await unpack([gzipSync('next')], 'gzip')).toString(), 'next');
});

test('more messages than may be unpacked at once all come through', async () => {
  const texts = Array.from({ length: 40 }, (_, i) => `message ${i}`);
  const unpacked = await Promise.all(texts.map((text) => unpack([gzipSync(text)], 'gzip')));
  assert.deepEqual(
    unpacked.map((bytes) => bytes.toString()),
    texts,
  );
});

test('three encodings are known', () => {
  assert.deepEqual(['identity', 'gzip', 'deflate', 'GZIP', 'br', 'snappy', ''].filter(isKnownEncoding), [
    'identity',
    'gzip',
    'deflate',
  ]);
});
