// Where sequences live, and that the table cannot grow without end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSequence, SequenceHomes } from './sequence-homes.ts';

test('numbers and texts are different sequences; 0 and the empty text are none', () => {
  const homes = new SequenceHomes();
  homes.keep(7n, 'a');
  homes.keep('7', 'b');
  assert.deepEqual([homes.find(7n), homes.find('7'), homes.find(8n)], ['a', 'b', undefined]);
  homes.end(7n);
  assert.deepEqual([homes.find(7n), homes.find('7')], [undefined, 'b']);
  assert.deepEqual(
    [isSequence(0n), isSequence(''), isSequence(1n), isSequence('0')],
    [false, false, true, true],
  );
});

test('when the table is full the longest silent sequence is forgotten', () => {
  const homes = new SequenceHomes(3);
  for (const id of [1n, 2n, 3n]) homes.keep(id, 'a');
  homes.keep(1n, 'a');
  homes.keep(4n, 'b');
  assert.equal(homes.count, 3);
  assert.deepEqual(
    [1n, 2n, 3n, 4n].map((id) => homes.find(id)),
    ['a', undefined, 'a', 'b'],
  );
});
