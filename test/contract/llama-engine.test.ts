// The engine with a real context of libllama and without a server: every generation ends exactly once, whatever is cancelled
// while a step computes, and closing waits for the step. Embeddings beside it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddingEngine } from '../../src/backends/llama/engine/embedding-engine.ts';
import type { LlamaContext } from '../../src/backends/llama/library/context.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { createPrng } from '../../src/lib/prng.ts';
import { ENCODER, writeEncoder, writeTinyLlama } from '../support/gguf-models.ts';
import { createNativeContext, loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createEngineKit, EXACT, type Noted, PROMPT, SIDE_SEQUENCES } from '../support/llama-engine.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';

describe('the engine', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;
  let makeEngine: ReturnType<typeof createEngineKit>['makeEngine'];
  let makeGeneration: ReturnType<typeof createEngineKit>['makeGeneration'];
  let assertIdle: ReturnType<typeof createEngineKit>['assertIdle'];

  before(async () => {
    files = createRepository();
    const file = files.at('model.gguf');
    writeTinyLlama(file, { vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 });
    model = await loadNativeModel(file);
    ({ makeEngine, makeGeneration, assertIdle } = createEngineKit(model));
  });

  after(() => {
    model?.free();
    files?.remove();
  });

  test('generations end once, with their tokens, alone and together', async () => {
    const { engine, reports, close } = makeEngine();
    const first = makeGeneration();
    engine.submit(first);
    await first.ended;
    assert.equal(first.choices[0]!.tokens.length, 12);
    const others = Array.from({ length: 20 }, () => makeGeneration());
    for (const generation of others) engine.submit(generation);
    await Promise.all(others.map(({ ended }) => ended));
    for (const generation of others) {
      assert.equal(generation.text, first.text);
      assert.equal(generation.endCount, 1);
      assert.equal(generation.startCount, 1);
    }
    await sleep(20);
    assertIdle(reports);
    await close();
  });

  const ways = {
    'without proposals': {},
    'with a draft': { isDrafting: true },
    'with a draft, greedy tokens chosen by the library': { isDrafting: true, isDeviceSampling: true },
    'prompts in a context of their own': { asideRows: 4 },
    'the same with a draft': { asideRows: 4, isDrafting: true },
    'as on a device, where who leaves keeps a row': { hasDevice: true },
    'the same, greedy tokens chosen by the library': { hasDevice: true, isDeviceSampling: true },
    'in three contexts': { contextCount: 3 },
    'in three contexts, as on a device': { contextCount: 3, hasDevice: true, isDeviceSampling: true },
  };
  for (const [way, options] of Object.entries(ways)) {
    test(`random cancels leave every other text as it is, and no cell: ${way}`, async () => {
      const plain = makeEngine();
      const { engine, reports, close } = makeEngine({ cellCount: 256, ...options });
      const prng = createPrng(17);
      const grammar = 'root ::= [a-z ]+';
      const makeCase = (i: number) => {
        const prompt = [
          // Half of them begin alike.
          ...(i % 2 === 0 ? [] : [200 + i]),
          ...PROMPT.slice(0, 1 + (i % 4)),
          ...Array.from({ length: i % 7 }, (_, k) => 100 + i + k),
        ];
        const kind = i % 3;
        const extra = kind === 0 ? {} : kind === 1 ? { grammar } : { seed: i, n: 2 };
        return { prompt, maxTokens: 4 + (i % 20), isDrafted: 'isDrafting' in options, ...extra };
      };
      const expected: string[] = [];
      for (let i = 0; i < 24; i++) {
        const generation = makeGeneration({ ...makeCase(i), isDrafted: false });
        plain.engine.submit(generation);
        await generation.ended;
        assert.equal(generation.error, undefined);
        expected.push(generation.text);
      }
      await plain.close();
      const generations = Array.from({ length: 72 }, (_, i) => makeGeneration(makeCase(i % 24)));
      const cancelled = new Set<Noted>();
      const leaving: Promise<void>[] = [];
      for (const generation of generations) {
        engine.submit(generation);
        if (!prng.boolean(0.4)) continue;
        cancelled.add(generation);
        leaving.push(
          sleep(prng.integer(0, 60)).then(() => {
            if (generation.isOver) return void cancelled.delete(generation);
            engine.cancel(generation);
            generation.cancel();
          }),
        );
      }
      await Promise.all([...leaving, ...generations.map(({ ended }) => ended)]);
      await sleep(20);
      for (const [i, generation] of generations.entries()) {
        assert.equal(generation.endCount, 1);
        if (!cancelled.has(generation)) assert.equal(generation.text, expected[i % 24], `case ${i % 24}`);
      }
      assert.ok(cancelled.size > 0 && cancelled.size < generations.length, `${cancelled.size} cancelled`);
      assertIdle(reports);
      await close();
    });
  }

  test('a long prompt is computed aside, and its cells move to the others when it goes on', async () => {
    const { engine, context, side, reports, close } = makeEngine({ asideRows: 32 });
    const occupied = (of: LlamaContext, count: number) =>
      Array.from({ length: count }, (_, sequence) => of.lengthOf(sequence)).filter((length) => length > 0);
    const generate = async (options: Parameters<typeof makeGeneration>[0]) => {
      const generation = makeGeneration(options);
      engine.submit(generation);
      await generation.ended;
      await sleep(20);
      return generation.choices[0]!.tokens;
    };
    const long = Array.from({ length: 40 }, (_, i) => 100 + i);
    await generate({ prompt: long, maxTokens: 1 });
    assert.deepEqual([occupied(side!, SIDE_SEQUENCES), occupied(context, 32)], [[40], []]);
    // What is kept of it is shared, so it must be where all are.
    const again = await generate({ prompt: [...long, 7], maxTokens: 6 });
    assert.deepEqual(occupied(side!, SIDE_SEQUENCES), []);
    assert.equal(reports.at(-1)!.stats.promptTokensReused, 40);
    // Longer than the context that is aside: it goes on with the others.
    const longer = Array.from({ length: 300 }, (_, i) => 60 + i);
    const end = await generate({ prompt: longer, maxTokens: 6 });
    assert.deepEqual(occupied(side!, SIDE_SEQUENCES), []);
    await close();
    const plain = makeEngine();
    for (const [prompt, tokens] of [
      [[...long, 7], again],
      [longer, end],
    ] as const) {
      const alone = makeGeneration({ prompt, maxTokens: 6 });
      plain.engine.submit(alone);
      await alone.ended;
      assert.deepEqual(alone.choices[0]!.tokens, tokens);
    }
    await plain.close();
  });

  test('on a device who leaves keeps a row for a while, and nothing of it stays', async () => {
    const outcomeOf = async (hasDevice: boolean) => {
      const { engine, context, close } = makeEngine({ hasDevice, keptCells: 0 });
      const all = Array.from({ length: 20 }, (_, i) =>
        makeGeneration({ prompt: [...PROMPT, 100 + i], maxTokens: 4 + 3 * i, ...(i % 2 ? { seed: i } : {}) }),
      );
      for (const generation of all) engine.submit(generation);
      await Promise.all(all.map(({ ended }) => ended));
      await sleep(20);
      const lengths = Array.from({ length: 32 }, (_, sequence) => context.lengthOf(sequence));
      await close();
      return { texts: all.map(({ text }) => text), lengths };
    };
    assert.deepEqual(await outcomeOf(true), await outcomeOf(false));
  });

  test('a text that fills its context forgets a part of it and goes on as if that had never been', async () => {
    const shifting = makeEngine({ contextLength: 32 });
    const long = makeGeneration({ maxTokens: 80 });
    const others = Array.from({ length: 5 }, (_, i) => makeGeneration({ prompt: [90 + i], maxTokens: 70 }));
    for (const generation of [long, ...others]) shifting.engine.submit(generation);
    await Promise.all([long, ...others].map(({ ended }) => ended));
    assert.equal(long.choices[0]!.tokens.length, 80);
    assert.ok(shifting.reports.at(-1)!.stats.contextShifts >= 12);
    await sleep(20);
    assertIdle(shifting.reports);
    await shifting.close();
    // 5 of the prompt and 27 more: the older 14 of these go, and there is room for 14 until the next shift.
    const { tokens } = long.choices[0]!;
    const { engine, close } = makeEngine();
    const rest = makeGeneration({ prompt: [...PROMPT, ...tokens.slice(14, 27)], maxTokens: 14 });
    engine.submit(rest);
    await rest.ended;
    assert.deepEqual(rest.choices[0]!.tokens, tokens.slice(27, 41));
    await close();
  });

  test('closing in the middle of a step ends what runs and what waits, once', async () => {
    const { engine, close } = makeEngine({ runningMax: 2 });
    const generations = Array.from({ length: 6 }, () => makeGeneration({ maxTokens: 500 }));
    for (const generation of generations) engine.submit(generation);
    await sleep(15);
    await close();
    for (const { endCount, error } of generations) {
      assert.equal(endCount, 1);
      assert.equal(error?.message, 'the model is being unloaded');
    }
    assert.throws(() => engine.submit(makeGeneration()), /the model is being unloaded/);
  });

  test('a generation that cannot be answered costs no other', async () => {
    const { engine, close } = makeEngine();
    const good = makeGeneration({ maxTokens: 30 });
    const bad = makeGeneration({ maxTokens: 30 });
    bad.onNews = () => {
      throw new Error('no way');
    };
    engine.submit(bad);
    engine.submit(good);
    await Promise.all([good.ended, bad.ended]);
    assert.equal(good.error, undefined);
    assert.equal(good.choices[0]!.tokens.length, 30);
    assert.match(bad.error?.message ?? '', /no way/);
    assert.equal(bad.endCount, 1);
    await close();
  });

  test('a full queue and a prompt that can never fit are refused, and leave nothing behind', async () => {
    const { engine, reports, close } = makeEngine({ cellCount: 256, waitingMax: 3 });
    const long = makeGeneration({ prompt: Array.from({ length: 300 }, () => 40) });
    assert.throws(() => engine.submit(long), {
      code: 'INVALID_ARG',
      message: /has 300 tokens, but the KV cache has only 256/,
    });
    const many = makeGeneration({ n: 5 });
    assert.throws(() => engine.submit(many), { code: 'UNAVAILABLE', message: /3 requests wait already/ });
    const next = makeGeneration();
    engine.submit(next);
    await next.ended;
    await sleep(20);
    assertIdle(reports);
    await close();
  });

  test('embeddings: closing rejects what waits, and what nobody wants is not computed', async () => {
    const file = files.at('encoder.gguf');
    writeEncoder(file, { pooling: 'mean', seed: 1 });
    const encoder = await loadNativeModel(file);
    const context = createNativeContext(encoder, {
      ...EXACT,
      isEmbedding: true,
      cellCount: 64,
      stepTokensMax: 64,
      sequenceCount: 4,
    });
    const engine = new EmbeddingEngine({
      ...{
        context,
        batchTokensMax: 64,
        sequencesMax: 4,
        waitingMax: 100,
        outputLength: ENCODER.vectorLength,
      },
    });
    const always = () => true;
    const inputs = Array.from({ length: 10 }, (_, i) => [2, 10 + i, 3]);
    let isWanted = true;
    const wanted = engine.compute(inputs, always);
    const unwanted = engine.compute(inputs, () => isWanted);
    isWanted = false;
    await assert.rejects(unwanted, { code: 'CANCELLED' });
    const vectors = await wanted;
    assert.equal(new Set(vectors.map((vector) => vector.join())).size, 10);
    const running = engine.compute(inputs, always);
    const refused = assert.rejects(running, /the model is being unloaded/);
    await Promise.all([refused, engine.close()]);
    assert.throws(() => engine.compute(inputs, always), /the model is being unloaded/);
    encoder.free();
  });
});
