import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chatLogprobs, completionLogprobs, parseLogprobs } from './token-logprobs.ts';

const OURS = JSON.stringify([
  {
    token: 'é',
    token_id: 9,
    logprob: -0.5,
    bytes: [195, 169],
    top: [
      { token: 'é', token_id: 9, logprob: -0.5, bytes: [195, 169] },
      { token: 'b', token_id: 1, logprob: null },
    ],
  },
]);
/** The drawn token first, though its id is the larger one; the text holds what looks like a key. */
const VLLM =
  '[{"50": {"logprob": -2.5, "rank": 3, "decoded_token": "\\"7\\": {"}, "7": {"logprob": -0.1, "rank": 1, "decoded_token": "b"}}]';

test('our form and vLLM’s are read alike', () => {
  assert.deepEqual(parseLogprobs(OURS), [
    {
      token: 'é',
      logprob: -0.5,
      bytes: [195, 169],
      top: [
        { token: 'é', logprob: -0.5, bytes: [195, 169] },
        { token: 'b', logprob: -9999, bytes: [98] },
      ],
    },
  ]);
  const [entry] = parseLogprobs(VLLM);
  assert.deepEqual([entry?.token, entry?.logprob], ['"7": {', -2.5]);
  assert.deepEqual(
    entry?.top.map(({ token }) => token),
    ['b', '"7": {'],
  );
  assert.deepEqual([parseLogprobs('null'), parseLogprobs(''), parseLogprobs('[]')], [[], [], []]);
  for (const bad of ['{', '{}', '[{}]', '[1]', 'true']) assert.throws(() => parseLogprobs(bad), /logprobs/);
});

test('both forms of the API', () => {
  const entries = [...parseLogprobs(OURS), ...parseLogprobs(OURS)];
  const [first] = (chatLogprobs(entries, 1) as { content: { top_logprobs: unknown[] }[] }).content;
  assert.deepEqual(first?.top_logprobs, [{ token: 'é', logprob: -0.5, bytes: [195, 169] }]);
  assert.deepEqual(completionLogprobs(entries, { count: 2, textOffset: 4 }), {
    tokens: ['é', 'é'],
    token_logprobs: [-0.5, -0.5],
    top_logprobs: [
      { é: -0.5, b: -9999 },
      { é: -0.5, b: -9999 },
    ],
    text_offset: [4, 5],
  });
  const bare = completionLogprobs(entries, { count: 0, textOffset: 0 }) as { top_logprobs: unknown };
  assert.equal(bare.top_logprobs, null);
});
