import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkPool } from '../../lib/chunk-pool.ts';
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
