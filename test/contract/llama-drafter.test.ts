// The drafter with a real context of libllama: what it proposes is what its model would write, whatever was drafted on the
// same sequence before, and however little room its cache has.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Drafter, type DraftRequest } from '../../src/backends/llama/engine/drafter.ts';
import { largest } from '../../src/backends/llama/engine/token-sampler.ts';
import type { LlamaContext } from '../../src/backends/llama/library/context.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { createPrng } from '../../src/lib/prng.ts';
import { writeTinyLlama } from '../support/gguf-models.ts';
import { createNativeContext, loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';
const TOKEN_COUNT = 512;
const EXACT = { cacheTypeK: 'f32', cacheTypeV: 'f32', threadCount: 1, batchThreadCount: 1 } as const;

describe('the drafter', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;
  let alone: LlamaContext;

  before(async () => {
    files = createRepository();
    const file = files.at('draft.gguf');
    writeTinyLlama(file, { vocabularyOf, layerCount: 2, tokenCount: TOKEN_COUNT, seed: 1 });
    model = await loadNativeModel(file);
    alone = createNativeContext(model, { ...EXACT, cellCount: 512, sequenceCount: 1 });
  });

  after(() => {
    alone?.free();
    model?.free();
    files?.remove();
  });

  const makeDrafter = (options: { cellCount?: number; stepTokensMax?: number; tokenCount?: number } = {}) => {
    const { cellCount = 1024, stepTokensMax = 64, tokenCount = TOKEN_COUNT } = options;
    const context = createNativeContext(model, { ...EXACT, cellCount, stepTokensMax, sequenceCount: 8 });
    return { context, drafter: new Drafter({ context, stepTokensMax, tokenCount }) };
  };
  const textOf = (length: number, seed: number) => {
    const prng = createPrng(seed);
    return Array.from({ length }, () => prng.integer(20, TOKEN_COUNT - 1));
  };
  const request = (sequence: number, text: readonly number[], count = 4): DraftRequest => ({
    ...{ id: sequence + 100, sequence, count },
    // Where prompt and answer meet makes no difference.
    ...{ prompt: text.slice(0, text.length >> 1), generated: text.slice(text.length >> 1) },
  });
  /** What the model writes after a text, up to its end. */
  const continuation = async (text: readonly number[], count: number) => {
    const tokens: number[] = [];
    while (tokens.length < count && !(tokens.length > 0 && model.isEndOfGeneration(tokens.at(-1)!))) {
      alone.clearCells();
      alone.beginBatch();
      const all = [...text, ...tokens];
      for (const [position, token] of all.entries())
        alone.addRow(token, position, 0, position === all.length - 1);
      assert.equal(await alone.decode(), 0);
      await alone.finishCompute();
      alone.readLogits();
      tokens.push(largest(alone.logitsOf(0)));
    }
    return tokens;
  };

  test('proposes what its model writes, for one and for several at once', async () => {
    const { context, drafter } = makeDrafter();
    const texts = [1, 2, 3].map((seed) => textOf(10 + seed, seed));
    const together = await drafter.propose(texts.map((text, i) => request(i, text, 2 + i)));
    for (const [i, text] of texts.entries()) {
      const expected = await continuation(text, 2 + i);
      assert.deepEqual(together.get(100 + i), expected);
      assert.deepEqual((await drafter.propose([request(7, text, 2 + i)])).get(107), expected);
    }
    assert.deepEqual(await drafter.propose([]), new Map());
    assert.deepEqual(await drafter.propose([request(0, texts[0]!, 0)]), new Map());
    context.free();
  });

  test('goes on from what was accepted, and from what was not', async () => {
    const { context, drafter } = makeDrafter();
    const prng = createPrng(9);
    let text = textOf(12, 9);
    for (let round = 0; round < 30; round++) {
      const proposed = (await drafter.propose([request(3, text, 4)])).get(103)!;
      assert.deepEqual(proposed, await continuation(text, 4), `round ${round}`);
      const accepted = proposed.slice(0, prng.integer(0, proposed.length));
      text = [...text, ...accepted, prng.integer(20, TOKEN_COUNT - 1)];
    }
    context.free();
  });

  test('a sequence that has another text now begins with it', async () => {
    const { context, drafter } = makeDrafter();
    const first = textOf(30, 4);
    await drafter.propose([request(2, first)]);
    for (const text of [textOf(30, 5), first.slice(0, 9), [...first, 25], textOf(3, 6)]) {
      assert.deepEqual((await drafter.propose([request(2, text)])).get(102), await continuation(text, 4));
    }
    context.free();
  });

  test('a long text is read over several calls, and holds up no other', async () => {
    const { context, drafter } = makeDrafter({ stepTokensMax: 16 });
    const long = textOf(70, 7);
    const short = textOf(6, 8);
    // 16 rows a call: first all of the short text, then its last token only, and the rest for the long one.
    for (let call = 0; call < 5; call++) {
      const proposals = await drafter.propose([request(0, long), request(1, short)]);
      assert.deepEqual(proposals.get(101), await continuation(short, 4));
      assert.equal(proposals.has(100), call === 4, `call ${call}`);
      if (call === 4) assert.deepEqual(proposals.get(100), await continuation(long, 4));
    }
    context.free();
  });

  test('when cells are short the texts of longest ago give up theirs, and what can never fit is left out', async () => {
    const { context, drafter } = makeDrafter({ cellCount: 256, stepTokensMax: 256 });
    assert.equal(context.cellCount, 256);
    const texts = Array.from({ length: 8 }, (_, i) => textOf(90, 20 + i));
    for (let round = 0; round < 2; round++) {
      for (const [sequence, text] of texts.entries()) {
        const proposals = await drafter.propose([request(sequence, text)]);
        assert.deepEqual(proposals.get(100 + sequence), await continuation(text, 4));
      }
    }
    const huge = textOf(300, 40);
    const proposals = await drafter.propose([request(0, huge), request(1, texts[1]!), request(2, texts[2]!)]);
    assert.deepEqual([...proposals.keys()].sort(), [101, 102]);
    const three = await drafter.propose([0, 1, 2].map((sequence) => request(sequence, texts[sequence]!)));
    assert.equal(three.size, 2, 'two of three fit');
    context.free();
  });

  test('proposes no token that the target does not have, and reads none that it has not itself', async () => {
    const text = textOf(10, 3);
    const [first] = await continuation(text, 1);
    const narrow = makeDrafter({ tokenCount: first! });
    assert.deepEqual(await narrow.drafter.propose([request(0, text)]), new Map());
    narrow.context.free();
    const { context, drafter } = makeDrafter({ tokenCount: TOKEN_COUNT + 100 });
    const proposals = await drafter.propose([request(0, [...text, TOKEN_COUNT + 5, 30]), request(1, text)]);
    assert.deepEqual([...proposals.keys()], [101]);
    context.free();
  });
});
