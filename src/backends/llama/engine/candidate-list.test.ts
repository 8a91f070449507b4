// The cuts of the candidate list against the plain way: sort the whole vocabulary and count.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { CandidateList } from './candidate-list.ts';

const CASES = 200;
const DRAWS = 4000;

interface Candidate {
  readonly token: number;
  readonly weight: number;
}

function fillPlainly(logits: Float32Array, temperature: number, minP: number): Candidate[] {
  const max = Math.max(...logits);
  return Array.from(logits, (logit, token) => ({
    token,
    weight: Math.exp((logit - max) / temperature),
  })).filter(({ weight }) => weight >= minP);
}

const totalOf = (list: readonly Candidate[]) => list.reduce((sum, { weight }) => sum + weight, 0);

/** From the front until they make up `p`. */
function takeShare(sorted: readonly Candidate[], p: number): Candidate[] {
  const total = totalOf(sorted);
  const kept: Candidate[] = [];
  while (kept.length < sorted.length && totalOf(kept) < p * total) kept.push(sorted[kept.length]!);
  return kept;
}

function byWeight(list: readonly Candidate[]): Candidate[] {
  return [...list].sort((a, b) => b.weight - a.weight);
}

function byInformation(list: readonly Candidate[]): Candidate[] {
  const total = totalOf(list);
  const information = ({ weight }: Candidate) => -Math.log(weight / total);
  const entropy = list.reduce((sum, one) => sum + (one.weight / total) * information(one), 0);
  return [...list].sort((a, b) => Math.abs(information(a) - entropy) - Math.abs(information(b) - entropy));
}

/** The share of each token, found by drawing at even distances. */
function sharesOf(list: CandidateList): Map<number, number> {
  const shares = new Map<number, number>();
  for (let i = 0; i < DRAWS; i++) {
    const token = list.draw((i + 0.5) / DRAWS);
    shares.set(token, (shares.get(token) ?? 0) + 1 / DRAWS);
  }
  return shares;
}

function assertSame(list: CandidateList, expected: readonly Candidate[]): void {
  assert.equal(list.count, expected.length);
  const total = totalOf(expected);
  const shares = sharesOf(list);
  for (const { token, weight } of expected) {
    const share = shares.get(token) ?? 0;
    assert.ok(
      Math.abs(share - weight / total) <= 2 / DRAWS,
      `token ${token}: ${share}, not ${weight / total}`,
    );
  }
  const kept = new Set(expected.map(({ token }) => token));
  for (const token of shares.keys()) assert.ok(kept.has(token), `token ${token} was cut`);
}

function randomCase(seed: number) {
  const prng = createPrng(seed);
  const logits = Float32Array.from({ length: prng.integer(1, 60) }, () => prng.float() * 8 - 4);
  return { prng, logits, temperature: 0.3 + prng.float(), list: new CandidateList(logits.length) };
}

describe('candidates', () => {
  test('min-p, top-k, top-p and typical keep what sorting keeps', () => {
    for (let seed = 0; seed < CASES; seed++) {
      const { prng, logits, temperature, list } = randomCase(seed);
      const minP = prng.boolean() ? 0 : prng.float() * 0.3;
      const p = 0.05 + prng.float() * 0.94;
      const k = prng.integer(1, logits.length);
      const filled = fillPlainly(logits, temperature, minP);
      list.fill(logits, temperature, minP);
      assertSame(list, filled);
      list.keepTopK(k);
      const best = byWeight(filled).slice(0, k);
      assertSame(list, best);
      list.keepTopP(p);
      assertSame(list, takeShare(byWeight(best), p));
      list.fill(logits, temperature, minP);
      list.keepTypical(p);
      assertSame(list, takeShare(byInformation(filled), p));
    }
  });

  test('of tokens that are as likely as each other no more than k are kept', () => {
    const list = new CandidateList(6);
    list.fill(new Float32Array(6).fill(1), 1, 0);
    list.keepTopK(4);
    assert.equal(list.count, 4);
    assert.deepEqual(new Set(sharesOf(list).keys()), new Set([0, 1, 2, 3]));
  });

  test('one candidate is always left', () => {
    const list = new CandidateList(3);
    list.fill(Float32Array.from([0, 5, 0]), 1, 1);
    list.keepTypical(1e-9);
    list.keepTopP(1e-9);
    list.keepTopK(1);
    assert.equal(list.draw(0), 1);
    assert.equal(list.draw(0.999999), 1);
  });

  test('what is masked or far below is never drawn', () => {
    const list = new CandidateList(4);
    list.fill(Float32Array.from([Number.NEGATIVE_INFINITY, 2, -100, 2]), 1, 0);
    assert.deepEqual(new Set(sharesOf(list).keys()), new Set([1, 3]));
  });
});
