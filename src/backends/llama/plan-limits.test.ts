// How large a model's parts are: from the settings, else from the file, and what does not fit together.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LlamaSettings } from './llama-settings.ts';
import { type DeviceFacts, type ModelFacts, planLimits, planSamplerThreads } from './plan-limits.ts';

const SETTINGS: LlamaSettings = {
  ...{
    modelFile: '',
    contextLength: undefined,
    isContextShift: false,
    kvCells: undefined,
    contextCount: undefined,
    maxRunning: 64,
    maxWaiting: 10,
  },
  ...{
    stepTokens: undefined,
    prefillChunk: 256,
    promptCells: undefined,
    threads: undefined,
    batchThreads: undefined,
    coreCount: 6,
    callThreads: 1,
    isPrefixCache: true,
  },
  ...{
    prefixCacheCells: undefined,
    isDeviceSampling: undefined,
    samplerThreads: undefined,
    gpuLayers: 0,
    splitMode: 'layer',
    mainGpu: 0,
    tensorSplit: [],
  },
  ...{ cacheTypeK: 'f16', cacheTypeV: 'f16', flashAttention: 'auto', draftFile: undefined, draftTokens: 5 },
  ...{ draftSequencesMax: 4, speculative: 'off', adapters: [], chatTemplateFile: undefined },
  ...{ pooling: 'unspecified', isEmbedding: false, isMemoryMapped: true, isMemoryLocked: false },
};
const CPU: DeviceFacts = { devices: [{ name: 'CPU', description: '', kind: 'CPU', pointer: 1n }] };
const GPU: DeviceFacts = {
  devices: [...CPU.devices, { name: 'GPU0', description: '', kind: 'GPU', pointer: 2n }],
};

function plan(
  settings: Partial<LlamaSettings> = {},
  model: Partial<ModelFacts> & { readonly values?: Readonly<Record<string, string>> } = {},
  devices: DeviceFacts = CPU,
) {
  const values: Readonly<Record<string, string>> = { 'general.architecture': 'llama', ...model.values };
  const facts = {
    ...{ hasDecoder: true, trainedContextLength: 131_072, isRecurrent: false, hasSlidingWindow: false },
    ...model,
  };
  return planLimits({ ...facts, metadata: (key) => values[key] }, { ...SETTINGS, ...settings }, devices);
}

