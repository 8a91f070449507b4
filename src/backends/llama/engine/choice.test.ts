// One text in the making, over a vocabulary of twelve tokens: what it sends, when it ends, and why.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { CandidateList } from './candidate-list.ts';
import { Choice, type ChoiceGrammar, type ChoiceSettings } from './choice.ts';
import { TokenSampler } from './token-sampler.ts';

/** Token 0 ends; 8 to 10 are the bytes of €, 11 is a control token. */
const PIECES = ['', 'Hello', ' world', ' st', 'op', '!', ' a', ' b', [0xe2], [0x82], [0xac], '<tool>'].map(
  (piece) => Buffer.from(piece as string),
);
const END = 0;
const CONTROL = 11;
const VOCABULARY = {
  endTokens: [END],
  isEndOfGeneration: (token: number) => token === END,
  piece: (token: number, isSpecial: boolean) =>
    token === CONTROL && !isSpecial ? Buffer.alloc(0) : (PIECES[token] ?? Buffer.alloc(0)),
};

function makeChoice(
  settings: Partial<ChoiceSettings> = {},
  options: { grammar?: ChoiceGrammar; temperature?: number; prompt?: number[] } = {},
): Choice {
  const sampler = new TokenSampler(
    {
      ...{ temperature: options.temperature ?? 0, topK: 0, topP: 1, minP: 0, typicalP: 1 },
      ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, penaltyLastTokens: -1 },
      logitBias: new Map(),
    },
    [],
    createPrng(1),
    new CandidateList(PIECES.length),
  );
  return new Choice(
    VOCABULARY,
    {
      ...{ maxTokens: 100, minTokens: 0, stop: [], isStopIncluded: false, stopTokens: new Set() },
      ...{ isEndIgnored: false, isSpecialShown: false, logprobCount: undefined, isLookup: false },
      ...settings,
    },
    options.prompt ?? [],
    { sampler, grammar: options.grammar },
  );
}

/** Logits that favour these tokens, the first most. */
function favour(...tokens: number[]): Float32Array {
  const logits = new Float32Array(PIECES.length).fill(-10);
  tokens.forEach((token, i) => {
    logits[token] = 10 - i;
  });
  return logits;
}

function takeAll(choice: Choice, tokens: readonly number[]): string[] {
  return tokens.map((token) => {
    choice.take(token);
    return choice.takeNews().text;
  });
}

/** A grammar that allows one list of tokens, in order. */
function listGrammar(tokens: readonly number[]): ChoiceGrammar & { freed: number } {
  let at = 0;
  return {
    freed: 0,
    allows: (token) => token === (tokens[at] ?? END),
    mask(logits) {
      for (let token = 0; token < logits.length; token++) {
        if (!this.allows(token)) logits[token] = Number.NEGATIVE_INFINITY;
      }
    },
    accept() {
      at++;
    },
    free() {
      this.freed++;
    },
  };
}

