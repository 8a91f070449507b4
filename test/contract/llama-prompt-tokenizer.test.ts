// Tokens of prompts whose beginning is known already: the same as libllama's of the whole text, on a real vocabulary.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { PromptTokenizer, type TokenizingModel } from '../../src/backends/llama/requests/prompt-tokenizer.ts';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import { loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;

const PIECES = [
  ...[
    'the',
    'model',
    "isn't",
    "we'll",
    'answers',
    'HTTP',
    'x',
    'Straße',
    'naïve',
    '模型',
    'модель',
    '🙂',
    '1234567',
    '3.14',
  ],
  ...[
    '{"a":',
    '[1, 2]',
    '=>',
    '...',
    '\n',
    '\n\n',
    '  ',
    '\t',
    '<|im_start|>',
    '<|im_end|>\n',
    '<|im_end',
    '|>',
    '—',
    "'s",
  ],
];
const OPTIONS = [
  { isSpecialAdded: true, isSpecialParsed: true },
  { isSpecialAdded: false, isSpecialParsed: false },
] as const;

function write(prng: Prng, count: number): string {
  let text = '';
  for (let i = 0; i < count; i++) text += `${prng.boolean(0.8) ? ' ' : ''}${prng.pick(PIECES)}`;
  return text;
}

describe('prompts that begin alike', { skip }, () => {
  let model: LlamaModel;

  before(async () => {
    model = await loadNativeModel((gguf as { file: string }).file);
  });
  after(() => model?.free());

  /** Counts the characters that it has been asked for. */
  function countingModel(pre?: string): TokenizingModel & { asked: number } {
    return {
      asked: 0,
      isEndAdded: model.isEndAdded,
      metadata: (key) => (key === 'tokenizer.ggml.pre' && pre !== undefined ? pre : model.metadata(key)),
      tokenize(text, options) {
        this.asked += text.length;
        return model.tokenize(text, options);
      },
      tokenizeAside(text, options) {
        this.asked += text.length;
        return model.tokenizeAside(text, options);
      },
    };
  }

  for (const hasDevice of [false, true]) {
    test(`have the tokens of the whole text, ${hasDevice ? 'beside a device' : 'on a CPU'}`, async () => {
      const prng = createPrng(hasDevice ? 2 : 1);
      const counting = countingModel();
      const tokenizer = new PromptTokenizer(counting, hasDevice);
      let all = 0;
      for (let round = 0; round < 12; round++) {
        const beginning = write(prng, 800);
        for (let i = 0; i < 12; i++) {
          const text =
            beginning.slice(0, prng.integer(1500, beginning.length)) + write(prng, prng.integer(0, 60));
          const options = prng.pick(OPTIONS);
          assert.deepEqual(await tokenizer.tokenize(text, options), model.tokenize(text, options), text);
          // What is learnt is learnt behind the answer.
          await setImmediate();
          all += text.length;
        }
      }
      assert.ok(counting.asked < 0.9 * all, `${counting.asked} of ${all} characters`);
    });
  }

  test('are tokenized once, but for the end', async () => {
    const counting = countingModel();
    const tokenizer = new PromptTokenizer(counting, false);
    const system = 'Answer every question of the user in one short sentence. '.repeat(50);
    for (let i = 0; i < 3; i++) await tokenizer.tokenize(`${system} question ${i}`, OPTIONS[0]);
    await setImmediate();
    counting.asked = 0;
    for (let i = 0; i < 10; i++) await tokenizer.tokenize(`${system} another ${i}`, OPTIONS[0]);
    assert.ok(counting.asked < 10 * 120, `${counting.asked} characters, of ${10 * system.length}`);
  });

  test('are tokenized whole where words may lie in one token', async () => {
    const counting = countingModel('superbpe');
    const tokenizer = new PromptTokenizer(counting, false);
    const system = write(createPrng(4), 400);
    for (let i = 0; i < 5; i++) await tokenizer.tokenize(`${system} question ${i}`, OPTIONS[0]);
    assert.ok(counting.asked >= 5 * system.length);
  });
});
