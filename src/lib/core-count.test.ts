import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { physicalCoreCount, quotaCores, usableCoreCount } from './core-count.ts';

test('two threads of one core count once', () => {
  assert.equal(physicalCoreCount(['0,2\n', '1,3\n', '0,2\n', '1,3\n']), 2);
  assert.equal(physicalCoreCount(['0\n', '1\n']), 2);
  assert.equal(physicalCoreCount(['', '']), undefined);
});

test("a container's quota is rounded up to whole cores", () => {
  assert.equal(quotaCores('max 100000\n'), undefined);
  assert.equal(quotaCores('150000 100000\n'), 2);
  assert.equal(quotaCores('400000 100000\n'), 4);
  assert.equal(quotaCores(undefined), undefined);
  assert.equal(quotaCores('nonsense'), undefined);
});

test('this machine has at least one usable core, and no more than it allows', () => {
  const count = usableCoreCount();
  assert.ok(count >= 1 && count <= availableParallelism());
});
