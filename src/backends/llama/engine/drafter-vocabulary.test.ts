// Which drafts fit a model: the same texts for the same tokens, padding aside.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findVocabularyDifference } from './drafter-vocabulary.ts';

function vocabulary(tokenCount: number, names: Readonly<Record<number, string>> = {}) {
  return { tokenCount, tokenText: (token: number) => names[token] ?? `t${token}` };
}

test('a draft must mean the same by its tokens', () => {
  assert.equal(findVocabularyDifference(vocabulary(300), vocabulary(300)), undefined);
  assert.equal(findVocabularyDifference(vocabulary(300), vocabulary(400)), undefined);
  assert.equal(findVocabularyDifference(vocabulary(400), vocabulary(300, { 299: '[PAD299]' })), undefined);
  assert.equal(
    findVocabularyDifference(vocabulary(300), vocabulary(500)),
    'it has 300 tokens, the model 500',
  );
  assert.equal(
    findVocabularyDifference(vocabulary(300, { 7: 'x"' }), vocabulary(300)),
    'token 7 is "x\\"", in the model "t7"',
  );
});
