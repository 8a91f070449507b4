import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../lib/prng.ts';
import { ENTRY_OVERHEAD_BYTES, LocalStore } from './local-store.ts';

const bytes = (length: number) => Buffer.alloc(length, 1);
const cost = (length: number) => length + ENTRY_OVERHEAD_BYTES;

test('the least recently used entry goes first', () => {
  const store = new LocalStore(3 * cost(10));
  for (const digest of ['a', 'b', 'c']) store.put('s', digest, bytes(10));
  assert.equal(store.usedBytes, store.sizeBytes);
  store.find('s', 'a');
  store.put('s', 'd', bytes(10));
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((digest) => store.has(digest)),
    [true, false, true, true],
  );
  assert.equal(store.evictionCount, 1);
  assert.equal(store.find('s', 'b'), undefined);
});

test('a large entry evicts as many as it needs; one that never fits evicts none', () => {
  const store = new LocalStore(3 * cost(10));
  for (const digest of ['a', 'b', 'c']) store.put('s', digest, bytes(10));
  store.put('s', 'too large', bytes(store.entryBytesMax + 1));
  assert.equal(store.entryCount, 3);
  store.put('s', 'large', bytes(store.entryBytesMax));
  assert.equal(store.entryCount, 1);
  assert.equal(store.usedBytes, store.sizeBytes);
});

test('the same digest again takes the place of the old entry', () => {
  const store = new LocalStore(10_000);
  store.put('s', 'a', bytes(10));
  store.put('s', 'a', bytes(20));
  assert.equal(store.entryCount, 1);
  assert.equal(store.usedBytes, cost(20));
  assert.equal(store.find('s', 'a')?.length, 20);
});

test('forgetting a scope takes its entries and no others', async () => {
  const store = new LocalStore(10_000_000);
  for (let i = 0; i < 5_000; i++) store.put(i % 2 === 0 ? 'even' : 'odd', String(i), bytes(8));
  await store.forget('even');
  assert.equal(store.entryCount, 2_500);
  assert.equal(store.usedBytes, 2_500 * cost(8));
  assert.ok(!store.has('0') && store.has('1'));
  await store.forget('odd');
  assert.equal(store.usedBytes, 0);
});

test('after any number of operations the bytes are counted exactly and the order is that of a list', async () => {
  const random = createPrng(7);
  const store = new LocalStore(20 * cost(50));
  let model: { digest: string; length: number }[] = [];
  for (let i = 0; i < 20_000; i++) {
    const digest = String(random.integer(0, 59));
    const known = model.find((one) => one.digest === digest);
    if (random.boolean()) {
      assert.equal(store.find('s', digest)?.length, known?.length);
      if (known !== undefined) model = [...model.filter((one) => one !== known), known];
    } else {
      const length = random.integer(0, 99);
      store.put('s', digest, bytes(length));
      model = [...model.filter((one) => one !== known), { digest, length }];
      const used = () => model.reduce((sum, one) => sum + cost(one.length), 0);
      while (used() > store.sizeBytes) model.shift();
      assert.equal(store.usedBytes, used());
    }
    assert.equal(store.entryCount, model.length);
  }
  await store.forget('s');
  assert.equal(store.usedBytes, 0);
});
