// Bytes of KV caches, by hand, and the refusal of one that no machine has room for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkKvMemory, kvCacheBytes } from './kv-memory.ts';

/** SmolLM2-135M. */
const SMOL: Readonly<Record<string, string>> = {
  'general.architecture': 'llama',
  'llama.block_count': '30',
  'llama.embedding_length': '576',
  'llama.attention.head_count': '9',
  'llama.attention.head_count_kv': '3',
};
const F16 = { cellCount: 1000, cacheTypeK: 'f16', cacheTypeV: 'f16' } as const;
const of = (table: Readonly<Record<string, string>>) => (key: string) => table[key];

test('a cell is the keys and values of all heads in all layers', () => {
  assert.equal(kvCacheBytes(of(SMOL), F16), 1000 * 30 * 3 * 64 * 2 * 2);
  assert.equal(kvCacheBytes(of(SMOL), { ...F16, cacheTypeK: 'q8_0' }), 1000 * 30 * 3 * (68 + 128));
});

test('lengths of their own, heads by layer, and no shared heads', () => {
  const own = { ...SMOL, 'llama.attention.key_length': '128', 'llama.attention.value_length': '32' };
  assert.equal(kvCacheBytes(of(own), F16), 1000 * 30 * 3 * (128 + 32) * 2);
  const byLayer = {
    ...SMOL,
    'llama.block_count': '3',
    'llama.attention.head_count': '[9, 9, 9]',
    'llama.attention.head_count_kv': '[3, 0, 1]',
  };
  assert.equal(kvCacheBytes(of(byLayer), F16), 1000 * 4 * 128 * 2);
  const { 'llama.attention.head_count_kv': _, ...plain } = SMOL;
  assert.equal(kvCacheBytes(of(plain), F16), 1000 * 30 * 9 * 128 * 2);
});

test('what the file does not tell is not guessed', () => {
  assert.equal(
    kvCacheBytes(of({ 'general.architecture': 'mamba', 'mamba.block_count': '3' }), F16),
    undefined,
  );
  assert.equal(kvCacheBytes(of({ ...SMOL, 'llama.attention.head_count_kv': '[3, 3' }), F16), undefined);
  checkKvMemory(of({}), { ...F16, cellCount: 2 ** 40 });
});

test('a cache larger than the memory is refused before it is made', () => {
  checkKvMemory(of(SMOL), F16);
  assert.throws(
    () => checkKvMemory(of(SMOL), { ...F16, cellCount: 1e12 }),
    /^StatusError: a KV cache of 1000000000000 cells needs 23040000\.0 GB, but only [\d.]+ GB of memory are free; lower kv_cells, /,
  );
});
