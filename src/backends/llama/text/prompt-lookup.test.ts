// Drafts against a search through all tokens.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { PromptLookup } from './prompt-lookup.ts';

/** The same rule by brute force. */
function expected(tokens: readonly number[], count: number): number[] {
  for (const length of [3, 2]) {
    if (tokens.length < length) continue;
    const last = tokens.slice(-length).join();
    for (let end = tokens.length - 1; end >= length; end--) {
      if (tokens.slice(end - length, end).join() === last) return tokens.slice(end, end + count);
    }
  }
  return [];
}

test('proposes what followed the latest earlier occurrence', () => {
  const lookup = new PromptLookup([1, 2, 3, 4, 5, 1, 2, 3, 6, 7, 1, 2, 3]);
  assert.deepEqual(lookup.propose(2), [6, 7]);
  assert.deepEqual(lookup.propose(100), [6, 7, 1, 2, 3]);
  lookup.append(4);
  assert.deepEqual(lookup.propose(2), [5, 1], 'the longer match is the older one');
  assert.equal(lookup.length, 14);
});

test('falls back to two tokens, and proposes nothing for what is new', () => {
  assert.deepEqual(new PromptLookup([1, 2, 8, 9, 1, 2]).propose(1), [8]);
  assert.deepEqual(new PromptLookup([1, 2, 3, 4]).propose(4), []);
  assert.deepEqual(new PromptLookup([]).propose(4), []);
  assert.deepEqual(new PromptLookup([7, 7, 7]).propose(3), [7]);
});

test('agrees with a search through all tokens, step by step', () => {
  const random = createPrng(3);
  for (let round = 0; round < 40; round++) {
    const lookup = new PromptLookup();
    const tokens: number[] = [];
    for (let step = 0; step < 100; step++) {
      const token = random.integer(0, round % 2 === 0 ? 3 : 20) * 7919;
      lookup.append(token);
      tokens.push(token);
      assert.deepEqual(lookup.propose(5), expected(tokens, 5));
    }
  }
});
