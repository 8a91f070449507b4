import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenMemory } from './token-memory.ts';

/** Words of four letters and a space each. */
function words(seed: number, count: number): string {
  return Array.from({ length: count }, (_, i) =>
    ((seed * 7919 + i * 31) % 456_976).toString(26).padStart(4, '0'),
  )
    .map((word) => word.replace(/[0-9]/g, (digit) => 'qrstuvwxyz'[Number(digit)]!))
    .join(' ');
}

const SYSTEM = words(1, 400);

test('what two texts begin with can be cut between two words, with some of it behind the cut', () => {
  const memory = new TokenMemory();
  assert.equal(
    memory.noteText(`${SYSTEM} ${words(2, 20)}`, 0),
    undefined,
    'nobody knows yet what will come again',
  );
  const text = `${SYSTEM} ${words(3, 20)}`;
  const cut = memory.noteText(text, 0)!;
  assert.ok(cut > SYSTEM.length - 80 && cut <= SYSTEM.length - 60, `${cut} of ${SYSTEM.length}`);
  assert.match(text.slice(cut - 1, cut + 2), /^[a-z] [a-z]$/);
  memory.learn(text, cut, [1, 2, 3]);
  const known = memory.find(`${SYSTEM} ${words(4, 20)}`);
  assert.deepEqual(known?.tokens, [1, 2, 3]);
  assert.equal(known.cut, cut);
});

test('a text that differs right behind the cut is another one', () => {
  const memory = new TokenMemory();
  memory.learn(SYSTEM, 1000, [1]);
  assert.ok(memory.find(SYSTEM) !== undefined);
  assert.equal(memory.find(`${SYSTEM.slice(0, 1020)}!${SYSTEM.slice(1020)}`), undefined);
  assert.equal(memory.find(SYSTEM.slice(0, 1010)), undefined, 'it ends there');
});

test('the longest is found, and a longer one can be learnt', () => {
  const memory = new TokenMemory();
  const long = `${SYSTEM} ${words(5, 600)}`;
  memory.learn(SYSTEM, 1000, [1]);
  memory.noteText(`${long} ${words(6, 20)}`, 1000);
  const cut = memory.noteText(`${long} ${words(7, 20)}`, 1000)!;
  assert.ok(cut > SYSTEM.length);
  memory.learn(long, cut, [1, 2]);
  assert.deepEqual(memory.find(long)?.tokens, [1, 2]);
  assert.deepEqual(memory.find(`${SYSTEM} and so on`)?.tokens, [1]);
});

test('nothing is cut where there are no words, nor where little is alike', () => {
  const memory = new TokenMemory();
  const digits = '0123456789 '.repeat(200);
  memory.noteText(`${digits}1`, 0);
  assert.equal(memory.noteText(`${digits}2`, 0), undefined);
  memory.noteText(`${SYSTEM.slice(0, 900)}${words(8, 100)}`, 0);
  assert.equal(memory.noteText(`${SYSTEM.slice(0, 900)}${words(9, 100)}`, 0), undefined);
});

test('what several have learnt at once is there once', () => {
  const memory = new TokenMemory();
  memory.learn(words(50, 300), 1000, [50]);
  for (let i = 0; i < 40; i++) memory.learn(SYSTEM, 1000, [i]);
  assert.deepEqual(memory.find(SYSTEM)?.tokens, [0]);
  assert.deepEqual(memory.find(words(50, 300))?.tokens, [50]);
});

test('it has a bound, and what was used last stays', () => {
  const memory = new TokenMemory();
  const beginnings = Array.from({ length: 40 }, (_, i) => words(100 + i, 300));
  for (const [i, text] of beginnings.entries()) {
    memory.learn(text, 1000, [i]);
    assert.ok(memory.find(beginnings[0]!) !== undefined, `after ${i}`);
  }
  assert.equal(memory.find(beginnings[1]!), undefined);
  assert.deepEqual(memory.find(beginnings[39]!)?.tokens, [39]);
});
