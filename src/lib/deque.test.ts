// The ring buffer against an array that does the same, under seeded random operations.
// The array is slow and obviously right.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deque } from './deque.ts';
import { createPrng } from './prng.ts';

test('a deque behaves as an array under random operations', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = createPrng(seed);
    const deque = new Deque<number>();
    const model: number[] = [];
    for (let step = 0; step < 3000; step++) {
      // phases of growth and of shrinking, so that the ring is resized both ways
      const isGrowing = Math.floor(step / 500) % 2 === 0;
      if (random.boolean(isGrowing ? 0.7 : 0.3)) {
        if (random.boolean()) {
          deque.pushBack(step);
          model.push(step);
        } else {
          deque.pushFront(step);
          model.unshift(step);
        }
      } else if (random.boolean()) assert.equal(deque.popFront(), model.shift());
      else assert.equal(deque.popBack(), model.pop());
      assert.equal(deque.size, model.length);
      assert.equal(deque.isEmpty, model.length === 0);
      assert.equal(deque.peekFront(), model[0]);
      assert.equal(deque.peekBack(), model.at(-1));
      const i = random.integer(0, model.length);
      assert.equal(deque.at(i), model[i]);
    }
    assert.deepEqual([...deque], model);
    deque.clear();
    assert.deepEqual([...deque], []);
  }
});

test('outside its range a deque answers undefined', () => {
  const deque = new Deque<string>();
  assert.equal(deque.popFront(), undefined);
  assert.equal(deque.popBack(), undefined);
  deque.pushBack('a');
  assert.equal(deque.at(-1), undefined);
  assert.equal(deque.at(1), undefined);
});
