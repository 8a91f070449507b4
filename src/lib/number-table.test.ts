import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NumberTable } from './number-table.ts';
import { createPrng } from './prng.ts';

test('behaves like a Map, whatever comes and goes', () => {
  for (let seed = 0; seed < 40; seed++) {
    const prng = createPrng(seed);
    const table = new NumberTable<number>();
    const map = new Map<number, number>();
    const keyMax = prng.pick([20, 1000, 2 ** 31 + 50, Number.MAX_SAFE_INTEGER]);
    const sizeMax = prng.integer(1, 300);
    for (let step = 0; step < 3000; step++) {
      const isNew = map.size < sizeMax && prng.boolean(0.55);
      const key = isNew ? prng.integer(Math.max(0, keyMax - 1000), keyMax) : prng.pick([...map.keys(), 7]);
      if (isNew) {
        table.set(key, step);
        map.set(key, step);
      } else assert.equal(table.delete(key), map.delete(key));
      assert.equal(table.size, map.size);
      assert.equal(table.get(key), map.get(key));
    }
    for (const [key, value] of map) assert.equal(table.get(key), value, `seed ${seed}`);
    const inOrder = [...map].sort(([one], [other]) => one - other);
    assert.deepEqual(
      table.values(),
      inOrder.map(([, value]) => value),
    );
    table.clear();
    assert.deepEqual(table.values(), []);
    assert.equal(table.has(7), false);
  }
});

test('ids in a row, odd ones as those of HTTP/2 streams', () => {
  const table = new NumberTable<{ readonly id: number }>();
  for (let id = 1; id < 200_000; id += 2) {
    table.set(id, { id });
    if (id > 64) assert.ok(table.delete(id - 64));
  }
  assert.equal(table.size, 32);
  assert.equal(table.get(199_999)?.id, 199_999);
  assert.equal(table.get(199_999 - 64), undefined);
});

test('a value may be undefined', () => {
  const table = new NumberTable<undefined>();
  table.set(0, undefined);
  assert.ok(table.has(0));
  assert.equal(table.size, 1);
});