describe('limits of a model', () => {
  test('a CPU computes with every core, a GPU that has all layers leaves nothing for a second thread', () => {
    const threadsOf = (settings: Partial<LlamaSettings>, devices: DeviceFacts) => {
      const { threads, batchThreads } = plan(settings, { values: { 'llama.block_count': '30' } }, devices);
      return [threads, batchThreads];
    };
    assert.deepEqual(threadsOf({}, CPU), [6, 6]);
    assert.deepEqual(threadsOf({ gpuLayers: -1 }, CPU), [6, 6]);
    assert.deepEqual(threadsOf({ gpuLayers: -1 }, GPU), [1, 1]);
    assert.deepEqual(threadsOf({ gpuLayers: 31 }, GPU), [1, 1]);
    assert.deepEqual(threadsOf({ gpuLayers: 30 }, GPU), [6, 6]);
    assert.deepEqual(threadsOf({ gpuLayers: -1, threads: 4 }, GPU), [4, 4]);
    assert.deepEqual(threadsOf({ gpuLayers: 20, threads: 4, batchThreads: 8 }, GPU), [4, 8]);
  });

  test('a long context is bounded, a short one is taken as it is', () => {
    assert.equal(plan().contextLength, 8192);
    assert.ok(plan().cellCount >= 8192);
    assert.equal(plan({}, { trainedContextLength: 2048 }).contextLength, 2048);
    const long = plan({ contextLength: 100_000 });
    assert.equal(long.contextLength, 100_000);
    assert.ok(long.cellCount >= 100_000, 'one request fits');
  });

  test('few cells make a short context, unless the config asks for a longer one', () => {
    assert.equal(plan({ kvCells: 300 }).contextLength, 300);
    assert.throws(
      () => plan({ kvCells: 300, contextLength: 400 }),
      /kv_cells is 300, less than context_length 400: one request could not be finished/,
    );
  });

  test('a step has a row for every running request', () => {
    assert.equal(plan({ stepTokens: 16 }).runningMax, 16);
    assert.equal(plan({ stepTokens: 16 }).prefillChunk, 16);
    assert.equal(plan({ isPrefixCache: false }).sequenceCount, 64);
    assert.ok(plan().sequenceCount > 64, 'kept prefixes have ids of their own');
  });

  test('a GPU has larger steps, and what bounds the chunks of a prompt is their time', () => {
    const { stepTokens, prefillChunk } = plan({ gpuLayers: -1, prefillChunk: undefined }, {}, GPU);
    assert.deepEqual({ stepTokens, prefillChunk }, { stepTokens: 2048, prefillChunk: 2048 });
    assert.equal(plan({ prefillChunk: undefined }).stepTokens, 512);
    assert.equal(plan({ prefillChunk: undefined }).prefillChunk, 128);
  });

  test('on a GPU every sequence has two ids, of which libllama has 256', () => {
    const { isDeviceSampling, sequenceCount, runningMax } = plan(
      { gpuLayers: -1, maxRunning: 256, isDeviceSampling: true },
      {},
      GPU,
    );
    assert.deepEqual(
      { isDeviceSampling, sequenceCount, runningMax },
      { isDeviceSampling: true, sequenceCount: 128, runningMax: 128 },
    );
    assert.equal(plan({ gpuLayers: 0 }, {}, GPU).isDeviceSampling, false);
    assert.equal(plan({ gpuLayers: -1 }, {}, CPU).isDeviceSampling, false);
  });

  test('a recurrent model shares no prefixes and takes no proposals', () => {
    const limits = plan({}, { isRecurrent: true });
    assert.equal(limits.isPrefixCache, false);
    assert.equal(limits.sequenceCount, limits.runningMax);
    assert.throws(
      () => plan({ speculative: 'lookup' }, { isRecurrent: true }),
      /'speculative' must be "off"/,
    );
  });

  test('long prompts have a cache of their own on a CPU, where cells can move', () => {
    assert.equal(plan().promptCells, 2048);
    assert.equal(plan({ contextLength: 600 }).promptCells, 600);
    assert.equal(plan({ promptCells: 0 }).promptCells, 0);
    assert.equal(plan({ promptCells: 4096 }).promptCells, 4096);
    assert.equal(plan({ gpuLayers: -1 }, {}, GPU).promptCells, 0);
    assert.equal(plan({}, { isRecurrent: true }).promptCells, 0);
    assert.equal(plan({}, { hasSlidingWindow: true }).promptCells, 0);
    assert.throws(
      () => plan({ promptCells: 512 }, { hasSlidingWindow: true }),
      /'prompt_cells' must be 0 for a model with a sliding window or a recurrent state/,
    );
    assert.throws(
      () => plan({ promptCells: 512, gpuLayers: -1 }, {}, GPU),
      /'prompt_cells' must be 0 for a model on a GPU/,
    );
  });

  test('what a model is for is told by its pooling and by whether it looks ahead', () => {
    const kindOf = (...args: Parameters<typeof plan>) => {
      const { isGenerating, isEmbedding, pooling } = plan(...args);
      return { isGenerating, isEmbedding, pooling };
    };
    assert.deepEqual(kindOf(), { isGenerating: true, isEmbedding: false, pooling: 'mean' });
    assert.deepEqual(kindOf({ isEmbedding: true, pooling: 'last' }), {
      isGenerating: true,
      isEmbedding: true,
      pooling: 'last',
    });
    const bert = (values: Readonly<Record<string, string>>) => ({
      values: { 'general.architecture': 'bert', 'bert.attention.causal': 'false', ...values },
    });
    assert.deepEqual(kindOf({}, bert({})), { isGenerating: false, isEmbedding: true, pooling: 'mean' });
    assert.deepEqual(kindOf({}, bert({ 'bert.pooling_type': '2' })), {
      isGenerating: false,
      isEmbedding: true,
      pooling: 'cls',
    });
    assert.deepEqual(kindOf({}, bert({ 'bert.pooling_type': '4' })), {
      isGenerating: false,
      isEmbedding: true,
      pooling: 'rank',
    });
    const qwen = { values: { 'general.architecture': 'qwen3', 'qwen3.pooling_type': '3' } };
    assert.deepEqual(kindOf({}, qwen), { isGenerating: false, isEmbedding: true, pooling: 'last' });
    assert.deepEqual(kindOf({ pooling: 'rank' }), {
      isGenerating: false,
      isEmbedding: true,
      pooling: 'rank',
    });
    assert.equal(kindOf({}, { hasDecoder: false }).isGenerating, false);
  });

  test('without pooling there is no vector', () => {
    assert.throws(
      () => plan({ isEmbedding: true, pooling: 'none' }),
      /'pooling' is "none", but an input needs one vector/,
    );
    assert.equal(plan({ pooling: 'none' }).isEmbedding, false);
  });

  test('inputs to embed are as long as the model was trained for, at most', () => {
    const encoder = { trainedContextLength: 512, values: { 'llama.pooling_type': '1' } };
    assert.equal(plan({}, encoder).embeddingTokens, 512);
    assert.equal(plan({ contextLength: 100 }, encoder).embeddingTokens, 100);
    assert.equal(plan({ isEmbedding: true }).embeddingTokens, 2048);
  });
});

test('sampler threads: as told, else some beside a GPU and none where the cores compute', () => {
  const planned = (told: number | undefined, hasDevice: boolean, coreCount: number) =>
    planSamplerThreads(told, { hasDevice, coreCount });
  assert.equal(planned(undefined, true, 16), 8);
  assert.equal(planned(undefined, true, 4), 2);
  assert.equal(planned(undefined, true, 3), 0);
  assert.equal(planned(undefined, false, 16), 0);
  assert.equal(planned(3, false, 2), 3);
  assert.equal(planned(0, true, 16), 0);
});
