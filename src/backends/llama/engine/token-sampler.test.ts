// How one token is chosen: greedy, penalties, bias, and draws that a seed repeats.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { CandidateList } from './candidate-list.ts';
import { largest, type SamplerSettings, TokenSampler } from './token-sampler.ts';

const GREEDY: SamplerSettings = {
  ...{ temperature: 0, topK: 0, topP: 1, minP: 0, typicalP: 1 },
  ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, penaltyLastTokens: -1 },
  logitBias: new Map(),
};

function makeSampler(
  settings: Partial<SamplerSettings>,
  prompt: readonly number[] = [],
  seed = 1,
): TokenSampler {
  return new TokenSampler({ ...GREEDY, ...settings }, prompt, createPrng(seed), new CandidateList(8));
}

const choose = (sampler: TokenSampler, ...logits: number[]) => sampler.choose(Float32Array.from(logits));

describe('the sampler', () => {
  test('greedy takes the first of the largest', () => {
    assert.equal(choose(makeSampler({}), 1, 3, 3, 2), 1);
    assert.equal(largest(Float32Array.from([Number.NEGATIVE_INFINITY, -5])), 1);
  });

  test('a repetition penalty weakens what the prompt and the answer have, above and below zero', () => {
    const sampler = makeSampler({ repetitionPenalty: 2 }, [0]);
    assert.equal(choose(sampler, 3, 2, 0), 1);
    sampler.accept(1);
    assert.equal(choose(sampler, 3, 2, 1.6), 2);
    const below = Float32Array.from([-1, -1.5, -9]);
    assert.equal(sampler.choose(below), 0);
    assert.deepEqual([...below], [-2, -3, -9]);
  });

  test('presence and frequency look at the answer only, and frequency counts', () => {
    const presence = makeSampler({ presencePenalty: 1 }, [0]);
    assert.equal(choose(presence, 3, 2.5), 0);
    presence.accept(0);
    presence.accept(0);
    assert.equal(choose(presence, 3, 2.5), 1);
    assert.equal(choose(presence, 3, 1.5), 0);
    const frequency = makeSampler({ frequencyPenalty: 1 });
    frequency.accept(0);
    assert.equal(choose(frequency, 3, 1.5), 0);
    frequency.accept(0);
    assert.equal(choose(frequency, 3, 1.5), 1);
  });

  test('penalties forget what has left their window', () => {
    const sampler = makeSampler({ presencePenalty: 2, penaltyLastTokens: 1 });
    sampler.accept(0);
    assert.equal(choose(sampler, 3, 2), 1);
    sampler.accept(1);
    assert.equal(choose(sampler, 3, 2), 0);
  });

  test('a bias forces or forbids, and one beyond the vocabulary does nothing', () => {
    assert.equal(choose(makeSampler({ logitBias: new Map([[1, 100]]) }), 5, 1), 1);
    assert.equal(choose(makeSampler({ logitBias: new Map([[0, -100]]) }), 5, 1), 1);
    assert.equal(choose(makeSampler({ logitBias: new Map([[900, 100]]) }), 5, 1), 0);
  });

  test('the same seed draws the same tokens, another seed others', () => {
    const draw = (seed: number) => {
      const sampler = makeSampler({ temperature: 1 }, [], seed);
      return Array.from({ length: 40 }, () => choose(sampler, 1, 1, 1, 1, 1, 1, 1, 1)).join('');
    };
    assert.equal(draw(3), draw(3));
    assert.notEqual(draw(3), draw(4));
  });

  test('draws are as frequent as their probabilities', () => {
    const sampler = makeSampler({ temperature: 0.5 });
    const counts = [0, 0, 0];
    for (let i = 0; i < 6000; i++) counts[choose(sampler, 0, 0.5 * Math.log(2), 0.5 * Math.log(3))]!++;
    [1000, 2000, 3000].forEach((expected, i) => {
      assert.ok(Math.abs(counts[i]! - expected) < 200, `${counts}`);
    });
  });

  test('where all is masked it still answers', () => {
    const masked = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const settings of [{}, { topP: 0.5 }, { topK: 1 }, { minP: 0.1 }, { typicalP: 0.5 }]) {
      assert.equal(choose(makeSampler({ temperature: 1, ...settings }), ...masked), 0);
    }
  });

  test('after a mask it chooses again without adjusting twice', () => {
    const sampler = makeSampler({ presencePenalty: 1 });
    sampler.accept(1);
    const logits = Float32Array.from([5, 4, 3.5]);
    assert.equal(sampler.choose(logits), 0);
    logits[0] = Number.NEGATIVE_INFINITY;
    assert.equal(sampler.chooseAgain(logits), 2);
    assert.equal(logits[1], 3);
  });

  test('only a plain greedy choice may be left to a device', () => {
    assert.equal(makeSampler({}).isPlainGreedy, true);
    assert.equal(makeSampler({ temperature: 0.1 }).isPlainGreedy, false);
    assert.equal(makeSampler({ frequencyPenalty: 0.1 }).isPlainGreedy, false);
    assert.equal(makeSampler({ logitBias: new Map([[1, 1]]) }).isPlainGreedy, false);
  });
});
