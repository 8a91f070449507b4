// The binding of libllama with the real library: layout, vocabulary, cells, grammars, and the reasons of failed loads.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { checkLayout } from '../../src/backends/llama/library/check-layout.ts';
import { CandidateMemory, GrammarConstraint } from '../../src/backends/llama/library/grammar.ts';
import { LIBRARY_VERSION } from '../../src/backends/llama/library/libllama.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { readGguf, textValue, writeGguf } from '../support/gguf-file.ts';
import { writeEncoder, writeTinyLlama } from '../support/gguf-models.ts';
import { createNativeContext, loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';
const PLAIN = { isSpecialAdded: false, isSpecialParsed: false };
const EXACT = { cacheTypeK: 'f32', cacheTypeV: 'f32', threadCount: 1, batchThreadCount: 1 } as const;

describe('libllama', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;

  before(async () => {
    files = createRepository();
    writeTinyLlama(files.at('tiny.gguf'), { vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 });
    model = await loadNativeModel(files.at('tiny.gguf'));
  });

  after(() => {
    model?.free();
    files?.remove();
  });

  test('is the release whose structures are known', () => {
    const { library } = model;
    assert.ok(library.version.startsWith(LIBRARY_VERSION));
    assert.ok(library.devices.some(({ kind }) => kind === 'CPU'));
    checkLayout(library.functions, library.directory);
  });

  test('a library whose defaults differ is refused, and the field is named', () => {
    const { functions } = model.library;
    const moved = Object.assign(() => ({ ...functions.llama_context_default_params(), n_ubatch: 64 }), {
      async: functions.llama_context_default_params.async,
    });
    assert.throws(
      () => checkLayout({ ...functions, llama_context_default_params: moved }, 'there'),
      /libllama in there is not the release .*\(llama_context_params\.n_ubatch is 64, not 512\)/,
    );
  });

  test('text to tokens and back, with special tokens or without', () => {
    const text = 'Hello <|im_end|> wörld €';
    const parsed = model.tokenize(text, { isSpecialAdded: true, isSpecialParsed: true });
    const plain = model.tokenize(text, PLAIN);
    assert.ok(parsed.includes(2) && !plain.includes(2));
    const join = (tokens: readonly number[]) =>
      Buffer.concat(tokens.map((token) => model.piece(token, true))).toString();
    assert.equal(join(parsed), text);
    assert.equal(join(plain), text);
    assert.equal(model.piece(2, false).length, 0);
    assert.equal(model.piece(2, true).toString(), '<|im_end|>');
    assert.equal(model.piece(99_999, true).length, 0);
    assert.deepEqual(model.tokenize('', PLAIN), []);
    const long = 'a '.repeat(9000);
    assert.equal(join(model.tokenize(long, PLAIN)), long, 'longer than the first guess');
  });

  test('facts of a model file', () => {
    assert.equal(model.tokenCount, 512);
    assert.equal(model.trainedContextLength, 2048);
    assert.equal(model.embeddingLength, 64);
    assert.equal(model.metadata('general.architecture'), 'llama');
    assert.equal(model.metadata('no.such.key'), undefined);
    assert.ok(model.endTokens.includes(2));
    assert.match(model.chatTemplate ?? '', /im_start/);
    assert.equal(model.templateNamed('rerank'), undefined);
    assert.equal(model.isRecurrent, false);
    assert.ok(model.byteLength > 100_000);
  });

  test('cells can be shared, cut and cleared: the logits are those of the whole text', async () => {
    const context = createNativeContext(model, { ...EXACT, cellCount: 256, sequenceCount: 3 });
    const text = [40, 50, 60, 70, 80];
    const logitsAfter = async (tokens: readonly number[], from: number, sequence: number) => {
      context.beginBatch();
      for (let i = from; i < tokens.length; i++)
        context.addRow(tokens[i]!, i, sequence, i === tokens.length - 1);
      assert.equal(await context.decode(), 0);
      await context.finishCompute();
      context.readLogits();
      return Array.from(context.logitsOf(0));
    };
    const whole = await logitsAfter(text, 0, 0);
    context.shareCells(0, 1, 0, 4);
    assertNear(await logitsAfter(text, 4, 1), whole);
    const other = await logitsAfter([40, 50, 61, 71, 81], 0, 2);
    assert.ok(context.removeCells(2, 2, -1));
    assertNear(await logitsAfter(text, 2, 2), whole);
    assert.notDeepEqual(other, whole);
    context.clearCells();
    assertNear(await logitsAfter(text, 0, 2), whole);
    context.free();
  });

  test('a batch that has no cells left says so and changes nothing', async () => {
    const context = createNativeContext(model, { ...EXACT, cellCount: 256, sequenceCount: 2 });
    const decode = async (count: number, sequence: number, from = 0) => {
      context.beginBatch();
      for (let i = 0; i < count; i++) context.addRow(40, from + i, sequence, false);
      return context.decode();
    };
    assert.equal(await decode(200, 0), 0);
    assert.equal(await decode(100, 1), 1);
    assert.equal(await decode(50, 1), 0);
    assert.equal(await decode(50, 0, 200), 1);
    context.removeCells(1, 0, -1);
    assert.equal(await decode(50, 0, 200), 0);
    context.free();
  });

  test('a grammar allows what fits, token after token', () => {
    const scratch = new CandidateMemory(model.tokenCount);
    const grammar = new GrammarConstraint(model, 'root ::= "ab" [0-9]', scratch);
    const tokenOf = (text: string) => {
      const [token, ...more] = model.tokenize(text, PLAIN);
      assert.equal(more.length, 0, `${text} is one token`);
      return token!;
    };
    const [a, b, nine, end] = [tokenOf('a'), tokenOf('b'), tokenOf('9'), 2];
    assert.deepEqual(
      [a, b, nine, end].map((token) => grammar.allows(token)),
      [true, false, false, false],
    );
    const logits = new Float32Array(model.tokenCount).fill(1);
    grammar.mask(logits);
    assert.ok(logits[a] === 1 && logits[b] === Number.NEGATIVE_INFINITY);
    grammar.accept(a);
    grammar.accept(b);
    assert.deepEqual(
      [a, nine, end].map((token) => grammar.allows(token)),
      [false, true, false],
    );
    grammar.accept(nine);
    assert.deepEqual(
      [nine, end].map((token) => grammar.allows(token)),
      [false, true],
    );
    grammar.free();
    assert.throws(() => new GrammarConstraint(model, 'root ::= missing', scratch), { code: 'INVALID_ARG' });
  });

  test('files that cannot be loaded are refused with the reason', async () => {
    const at = (name: string) => files.at(name);
    writeFileSync(at('text.gguf'), 'this is no model');
    const whole = readGguf(at('tiny.gguf'));
    writeGguf(at('strange.gguf'), {
      ...whole,
      metadata: new Map([...whole.metadata, ['general.architecture', textValue('abacus')]]),
    });
    writeGguf(at('short.gguf'), {
      ...whole,
      tensors: whole.tensors.filter(({ name }) => name !== 'blk.1.attn_q.weight'),
    });
    const refused = (name: string, reason: RegExp) =>
      assert.rejects(loadNativeModel(at(name)), (error: Error) => {
        assert.match(error.message, /\.gguf cannot be loaded: /);
        assert.match(error.message, reason);
        return true;
      });
    await refused('text.gguf', /magic/);
    await refused('strange.gguf', /abacus/);
    await refused('short.gguf', /blk\.1\.attn_q\.weight/);
    await refused('nowhere.gguf', /./);
    assert.throws(
      () => model.loadAdapter(at('tiny.gguf')),
      /LoRA adapter .* cannot be loaded: .*general\.type/,
    );
  });

  test('an encoder has no cells to clear, and says how it pools', async () => {
    writeEncoder(files.at('encoder.gguf'), { pooling: 'cls', seed: 1 });
    const encoder = await loadNativeModel(files.at('encoder.gguf'));
    const context = createNativeContext(encoder, {
      ...EXACT,
      isEmbedding: true,
      cellCount: 64,
      stepTokensMax: 64,
    });
    context.clearCells();
    assert.equal(context.pooling, 'cls');
    assert.deepEqual(
      [encoder.isBeginAdded, encoder.isEndAdded, encoder.isSeparatorAdded],
      [true, false, true],
    );
    context.free();
    encoder.free();
  });
});

function assertNear(actual: readonly number[], expected: readonly number[]): void {
  for (const [i, value] of actual.entries()) {
    assert.ok(Math.abs(value - expected[i]!) < 1e-4, `[${i}] is ${value}, not ${expected[i]}`);
  }
}
