// The engine with threads that choose tokens, without a server: requests handed over at once get the same tokens as without
// those threads, and a thread that fails costs the requests that it had begun and no others.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CandidateList } from '../../src/backends/llama/engine/candidate-list.ts';
import { Choice } from '../../src/backends/llama/engine/choice.ts';
import { Engine } from '../../src/backends/llama/engine/engine.ts';
import type { Generation } from '../../src/backends/llama/engine/generation.ts';
import { SamplerPool } from '../../src/backends/llama/engine/sampler-pool.ts';
import { type SamplerSettings, TokenSampler } from '../../src/backends/llama/engine/token-sampler.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import type { StatusError } from '../../src/domain/status.ts';
import { createPrng } from '../../src/lib/prng.ts';
import { writeTinyLlama } from '../support/gguf-models.ts';
import { createNativeContext, loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';
const TOKENS = 512;
const TOKENS_MAX = 20;
const THREADS = 2;
const CELLS = 1024;

const PLAIN: SamplerSettings = {
  ...{ temperature: 1, topK: 0, topP: 1, minP: 0, typicalP: 1 },
  ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, penaltyLastTokens: -1 },
  logitBias: new Map(),
};
const SETTINGS: readonly SamplerSettings[] = [
  {},
  { topK: 20, temperature: 0.7 },
  { topP: 0.8 },
  { minP: 0.1 },
  { repetitionPenalty: 1.5 },
  { presencePenalty: 1, frequencyPenalty: 0.5 },
  { temperature: 0, repetitionPenalty: 1.3 },
  { temperature: 0, logitBias: new Map([[7, 2]]), presencePenalty: 1 },
].map((settings) => ({ ...PLAIN, ...settings }));

interface Ended {
  readonly tokens: readonly number[];
  readonly error: StatusError | undefined;
}

describe('an engine with sampler threads', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;

  before(async () => {
    files = createRepository();
    const file = files.at('model.gguf');
    writeTinyLlama(file, { vocabularyOf, layerCount: 2, tokenCount: TOKENS, seed: 1 });
    model = await loadNativeModel(file);
  });
  after(() => {
    model?.free();
    files?.remove();
  });

  const startPool = (errors: string[] = []) =>
    SamplerPool.start({
      threadCount: THREADS,
      tokenCount: TOKENS,
      rowsMax: 16,
      logError: (message) => errors.push(message),
    });

  function makeEngine(pool: SamplerPool | undefined) {
    const context = createNativeContext(model, {
      ...{ cacheTypeK: 'f32', cacheTypeV: 'f32', threadCount: 1, batchThreadCount: 1 },
      ...{ cellCount: CELLS, sequenceCount: 16, stepTokensMax: 64 },
    });
    const engine = new Engine({
      context,
      limits: {
        ...{
          cellCount: CELLS,
          sequenceCount: 16,
          stepTokensMax: 64,
          prefillChunkMax: 32,
          apartRowsMin: 64,
          runningMax: 16,
        },
        ...{ waitingMax: 100, contextLength: CELLS, isContextShift: false },
        ...{ isPrefixReuse: false, keptCellsMax: 0, keptCellsMin: 0 },
      },
      ...{ adapters: [], isDeviceSampling: false, pool, drafter: undefined },
      ...{ draftTokens: 3, draftSequencesMax: 4 },
      onStep: () => {},
      warn: (message) => assert.fail(message),
    });
    const close = async () => {
      await engine.close();
      await pool?.close();
      context.free();
    };
    return { engine, close };
  }

  /** `sent`: what the pool is told of the sampler, where that is to be something else. */
  function generate(
    engine: Engine,
    pool: SamplerPool | undefined,
    index: number,
    sent: SamplerSettings = SETTINGS[index]!,
  ): Promise<Ended> {
    const prompt = [40 + index, 50, 60, 70 + index];
    const seed = 300 + index;
    const sampler = new TokenSampler(SETTINGS[index]!, prompt, createPrng(seed), new CandidateList(TOKENS));
    const choice = new Choice(
      model,
      {
        ...{ maxTokens: TOKENS_MAX, minTokens: 0, stop: [], isStopIncluded: false, stopTokens: new Set() },
        ...{ isEndIgnored: true, isSpecialShown: true, logprobCount: undefined, isLookup: false },
      },
      prompt,
      { sampler, grammar: undefined, pooled: pool?.create({ settings: sent, prompt, seed }) },
    );
    return new Promise((resolve) => {
      const end = (error: StatusError | undefined) => {
        choice.free();
        resolve({ tokens: choice.tokens, error });
      };
      const generation: Generation = {
        ...{ prompt, choices: [choice], adapter: 0, priority: 0, maxTokens: TOKENS_MAX, isDrafted: false },
        onStarted: () => {},
        onNews: () => {
          if (choice.finishReason !== undefined) end(undefined);
        },
        onError: end,
      };
      engine.submit(generation);
    });
  }

  const generateAll = (engine: Engine, pool: SamplerPool | undefined) =>
    Promise.all(SETTINGS.map((_, i) => generate(engine, pool, i)));

  test('requests at once get the tokens that they get without threads', async () => {
    const alone = makeEngine(undefined);
    const expected = await generateAll(alone.engine, undefined);
    await alone.close();
    const pool = await startPool();
    const { engine, close } = makeEngine(pool);
    const ended = await generateAll(engine, pool);
    await close();
    assert.deepEqual(ended, expected);
    assert.ok(ended.every(({ tokens }) => tokens.length === TOKENS_MAX));
  });

  test('a thread that fails costs what it had begun; the rest, and what comes later, is answered', async () => {
    const errors: string[] = [];
    const pool = await startPool(errors);
    const { engine, close } = makeEngine(pool);
    const broken = null as unknown as SamplerSettings;
    // In this order they are on the main thread, on the first and on the second.
    const first = await Promise.all([
      generate(engine, pool, 0),
      generate(engine, pool, 1),
      generate(engine, pool, 2, broken),
    ]);
    assert.equal(first[0].error, undefined);
    assert.equal(first[0].tokens.length, TOKENS_MAX);
    for (const { error, tokens } of first.slice(1)) {
      assert.match(error?.message ?? '', /^a sampler thread of the model has failed: /);
      assert.equal(tokens.length, 0);
    }
    assert.ok(errors.length > 0, 'it is logged');
    const later = await generateAll(engine, pool);
    assert.deepEqual(
      later.map(({ tokens, error }) => [tokens.length, error]),
      SETTINGS.map(() => [TOKENS_MAX, undefined]),
    );
    await close();
  });
});
