import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeepPolicy } from './keep-policy.ts';

const LIMITS = { keptCellsMax: 1000, keptCellsMin: 0 };
const ADAPTER = 0;

/** A text of its own for each seed. */
function text(seed: number, length = 64): number[] {
  return Array.from({ length }, (_, i) => (Math.imul(seed + 1, 7919) + i * 31) >>> 0);
}

function serve(policy: KeepPolicy, prompt: readonly number[], adapter = ADAPTER): void {
  policy.noteBegin(adapter, prompt, 0);
  policy.noteEnd(adapter, prompt);
}

/** After so many prompts that nobody has seen before. */
function afterStrangers(count = 40): KeepPolicy {
  const policy = new KeepPolicy(LIMITS);
  for (let seed = 0; seed < count; seed++) serve(policy, text(seed));
  return policy;
}

test('keeps what it may at first, and nothing after many prompts that were all new', () => {
  assert.equal(new KeepPolicy(LIMITS).cellsMax, 1000);
  assert.equal(afterStrangers(20).cellsMax, 1000);
  assert.equal(afterStrangers(40).cellsMax, 0);
});

test('one prompt that begins like an earlier text is enough', () => {
  const policy = afterStrangers();
  serve(policy, [...text(3), ...text(1000, 16)]);
  assert.equal(policy.cellsMax, 1000);
});

test('another adapter, or another beginning, is another text', () => {
  const policy = afterStrangers();
  serve(policy, text(3), ADAPTER + 1);
  serve(policy, [1, ...text(3)]);
  assert.equal(policy.cellsMax, 0);
});

test('cells that are found count as well', () => {
  const policy = afterStrangers();
  policy.noteBegin(ADAPTER, text(1000), 60);
  assert.equal(policy.cellsMax, 1000);
});

test('texts that are long gone are forgotten', () => {
  const policy = afterStrangers();
  for (let seed = 0; seed < 20; seed++) serve(policy, text(2000 + seed, 16 * 512));
  serve(policy, text(3));
  assert.equal(policy.cellsMax, 0);
});

/** Answered with 40 tokens of its own; how many have come again. */
function answer(policy: KeepPolicy, prompt: readonly number[], seed: number): number {
  policy.noteBegin(ADAPTER, prompt, 0);
  return policy.noteEnd(ADAPTER, [...prompt, ...text(seed, 40)]);
}

/** So many texts that begin alike. */
function afterSystemPrompts(count: number): KeepPolicy {
  const policy = new KeepPolicy(LIMITS);
  for (let i = 0; i < count; i++) answer(policy, [...text(1, 160), ...text(100 + i, 20)], 500 + i);
  return policy;
}

test('of texts with a beginning in common, only that has come again', () => {
  assert.ok(afterSystemPrompts(20).keepsTails, 'as long as little is known');
  const policy = afterSystemPrompts(40);
  assert.ok(!policy.keepsTails);
  assert.equal(policy.cellsMax, 1000);
  assert.equal(answer(policy, [...text(1, 160), ...text(2000, 20)], 2001), 160);
  assert.equal(answer(policy, text(3000), 3001), 0, 'another beginning');
});

test('texts that go on where earlier ones ended are kept whole', () => {
  const policy = afterSystemPrompts(40);
  let conversation = [...text(1, 160), ...text(139, 20), ...text(539, 40)];
  for (let turn = 0; turn < 4; turn++) {
    const prompt = [...conversation, ...text(700 + turn, 100)];
    answer(policy, prompt, 800 + turn);
    conversation = [...prompt, ...text(800 + turn, 40)];
  }
  assert.ok(policy.keepsTails);
});

test('a number that is given holds always', () => {
  const policy = new KeepPolicy({ keptCellsMax: 500, keptCellsMin: 500 });
  for (let seed = 0; seed < 40; seed++) serve(policy, text(seed));
  assert.equal(policy.cellsMax, 500);
  assert.ok(policy.keepsTails);
});