describe('a choice', () => {
  test('sends each piece once and ends at the end token, which has no text', () => {
    const choice = makeChoice();
    assert.deepEqual(takeAll(choice, [1, 2, END]), ['Hello', ' world', '']);
    assert.equal(choice.finishReason, 'stop');
    assert.deepEqual(choice.tokens, [1, 2, END]);
    assert.equal(choice.takeNews().tokenCount, 0);
  });

  test('is cut at its limit, and sends what it held back', () => {
    const choice = makeChoice({ maxTokens: 2, stop: ['stop it'] });
    assert.deepEqual(takeAll(choice, [3, 4]), [' ', 'stop']);
    assert.equal(choice.finishReason, 'length');
  });

  test('a stop string across tokens is never sent, unless it is wanted', () => {
    const choice = makeChoice({ stop: ['stop'] });
    assert.deepEqual(takeAll(choice, [1, 3, 4]), ['Hello', ' ', '']);
    assert.equal(choice.finishReason, 'stop');
    const included = makeChoice({ stop: ['stop'], isStopIncluded: true });
    assert.equal(takeAll(included, [1, 3, 4]).join(''), 'Hello stop');
  });

  test('a stop string that did not come is sent after all', () => {
    const choice = makeChoice({ stop: ['stop'] });
    assert.deepEqual(takeAll(choice, [3, 5]), [' ', 'st!']);
    assert.equal(choice.finishReason, undefined);
  });

  test('half a character waits for its other half', () => {
    const choice = makeChoice();
    assert.deepEqual(takeAll(choice, [8, 9, 10]), ['', '', '€']);
    const cut = makeChoice({ maxTokens: 2 });
    assert.deepEqual(takeAll(cut, [8, 9]), ['', ''], 'what never came whole is left out');
  });

  test('stop tokens end it, an ignored end does not', () => {
    const stopped = makeChoice({ stopTokens: new Set([5]) });
    assert.deepEqual(takeAll(stopped, [1, 5]), ['Hello', '']);
    assert.equal(stopped.finishReason, 'stop');
    const ignoring = makeChoice({ isEndIgnored: true });
    assert.deepEqual(takeAll(ignoring, [1, END, 2]), ['Hello', '', ' world']);
    assert.equal(ignoring.finishReason, undefined);
  });

  test('until the least number of tokens there is no end and no stop', () => {
    const choice = makeChoice({ minTokens: 2, stopTokens: new Set([5]), stop: ['Hello'] });
    assert.equal(choice.next(favour(END, 5, 1)), 1);
    assert.equal(choice.next(favour(5, END, 2)), 2);
    assert.equal(choice.takeNews().text, 'Hello world');
    assert.equal(choice.next(favour(5, 1)), 5);
    assert.equal(choice.finishReason, 'stop');
  });

  test('control tokens have a text only where it is asked for', () => {
    assert.deepEqual(takeAll(makeChoice(), [CONTROL]), ['']);
    assert.deepEqual(takeAll(makeChoice({ isSpecialShown: true }), [CONTROL]), ['<tool>']);
  });

  test('a grammar masks what it does not allow, and is freed once', () => {
    const grammar = listGrammar([1, 5]);
    const choice = makeChoice({}, { grammar });
    assert.deepEqual(
      [favour(2, 1), favour(2), favour(2)].map((logits) => choice.next(logits)),
      [1, 5, END],
    );
    assert.equal(choice.takeNews().text, 'Hello!');
    assert.equal(choice.finishReason, 'stop');
    choice.free();
    assert.equal(grammar.freed, 1);
  });

  test('what a grammar allows is found among the best first, else by its mask', () => {
    let maskCount = 0;
    const only = (wanted: number): ChoiceGrammar => ({
      allows: (token) => token === wanted,
      mask(logits) {
        maskCount++;
        for (let token = 0; token < logits.length; token++) {
          if (token !== wanted) logits[token] = Number.NEGATIVE_INFINITY;
        }
      },
      accept() {},
      free() {},
    });
    const falling = () => Float32Array.from({ length: 64 }, (_, token) => -token);
    assert.equal(makeChoice({}, { grammar: only(9) }).next(falling()), 9);
    assert.equal(maskCount, 0);
    assert.equal(makeChoice({}, { grammar: only(60) }).next(falling()), 60);
    assert.equal(maskCount, 1);
  });

  test('drawing again is as drawing from the allowed ones alone', () => {
    const allowed = new Set([2, 5, 7]);
    const grammar: ChoiceGrammar = {
      allows: (token) => allowed.has(token),
      mask: () => assert.fail('the vocabulary is small enough to find one'),
      accept() {},
      free() {},
    };
    const choice = makeChoice({ maxTokens: 1e9, isEndIgnored: true }, { grammar, temperature: 1 });
    const logits = Float32Array.from({ length: PIECES.length }, (_, token) => Math.sin(token * 7) * 2);
    const drawn = new Map<number, number>();
    const draws = 20_000;
    for (let i = 0; i < draws; i++) {
      const token = choice.next(Float32Array.from(logits));
      drawn.set(token, (drawn.get(token) ?? 0) + 1);
    }
    const weights = [...allowed].map((token) => Math.exp(logits[token]!));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    [...allowed].forEach((token, i) => {
      const share = (drawn.get(token) ?? 0) / draws;
      assert.ok(
        Math.abs(share - weights[i]! / sum) < 0.015,
        `token ${token}: ${share}, ${weights[i]! / sum}`,
      );
    });
  });

  for (const temperature of [0, 0.7]) {
    test(`where nothing is allowed it ends, at temperature ${temperature}`, () => {
      const choice = makeChoice({ minTokens: 5 }, { grammar: listGrammar([1]), temperature });
      choice.next(favour(1));
      choice.next(favour(2));
      assert.equal(choice.finishReason, 'stop');
      assert.deepEqual(choice.tokens, [1]);
    });
  }

  test('log probabilities are those before any mask, and add up', () => {
    const choice = makeChoice({ logprobCount: 2 }, { grammar: listGrammar([2, 1]) });
    choice.next(favour(1, 2));
    choice.next(favour(1, 2));
    const { logprobs } = choice.takeNews();
    assert.deepEqual(
      logprobs.map(({ chosen }) => [chosen.token, chosen.rank]),
      [
        [2, 2],
        [1, 1],
      ],
    );
    assert.deepEqual(
      logprobs[0]!.top.map(({ token }) => token),
      [1, 2],
    );
    const sum = logprobs.reduce((total, { chosen }) => total + chosen.logprob, 0);
    assert.ok(Math.abs(choice.cumulativeLogprob - sum) < 1e-9);
    assert.equal(choice.takeNews().logprobs.length, 0);
  });

  test('lookup proposes what followed the same tokens before', () => {
    const choice = makeChoice({ isLookup: true }, { prompt: [1, 2, 6, 7, 5, 1] });
    choice.take(2);
    assert.deepEqual(choice.propose(2), [6, 7]);
    assert.deepEqual(makeChoice({}, { prompt: [1, 2, 6, 1] }).propose(2), []);
  });

  test('a device may choose where nothing is to be seen or forbidden', () => {
    assert.equal(makeChoice().isDeviceChosen, true);
    assert.equal(makeChoice({ logprobCount: 0 }).isDeviceChosen, false);
    assert.equal(makeChoice({}, { grammar: listGrammar([]) }).isDeviceChosen, false);
    assert.equal(makeChoice({ minTokens: 3 }).isDeviceChosen, false);
    assert.equal(makeChoice({}, { temperature: 1 }).isDeviceChosen, false);
  });
});
