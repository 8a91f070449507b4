// preserve_ordering, with answers that come in any order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../lib/prng.ts';
import { OrderedAnswers } from './ordered-answers.ts';
import { makeEntry } from './test-entry.ts';

function answersFor(arrivals: readonly number[], answered: readonly number[]): number[] {
  const answers = new OrderedAnswers();
  const entries = arrivals.map(() => makeEntry());
  const sent: number[] = [];
  for (const entry of entries) answers.add(entry);
  for (const index of answered) answers.answer(entries[index]!, () => sent.push(index));
  return sent;
}

test('an answer waits for those of earlier requests', () => {
  assert.deepEqual(answersFor([0, 1, 2], [2, 1]), []);
  assert.deepEqual(answersFor([0, 1, 2], [2, 0]), [0]);
  assert.deepEqual(answersFor([0, 1, 2], [2, 1, 0]), [0, 1, 2]);
});

test('any order of answers leaves in the order of arrival', () => {
  const prng = createPrng(1);
  const arrivals = Array.from({ length: 200 }, (_, i) => i);
  for (let i = 0; i < 20; i++) {
    assert.deepEqual(answersFor(arrivals, prng.shuffle([...arrivals])), arrivals);
  }
});

test('an answer given while another leaves keeps its turn', () => {
  const answers = new OrderedAnswers();
  const [first, second, third] = [makeEntry(), makeEntry(), makeEntry()];
  for (const entry of [first, second, third]) answers.add(entry);
  const sent: string[] = [];
  answers.answer(third, () => sent.push('third'));
  answers.answer(first, () => {
    sent.push('first');
    answers.answer(second, () => sent.push('second'));
  });
  assert.deepEqual(sent, ['first', 'second', 'third']);
  assert.equal(third.held, undefined);
});

test('responses of the first leave at once, those of later ones with their turn, in their order', () => {
  const answers = new OrderedAnswers();
  const [first, second] = [makeEntry(), makeEntry()];
  for (const entry of [first, second]) answers.add(entry);
  const sent: string[] = [];
  assert.equal(
    answers.respond(second, () => sent.push('second 1')),
    false,
  );
  assert.equal(
    answers.respond(first, () => sent.push('first 1')),
    true,
  );
  answers.answer(second, () => sent.push('second end'));
  assert.deepEqual(sent, ['first 1']);
  answers.answer(first, () => sent.push('first end'));
  assert.deepEqual(sent, ['first 1', 'first end', 'second 1', 'second end']);
});

test('a request that becomes the first sends what it held and goes on', () => {
  const answers = new OrderedAnswers();
  const [first, second] = [makeEntry(), makeEntry()];
  for (const entry of [first, second]) answers.add(entry);
  const sent: string[] = [];
  answers.respond(second, () => sent.push('second 1'));
  answers.answer(first, () => sent.push('first end'));
  assert.deepEqual(sent, ['first end', 'second 1']);
  assert.equal(
    answers.respond(second, () => sent.push('second 2')),
    true,
  );
});
