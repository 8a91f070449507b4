import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isMappedBest, weightsBytes } from './weights-memory.ts';

const PLENTY = { isMapped: undefined, isOnGpu: false, fileBytes: 1e9, freeBytes: 8e9, hasLargePages: true };

test('weights lie in memory of their own where a CPU reads them and there is plenty', () => {
  assert.equal(isMappedBest(PLENTY), false);
  assert.equal(isMappedBest({ ...PLENTY, isOnGpu: true }), true);
  assert.equal(isMappedBest({ ...PLENTY, hasLargePages: false }), true);
  assert.equal(isMappedBest({ ...PLENTY, fileBytes: 4.1e9 }), true, 'the KV cache needs room, too');
});

test('what the config says holds', () => {
  assert.equal(isMappedBest({ ...PLENTY, isMapped: true }), true);
  assert.equal(isMappedBest({ ...PLENTY, isMapped: false, fileBytes: 9e9 }), false);
});

test('a model in parts is as large as its parts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nereid-weights-'));
  try {
    writeFileSync(join(folder, 'a-00001-of-00002.gguf'), Buffer.alloc(100));
    writeFileSync(join(folder, 'a-00002-of-00002.gguf'), Buffer.alloc(50));
    writeFileSync(join(folder, 'b-00001-of-00002.gguf'), Buffer.alloc(7));
    writeFileSync(join(folder, 'model.gguf'), Buffer.alloc(30));
    assert.equal(weightsBytes(join(folder, 'a-00001-of-00002.gguf')), 150);
    assert.equal(weightsBytes(join(folder, 'model.gguf')), 30);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
