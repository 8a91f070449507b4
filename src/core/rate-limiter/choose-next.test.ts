// The pure decision: order, what is kept for whom, and who is overdue.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Candidate, chooseNext, overtakesMax } from './choose-next.ts';

interface Named extends Candidate {
  readonly name: string;
}

let nextOrder = 0;

function candidate(name: string, needs: Record<string, number>, fields: Partial<Candidate> = {}): Named {
  return {
    name,
    needs: new Map(Object.entries(needs).map(([key, count]) => [key, { name: key, device: 0, count }])),
    priority: 1,
    executionCount: 0,
    overtakenCount: 0,
    waitOrder: nextOrder++,
    ...fields,
  };
}

function chosen(free: Record<string, number>, ...waiting: Named[]): string {
  const situation = { free: new Map(Object.entries(free)), instanceCount: waiting.length };
  return chooseNext(waiting, situation)
    .map(({ name }) => name)
    .join(' ');
}

test('the lowest execution count times priority goes first, then who waits longer', () => {
  const a = candidate('a', { r: 1 }, { executionCount: 3 });
  const b = candidate('b', { r: 1 }, { executionCount: 1, priority: 2 });
  const c = candidate('c', { r: 1 }, { executionCount: 2 });
  assert.equal(chosen({ r: 1 }, a, b, c), 'b');
  assert.equal(chosen({ r: 2 }, a, b, c), 'b c');
  assert.equal(chosen({ r: 9 }, a, b, c), 'b c a');
});

test('what the first still lacks is kept for it; who needs something else goes on', () => {
  const large = candidate('large', { r: 4, s: 1 });
  const small = candidate('small', { r: 1 }, { executionCount: 5 });
  const other = candidate('other', { t: 1 }, { executionCount: 9 });
  const same = candidate('same', { s: 1 }, { executionCount: 9 });
  assert.equal(chosen({ r: 3, s: 2, t: 1 }, large, small, other, same), 'other same');
  assert.equal(chosen({ r: 3, s: 1, t: 1 }, large, small, other, same), 'other');
  assert.equal(chosen({ r: 5, s: 1, t: 1 }, large, small, other, same), 'large small other');
});

test('who needs nothing may always begin, also while a pool is over-committed', () => {
  const none = candidate('none', {}, { executionCount: 9 });
  const zero = candidate('zero', { r: 0 }, { executionCount: 9 });
  assert.equal(chosen({ r: -2 }, candidate('r', { r: 1 }), none, zero), 'none zero');
});

test('who was overtaken too often goes first, whatever the counts say', () => {
  const overtakenCount = overtakesMax(3, 2);
  const late = candidate('late', { r: 1 }, { executionCount: 1e6, priority: 3, overtakenCount });
  const fresh = candidate('fresh', { r: 1 });
  assert.equal(chosen({ r: 1 }, fresh, late), 'late');
  assert.equal(chosen({ r: 1 }, fresh, { ...late, overtakenCount: overtakenCount - 1 }), 'fresh');
});
