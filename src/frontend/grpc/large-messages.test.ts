import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHUNK_BYTES, ChunkPool } from '../../lib/chunk-pool.ts';
import { LargeMessages } from './large-messages.ts';

const MIB = 1024 * 1024;

test('messages are received into the pool only while much is open', () => {
  const messages = new LargeMessages(new ChunkPool());
  for (let i = 0; i < 6; i++) assert.equal(messages.begin(MIB), undefined);
  assert.notEqual(messages.begin(MIB), undefined);
  messages.end(2 * MIB);
  assert.equal(messages.begin(MIB), undefined, 'two calls have been answered');
  assert.notEqual(messages.begin(MIB), undefined);
});

test('an answer as large as its request finds memory, up to four megabytes', () => {
  const pool = new ChunkPool();
  const messages = new LargeMessages(pool);
  messages.begin(MIB);
  assert.equal(pool.hasFree(MIB), true);
  assert.equal(pool.freeCount * CHUNK_BYTES, MIB);
  messages.end(MIB);
  messages.begin(MIB);
  assert.equal(pool.freeCount * CHUNK_BYTES, MIB, 'what is free is enough');
  messages.begin(100 * MIB);
  assert.equal(pool.freeCount * CHUNK_BYTES, 4 * MIB);
});
