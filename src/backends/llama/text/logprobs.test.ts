// Log probabilities against a plain computation in double precision, and the two output forms.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { computeLogprobs, encodeLogprobs } from './logprobs.ts';

test('agrees with a sorted softmax', () => {
  const random = createPrng(1);
  for (let round = 0; round < 30; round++) {
    // Spread wide, so that an unstable sum would overflow or vanish.
    const logits = Float32Array.from(
      { length: 3000 },
      () => (random.float() - 0.5) * 10 ** random.integer(0, 3),
    );
    const token = random.integer(0, logits.length - 1);
    const maximum = logits.reduce((a, b) => Math.max(a, b));
    const logSum = maximum + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - maximum), 0));
    const sorted = [...logits.keys()].sort((a, b) => logits[b]! - logits[a]! || a - b);
    const { chosen, top } = computeLogprobs(logits, { token, topCount: 20 });
    assert.ok(Math.abs(chosen.logprob - (logits[token]! - logSum)) < 1e-6);
    assert.equal(chosen.rank, logits.filter((logit) => logit > logits[token]!).length + 1);
    assert.deepEqual(
      top.map((entry) => entry.token),
      sorted.slice(0, 20),
    );
    for (const entry of top) assert.ok(Math.abs(entry.logprob - (logits[entry.token]! - logSum)) < 1e-6);
  }
});

test('stays finite where logits are masked', () => {
  const halved = Number((-Math.LN2).toFixed(6));
  const logits = Float32Array.of(-Infinity, 2, -Infinity, 2);
  const { chosen, top } = computeLogprobs(logits, { token: 0, topCount: 4 });
  assert.equal(chosen.logprob, -9999);
  assert.deepEqual(
    top.map(({ token, logprob }) => [token, Number(logprob.toFixed(6))]),
    [
      [1, halved],
      [3, halved],
    ],
  );
});

test('writes the form of vLLM and that of OpenAI', () => {
  const pieces = ['a', '€', 'b'].map((text) => Buffer.from(text));
  pieces[1] = pieces[1]!.subarray(0, 2);
  const steps = [computeLogprobs(Float32Array.of(0, 0, -1000), { token: 2, topCount: 1 })];
  const pieceOf = (token: number) => pieces[token]!;
  assert.equal(
    encodeLogprobs(steps, { format: 'vllm', pieceOf }),
    `[{"2":{"logprob":${steps[0]!.chosen.logprob},"rank":3,"decoded_token":"b"},` +
      `"0":{"logprob":${-Math.LN2},"rank":1,"decoded_token":"a"}}]`,
  );
  assert.deepEqual(JSON.parse(encodeLogprobs(steps, { format: 'openai', pieceOf })), [
    {
      token: 'b',
      token_id: 2,
      logprob: steps[0]!.chosen.logprob,
      bytes: [98],
      top: [{ token: 'a', token_id: 0, logprob: -Math.LN2, bytes: [97] }],
    },
  ]);
  assert.match(
    encodeLogprobs([computeLogprobs(Float32Array.of(0, 1), { token: 1, topCount: 0 })], {
      format: 'openai',
      pieceOf,
    }),
    /"token":"\ufffd","token_id":1,.*"bytes":\[226,130\],"top":\[\]/,
  );
});
