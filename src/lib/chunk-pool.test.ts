// Memory that is used again: never before it is given back, never twice, and not without bound.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CHUNK_BYTES, ChunkPool, shareLease } from './chunk-pool.ts';
import { createPrng, type Prng } from './prng.ts';

function randomBytes(prng: Prng, byteLength: number): Buffer {
  const bytes = Buffer.alloc(byteLength);
  for (let at = 0; at + 4 <= byteLength; at += 4) bytes.writeUInt32LE(prng.uint32(), at);
  return bytes;
}

describe('a lent payload', () => {
  test('is what was written, in views that show nothing else', () => {
    const prng = createPrng(1);
    const pool = new ChunkPool();
    for (const byteLength of [1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 77]) {
      const bytes = randomBytes(prng, byteLength);
      const lent = pool.lend();
      for (let at = 0; at < byteLength; ) {
        const end = Math.min(byteLength, at + prng.integer(1, 100_000));
        lent.write(bytes, at, end);
        at = end;
      }
      const views = lent.views();
      assert.equal(views.length, Math.ceil(byteLength / CHUNK_BYTES));
      assert.ok(Buffer.concat(views).equals(bytes));
      lent.release();
    }
  });

  test('of nothing takes no memory', () => {
    const lent = new ChunkPool().lend();
    lent.write(Buffer.alloc(3), 2, 2);
    assert.deepEqual(lent.views(), []);
  });

  test('cannot be written once it is given back', () => {
    const lent = new ChunkPool().lend();
    lent.write(Buffer.alloc(10), 0, 10);
    lent.release();
    assert.throws(() => lent.write(Buffer.alloc(1), 0, 1), /given back/);
  });
});

describe('chunks', () => {
  const lendOf = (pool: ChunkPool, chunks: number) => {
    const lent = pool.lend();
    lent.write(Buffer.alloc(chunks * CHUNK_BYTES), 0, chunks * CHUNK_BYTES);
    return lent;
  };

  test('are made when there are none, and used again', () => {
    const pool = new ChunkPool();
    const first = lendOf(pool, 3);
    const memory = first.views().map(({ buffer }) => buffer);
    assert.equal(pool.hasFree(1), false);
    first.release();
    assert.equal(pool.freeCount, 3);
    assert.deepEqual([pool.hasFree(3 * CHUNK_BYTES), pool.hasFree(3 * CHUNK_BYTES + 1)], [true, false]);
    const second = lendOf(pool, 4);
    assert.equal(pool.freeCount, 0);
    assert.deepEqual(new Set(second.views().map(({ buffer }) => buffer)).size, 4);
    for (const buffer of memory) assert.ok(second.views().some((view) => view.buffer === buffer));
  });

  test('have memory of their own, so that forgetting one lets it be collected', () => {
    for (const { buffer } of lendOf(new ChunkPool(), 3).views()) assert.equal(buffer.byteLength, CHUNK_BYTES);
  });

  test('come back once, however often they are released', () => {
    const pool = new ChunkPool();
    const lent = lendOf(pool, 2);
    lent.release();
    const next = lendOf(pool, 1);
    lent.release();
    assert.equal(pool.freeCount, 1);
    assert.ok(lendOf(pool, 1).views()[0]!.buffer !== next.views()[0]!.buffer);
  });

  test('beyond the bound are dropped', () => {
    const pool = new ChunkPool(4);
    const payloads = [lendOf(pool, 3), lendOf(pool, 3)];
    for (const payload of payloads) payload.release();
    assert.equal(pool.freeCount, 4);
  });

  test('in use at the same time never overlap, in any order of lending and releasing', () => {
    const prng = createPrng(7);
    const pool = new ChunkPool(20);
    const open: { lent: ReturnType<ChunkPool['lend']>; bytes: Buffer }[] = [];
    for (let step = 0; step < 600; step++) {
      if (open.length < 12 && prng.boolean(0.6)) {
        const bytes = randomBytes(prng, prng.integer(1, 3 * CHUNK_BYTES));
        const lent = pool.lend();
        lent.write(bytes, 0, bytes.length);
        open.push({ lent, bytes });
      } else if (open.length > 0) {
        const [{ lent, bytes }] = open.splice(prng.integer(0, open.length - 1), 1) as [(typeof open)[0]];
        assert.ok(Buffer.concat(lent.views()).equals(bytes));
        // Some are forgotten.
        if (prng.boolean(0.8)) lent.release();
      }
    }
  });
});

describe('a shared lease', () => {
  test('goes back with the last share, and no share counts twice', () => {
    let count = 0;
    const lease = {
      release: () => {
        count++;
      },
    };
    const shares = shareLease(lease, 3);
    assert.equal(shares.length, 3);
    for (const share of [0, 0, 0, 1, 1]) shares[share]!.release();
    assert.equal(count, 0);
    shares[2]!.release();
    for (const share of shares) share.release();
    assert.equal(count, 1);
  });

  test('is itself where only one has it', () => {
    const lease = { release: () => {} };
    assert.deepEqual(shareLease(lease, 1), [lease]);
    assert.deepEqual(shareLease(lease, 0), []);
  });
});
