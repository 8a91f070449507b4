// One model in several contexts of libllama, without a server: which context a request goes to, who waits, and that all of it ends
// once. That the texts stay what they are in one context is in llama-engine.test.ts.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LlamaContext } from '../../src/backends/llama/library/context.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { writeTinyLlama } from '../support/gguf-models.ts';
import { loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createEngineKit, PROMPT } from '../support/llama-engine.ts';
import { waitUntil } from '../support/load.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;

describe('several contexts', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;
  let kit: ReturnType<typeof createEngineKit>;

  before(async () => {
    files = createRepository();
    const file = files.at('model.gguf');
    const vocabularyOf = 'file' in gguf ? gguf.file : '';
    writeTinyLlama(file, { vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 });
    model = await loadNativeModel(file);
    kit = createEngineKit(model);
  });

  after(() => {
    model?.free();
    files?.remove();
  });

  /** Sequences with cells in each of the contexts. */
  const spread = (contexts: readonly LlamaContext[]) =>
    contexts.map(
      (context) =>
        Array.from({ length: 32 }, (_, i) => context.lengthOf(i)).filter((length) => length > 0).length,
    );
  const long = (i: number) => kit.makeGeneration({ prompt: [...PROMPT, 100 + i], maxTokens: 900 });

  test('a few texts use few contexts, many use all', async () => {
    const { engine, contexts, reports, close } = kit.makeEngine({ contextCount: 4, keptCells: 0 });
    const submit = async (count: number) => {
      const all = Array.from({ length: count }, (_, i) => long(i));
      for (const generation of all) engine.submit(generation);
      // A text has a place when its prompt has cells.
      const isBegun = () => spread(contexts).reduce((sum, some) => sum + some) === count;
      assert.ok(await waitUntil(isBegun, 5000));
      const places = spread(contexts);
      for (const generation of all) engine.cancel(generation);
      for (const generation of all) generation.cancel();
      assert.ok(await waitUntil(() => spread(contexts).every((some) => some === 0), 5000));
      return places;
    };
    assert.deepEqual(await submit(1), [1, 0, 0, 0]);
    assert.deepEqual(await submit(4), [2, 2, 0, 0]);
    assert.deepEqual(await submit(9), [3, 3, 3, 0]);
    assert.deepEqual(await submit(16), [4, 4, 4, 4]);
    assert.deepEqual(await submit(32), [8, 8, 8, 8]);
    assert.ok(await waitUntil(() => reports.at(-1)!.stats.running === 0, 5000));
    kit.assertIdle(reports);
    await close();
  });

  test('who finds no place waits, the urgent first, and begins where one is free', async () => {
    const options = { contextCount: 3, runningMax: 2, waitingMax: 2 };
    const { engine, reports, close } = kit.makeEngine(options);
    const running = Array.from({ length: 6 }, (_, i) => long(i));
    for (const generation of running) engine.submit(generation);
    const later = kit.makeGeneration({ priority: 2, maxTokens: 2 });
    const sooner = kit.makeGeneration({ priority: 1, maxTokens: 2 });
    engine.submit(later);
    engine.submit(sooner);
    const refused = kit.makeGeneration();
    assert.throws(() => engine.submit(refused), {
      code: 'UNAVAILABLE',
      message: /^2 requests wait already; ask again later, or raise the parameter 'max_waiting'/,
    });
    const isFull = () => {
      const { running: runningCount, waiting } = reports.at(-1)?.stats ?? {};
      return runningCount === 6 && waiting === 2;
    };
    assert.ok(await waitUntil(isFull, 5000));
    const order: string[] = [];
    void sooner.ended.then(() => order.push('sooner'));
    void later.ended.then(() => order.push('later'));
    engine.cancel(running[3]!);
    running[3]!.cancel();
    await Promise.all([sooner.ended, later.ended]);
    assert.deepEqual(order, ['sooner', 'later']);
    assert.deepEqual([sooner.endCount, later.endCount, refused.endCount], [1, 1, 0]);
    await close();
  });

  test('who goes while it waits leaves no trace', async () => {
    const { engine, reports, close } = kit.makeEngine({ contextCount: 2, runningMax: 1 });
    const running = [long(0), long(1)];
    const waiting = [long(2), kit.makeGeneration({ maxTokens: 2 })];
    for (const generation of [...running, ...waiting]) engine.submit(generation);
    engine.cancel(waiting[0]!);
    waiting[0]!.cancel();
    engine.cancel(running[0]!);
    running[0]!.cancel();
    await waiting[1]!.ended;
    engine.cancel(running[1]!);
    running[1]!.cancel();
    assert.ok(await waitUntil(() => reports.at(-1)!.stats.running === 0, 5000));
    assert.deepEqual([waiting[0]!.startCount, waiting[1]!.startCount], [0, 1]);
    kit.assertIdle(reports);
    await close();
  });

  test('a conversation goes on where its cells are', async () => {
    const { engine, close } = kit.makeEngine({ contextCount: 2 });
    const talk = Array.from({ length: 200 }, (_, i) => 100 + i);
    const idle = long(1);
    // The first context is taken, so that the conversation begins in the second.
    const others = [long(2), long(3)];
    for (const generation of others) engine.submit(generation);
    const first = kit.makeGeneration({ prompt: talk, maxTokens: 3 });
    engine.submit(first);
    await first.ended;
    for (const generation of others) engine.cancel(generation);
    for (const generation of others) generation.cancel();
    engine.submit(idle);
    const second = kit.makeGeneration({ prompt: [...talk, 7, 8], maxTokens: 3 });
    engine.submit(second);
    await second.ended;
    assert.ok(second.cachedTokens >= 200, `${second.cachedTokens} tokens were there`);
    await close();
  });

  test('closing ends what runs and what waits, once', async () => {
    const { engine, close } = kit.makeEngine({ contextCount: 2, runningMax: 2 });
    const generations = Array.from({ length: 9 }, (_, i) => long(i));
    for (const generation of generations) engine.submit(generation);
    await sleep(15);
    await close();
    for (const { endCount, error } of generations) {
      assert.equal(endCount, 1);
      assert.equal(error?.message, 'the model is being unloaded');
    }
    assert.throws(() => engine.submit(kit.makeGeneration()), /the model is being unloaded/);
  });

  test('a prompt that no context can hold is refused at once', async () => {
    const { engine, close } = kit.makeEngine({ contextCount: 2, cellCount: 256, runningMax: 1 });
    const prompt = Array.from({ length: 300 }, (_, i) => 100 + (i % 300));
    for (const generation of [long(0), long(1)]) engine.submit(generation);
    assert.throws(() => engine.submit(kit.makeGeneration({ prompt })), /the KV cache has only 256 cells/);
    await close();
  });
});
