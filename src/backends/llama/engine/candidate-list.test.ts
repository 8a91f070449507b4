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

const BLOCK = 256;

/**
 * How much of [0, 1) is drawn as each token. A token's own part is the beginning of its slot, and all slots of a block are
 * as wide as its most likely token weighs; where the part ends is found by halving.
 */
function partsOfAll(list: CandidateList, weights: readonly number[]): number[] {
  const widths = weights.map((_, i) => {
    const begin = i - (i % BLOCK);
    return Math.max(...weights.slice(begin, begin + BLOCK));
  });
  const total = widths.reduce((sum, width) => sum + width, 0);
  let end = 0;
  return widths.map((width, token) => {
    const begin = end;
    end += width / total;
    let [inside, outside] = [begin, end];
    for (let i = 0; i < 50; i++) {
      const middle = (inside + outside) / 2;
      if (list.drawFromAll(middle) === token) inside = middle;
      else outside = middle;
    }
    return inside - begin;
  });
}

/** Logits as a model makes them: a wide heap, and a few that stand out. */
function likeAModel(seed: number, tokenCount: number): Float32Array {
  const prng = createPrng(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - prng.float())) * Math.cos(2 * Math.PI * prng.float());
  const logits = Float32Array.from({ length: tokenCount }, () => normal() * 3.6);
  for (let i = 0; i < 20; i++) logits[prng.integer(0, tokenCount - 1)] = 12 + prng.float() * 6;
  return logits;
}

describe('candidates', () => {
  test('min-p, top-k, top-p and typical keep what sorting keeps', () => {
    for (let seed = 0; seed < CASES; seed++) {
      const { prng, logits, temperature, list } = randomCase(seed);
      const minP = prng.boolean() ? 0 : prng.float() * 0.3;
      const p = 0.05 + prng.float() * 0.94;
      const k = prng.integer(1, logits.length);
      const filled = fillPlainly(logits, temperature, minP);
      list.read(logits, temperature);
      list.takeAll(minP);
      assertSame(list, filled);
      list.takeTopK(k, minP);
      const best = byWeight(filled).slice(0, k);
      assertSame(list, best);
      list.keepTopP(p);
      assertSame(list, takeShare(byWeight(best), p));
      list.takeAll(minP);
      list.keepTypical(p);
      assertSame(list, takeShare(byInformation(filled), p));
      list.takeTopP(p);
      assertSame(list, takeShare(byWeight(fillPlainly(logits, temperature, 0)), p));
    }
  });

  test('in a vocabulary of many blocks the cuts are the same', () => {
    for (const [seed, tokenCount] of [2000, 2048, 5000].entries()) {
      const logits = likeAModel(seed, tokenCount);
      const list = new CandidateList(tokenCount);
      const all = byWeight(fillPlainly(logits, 0.8, 0));
      list.read(logits, 0.8);
      // Fewer and more than there are blocks.
      for (const k of [1, 3, 7, 40, 300]) {
        list.takeTopK(k, 0);
        assertSame(list, all.slice(0, k));
      }
      for (const p of [0.01, 0.5, 0.9, 0.999]) {
        list.takeTopP(p);
        assertSame(list, takeShare(all, p));
      }
      list.takeAll(0.02);
      assertSame(list, fillPlainly(logits, 0.8, 0.02));
    }
  });

  test('without a cut each token has its share of the softmax', () => {
    for (const [seed, tokenCount] of [1, 100, 256, 700].entries()) {
      const logits = likeAModel(seed, tokenCount);
      if (tokenCount > 1) logits[tokenCount >> 1] = Number.NEGATIVE_INFINITY;
      const list = new CandidateList(tokenCount);
      list.read(logits, 1.3);
      const weights = fillPlainly(logits, 1.3, 0).map(({ weight }) => weight);
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const parts = partsOfAll(list, weights);
      const whole = parts.reduce((sum, part) => sum + part, 0);
      parts.forEach((part, token) => {
        const expected = weights[token]! / total;
        assert.ok(
          Math.abs(part / whole - expected) < 1e-9,
          `token ${token} of ${tokenCount}: ${part / whole}, not ${expected}`,
        );
      });
    }
  });

  test('of tokens that are as likely as each other no more than k are kept', () => {
    const list = new CandidateList(6);
    list.read(new Float32Array(6).fill(1), 1);
    list.takeTopK(4, 0);
    assert.equal(list.count, 4);
    assert.deepEqual(new Set(sharesOf(list).keys()), new Set([0, 1, 2, 3]));
    list.takeTopP(0.5);
    assert.deepEqual(new Set(sharesOf(list).keys()), new Set([0, 1, 2]));
  });

  test('one candidate is always left', () => {
    const list = new CandidateList(3);
    list.read(Float32Array.from([0, 5, 0]), 1);
    list.takeAll(1);
    list.keepTypical(1e-9);
    list.keepTopP(1e-9);
    list.keepTopK(1);
    assert.equal(list.draw(0), 1);
    assert.equal(list.draw(0.999999), 1);
    list.takeTopP(0);
    assert.equal(list.draw(0.5), 1);
    list.takeAll(0);
    list.keepTypical(0);
    assert.equal(list.count, 1);
  });

  test('what is masked or far below is never drawn', () => {
    const list = new CandidateList(4);
    list.read(Float32Array.from([Number.NEGATIVE_INFINITY, 2, -100, 2]), 1);
    const drawn = new Set(Array.from({ length: DRAWS }, (_, i) => list.drawFromAll(i / DRAWS)));
    drawn.delete(-1);
    assert.deepEqual(drawn, new Set([1, 3]));
    list.takeAll(0);
    assert.deepEqual(new Set(sharesOf(list).keys()), new Set([1, 3]));
    assert.equal(list.isEmpty, false);
    assert.equal(list.mostLikely, 1);
    list.read(new Float32Array(4).fill(Number.NEGATIVE_INFINITY), 1);
    assert.equal(list.isEmpty, true);
  });
});
