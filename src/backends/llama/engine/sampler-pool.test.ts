// Threads that choose tokens: the same as on the main thread, and what is left when one of them fails.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { StatusError } from '../../../domain/status.ts';
import { createPrng } from '../../../lib/prng.ts';
import { float32Array } from '../library/native-arrays.ts';
import { CandidateList } from './candidate-list.ts';
import { type PooledSampler, SamplerPool } from './sampler-pool.ts';
import type { SamplerWorkerData } from './sampler-pool-worker.ts';
import { type SamplerSpec, SamplerStep } from './sampler-step.ts';
import { type SamplerSettings, TokenSampler } from './token-sampler.ts';

const TOKENS = 700;
const STEPS = 12;

const PLAIN: SamplerSettings = {
  ...{ temperature: 1, topK: 0, topP: 1, minP: 0, typicalP: 1 },
  ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, penaltyLastTokens: 8 },
  logitBias: new Map(),
};
const SETTINGS: readonly Partial<SamplerSettings>[] = [
  {},
  { topK: 40, temperature: 0.7 },
  { topP: 0.9 },
  { minP: 0.05 },
  { typicalP: 0.8 },
  { repetitionPenalty: 1.4 },
  { presencePenalty: 1.5, frequencyPenalty: 0.5 },
  { temperature: 0, repetitionPenalty: 1.3 },
  { temperature: 0, logitBias: new Map([[5, 100]]) },
];

const specs: readonly SamplerSpec[] = SETTINGS.map((settings, i) => ({
  settings: { ...PLAIN, ...settings },
  prompt: [1, 2, 3, 650],
  seed: 100 + i,
}));

function fillRandomly(logits: Float32Array, seed: number): void {
  const prng = createPrng(seed);
  for (let i = 0; i < logits.length; i++) logits[i] = prng.float() * 12 - 6;
}

async function startPool(threadCount: number) {
  const errors: string[] = [];
  const logError = (message: string) => errors.push(message);
  const pool = await SamplerPool.start({ threadCount, tokenCount: TOKENS, rowsMax: 16, logError });
  return { pool, errors };
}

/** One step with these samplers; undefined for those that the main thread has to serve. */
function step(
  pool: SamplerPool,
  samplers: readonly PooledSampler[],
  memory: { readonly values: Float32Array; readonly address: bigint },
): (number | StatusError | undefined)[] {
  const rows = samplers.map((sampler, output) => pool.add(sampler, output));
  pool.begin({ address: memory.address, outputCount: samplers.length });
  pool.finish();
  return rows.map((row) => (row === undefined ? undefined : pool.tokenOf(row)));
}

