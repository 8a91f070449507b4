// The context in which long prompts are computed, with libllama: which steps it takes, and when cells move to the others.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { SideContext } from '../../src/backends/llama/engine/side-context.ts';
import type { LlamaContext } from '../../src/backends/llama/library/context.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { writeTinyLlama } from '../support/gguf-models.ts';
import { createNativeContext, loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;

const row = (sequence: number, firstPosition: number, count: number) => ({
  ...{ requestId: sequence, sequence, firstPosition, outputs: 'none' as const },
  tokens: Array.from({ length: count }, (_, i) => 40 + i),
});

describe('the side context', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;
  let main: LlamaContext;
  let aside: LlamaContext;
  let side: SideContext;

  before(async () => {
    files = createRepository();
    const file = files.at('tiny.gguf');
    const vocabularyOf = 'file' in gguf ? gguf.file : '';
    writeTinyLlama(file, { vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 });
    model = await loadNativeModel(file);
    main = createNativeContext(model, { sequenceCount: 16 });
    aside = createNativeContext(model, { cellCount: 256, sequenceCount: 2, outputsMax: 2, threadsOf: main });
    side = new SideContext({ context: aside, sequenceCount: 2, rowsMin: 4 }, main);
  });

  after(() => {
    aside?.free();
    main?.free();
    model?.free();
    files?.remove();
  });

  const compute = async (...rows: ReturnType<typeof row>[]) => {
    assert.equal(side.takes(rows), true);
    aside.beginBatch();
    for (const { sequence, firstPosition, tokens } of rows) {
      for (const [i, token] of tokens.entries()) {
        aside.addRow(token, firstPosition + i, side.of(sequence), false);
      }
    }
    assert.equal(await aside.decode(), 0);
  };

  test('takes long prompts from their beginning on, and nothing else', async () => {
    assert.equal(side.takes([row(5, 0, 3)]), false, 'few rows');
    assert.equal(side.takes([row(5, 8, 8)]), false, 'a prompt whose beginning is with the others');
    assert.equal(side.takes([row(5, 0, 8), row(6, 8, 1)]), false, 'a decode beside it');
    await compute(row(5, 0, 8));
    await compute(row(5, 8, 4));
    assert.equal(main.lengthOf(5), 0);
    assert.equal(side.takes([row(5, 12, 250)]), false, 'more than there are cells');
  });

  test('a removal is about the cells that are here; without cells the place is free', async () => {
    assert.equal(side.apply({ kind: 'remove', sequence: 5, begin: 10, end: -1 }), true);
    assert.equal(aside.lengthOf(side.of(5)), 10);
    assert.equal(side.apply({ kind: 'remove', sequence: 5, begin: 0, end: -1 }), true);
    assert.equal(side.apply({ kind: 'remove', sequence: 5, begin: 0, end: -1 }), false);
  });

  test('who shares cells, on either side, has them with the others', async () => {
    await compute(row(7, 0, 8), row(8, 0, 6));
    assert.equal(side.apply({ kind: 'copy', from: 1, to: 7, begin: 8, end: 9 }), false);
    assert.equal(main.lengthOf(7), 8);
    assert.equal(side.apply({ kind: 'copy', from: 8, to: 1, begin: 0, end: 6 }), false);
    assert.equal(main.lengthOf(8), 6);
  });

  test('who is not in the step makes room for who is', async () => {
    await compute(row(9, 0, 8), row(10, 0, 8));
    await compute(row(10, 8, 8), row(11, 0, 8));
    assert.deepEqual([main.lengthOf(9), main.lengthOf(10), main.lengthOf(11)], [8, 0, 0]);
    side.moveOut(10);
    assert.equal(main.lengthOf(10), 16);
  });
});