describe('a sampler pool', () => {
  test('chooses what samplers on this thread choose, step by step', async () => {
    const { pool, errors } = await startPool(2);
    const candidates = new CandidateList(TOKENS);
    const own = specs.map(
      ({ settings, prompt, seed }) => new TokenSampler(settings, prompt, createPrng(seed), candidates),
    );
    const pooled = specs.map((spec) => pool.create(spec));
    const memory = float32Array(TOKENS * specs.length);
    const plain = new Float32Array(TOKENS * specs.length);
    let pooledTokens = 0;
    for (let i = 0; i < STEPS; i++) {
      // The same in all steps, so that penalties decide what comes next.
      fillRandomly(memory.values, 1);
      fillRandomly(plain, 1);
      step(pool, pooled, memory).forEach((token, row) => {
        const expected = own[row]!.choose(plain.subarray(row * TOKENS, (row + 1) * TOKENS));
        own[row]!.accept(expected);
        if (token === undefined) return;
        pooledTokens++;
        assert.equal(token, expected, `step ${i}, row ${row}`);
      });
    }
    // Nine samplers on three lanes, one of which is the main thread.
    assert.equal(pooledTokens, STEPS * 6);
    for (const sampler of pooled) sampler.free();
    await pool.close();
    assert.deepEqual(errors, []);
  });

  test('the first request stays on the main thread, and places of those that left are taken', async () => {
    const { pool } = await startPool(1);
    const memory = float32Array(TOKENS * 2);
    fillRandomly(memory.values, 1);
    const first = pool.create(specs[0]!);
    assert.deepEqual(step(pool, [first], memory), [undefined]);
    for (let i = 0; i < 5; i++) {
      const second = pool.create(specs[1]!);
      const [, token] = step(pool, [first, second], memory);
      assert.equal(typeof token, 'number');
      assert.equal(second.id, 0);
      second.free();
    }
    first.free();
    assert.deepEqual(step(pool, [pool.create(specs[2]!)], memory), [undefined]);
    await pool.close();
  });

  test('rows beyond the ones of the last view are seen', async () => {
    const { pool } = await startPool(1);
    const memory = float32Array(TOKENS * 3);
    fillRandomly(memory.values, 1);
    const greedy = { ...specs[0]!, settings: { ...PLAIN, temperature: 0 } };
    const samplers = [greedy, greedy, greedy].map((spec) => pool.create(spec));
    step(pool, samplers.slice(0, 2), memory);
    memory.values[TOKENS * 2 + 77] = 50;
    memory.values[TOKENS + 33] = 50;
    const other = pool.create(greedy);
    step(pool, [samplers[0]!, samplers[1]!, samplers[2]!], memory);
    const last = step(pool, [samplers[0]!, samplers[1]!, other], memory);
    assert.deepEqual(last.slice(1), [33, 77]);
    await pool.close();
  });

  test('a thread that fails costs those that it has begun; others go on here', async () => {
    const { pool, errors } = await startPool(1);
    const memory = float32Array(TOKENS * 2);
    fillRandomly(memory.values, 1);
    const main = pool.create(specs[0]!);
    const wrong = { ...specs[1]!, settings: undefined as unknown as SamplerSettings };
    const [mine, theirs] = step(pool, [main, pool.create(wrong)], memory);
    assert.equal(mine, undefined);
    assert.ok(theirs instanceof StatusError);
    assert.match(theirs.message, /^a sampler thread of the model has failed: /);
    assert.equal(pool.isOpen, false);
    assert.deepEqual(step(pool, [main, pool.create(specs[2]!)], memory), [undefined, undefined]);
    await pool.close();
    assert.ok(errors.length >= 1, 'the failure is logged');
  });

  test('after it is closed, who begins is served on the main thread', async () => {
    const { pool, errors } = await startPool(2);
    await pool.close();
    assert.equal(pool.isOpen, false);
    const samplers = [specs[0]!, specs[1]!].map((spec) => pool.create(spec));
    assert.deepEqual(step(pool, samplers, float32Array(TOKENS * 2)), [undefined, undefined]);
    assert.deepEqual(errors, [], 'an end that was asked for is no error');
  });

  // What it meets when `notify` comes late: it has seen the new number, has served it, and sleeps again.
  test('a thread that is woken without a new step sleeps on', async () => {
    const shared = SamplerStep.create(1);
    const workerData: SamplerWorkerData = { buffer: shared.buffer, worker: 0, tokenCount: TOKENS };
    const worker = new Worker(new URL('./sampler-pool-worker.js', import.meta.url), { workerData });
    try {
      await once(worker, 'message');
      const words = new Int32Array(shared.buffer);
      const notifyAll = () => words.reduce((woken, _, i) => woken + Atomics.notify(words, i), 0);
      for (let i = 0; i < 20; i++) {
        while (notifyAll() === 0) await sleep(1);
      }
      assert.ok(shared.isDone, 'it has reported nothing');
    } finally {
      await worker.terminate();
    }
  });

  test('a thread that never answers is waited for only so long', () => {
    const shared = SamplerStep.create(1);
    shared.setRows([{ worker: 0, id: 0, output: 0 }], { address: 0n, outputCount: 1 });
    shared.wake(new Set([0]));
    assert.equal(shared.waitUntilDone(20), false);
    shared.reportDone(false);
    assert.equal(shared.waitUntilDone(20), true);
    assert.equal(shared.isFailed, false);
  });
});
