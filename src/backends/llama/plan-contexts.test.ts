// Over how many contexts a model's texts are spread, and what each of them gets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LlamaSettings } from './llama-settings.ts';
import { limitsOfEach, planContexts } from './plan-contexts.ts';
import type { ModelLimits } from './plan-limits.ts';

const SMALL = 100e6;
const LIMITS = {
  ...{ cellCount: 65_536, contextLength: 8192, runningMax: 64, hasDevice: true, sequenceCount: 128 },
  ...{ isPrefixCache: true, keptCellsMax: 65_536, keptCellsMin: 0, promptCells: 0 },
} as ModelLimits;
const SETTINGS = {
  ...{ contextCount: undefined, draftFile: undefined, coreCount: 16, callThreads: 8, gpuLayers: -1 },
} as LlamaSettings;

function plan({
  limits = {},
  byteLength = SMALL,
  isRecurrent = false,
  ...settings
}: Partial<LlamaSettings> & {
  limits?: Partial<ModelLimits>;
  byteLength?: number;
  isRecurrent?: boolean;
} = {}): number {
  const values: Readonly<Record<string, string>> = {
    'general.architecture': 'llama',
    'llama.block_count': '30',
  };
  const facts = { hasDecoder: true, trainedContextLength: 8192, isRecurrent, hasSlidingWindow: false };
  return planContexts(
    { ...facts, byteLength, metadata: (key) => values[key] },
    { ...SETTINGS, ...settings },
    { ...LIMITS, ...limits },
  );
}

test('a small model on a GPU has eight contexts, where the machine has the cores and the threads', () => {
  assert.equal(plan(), 8);
  assert.equal(plan({ coreCount: 6 }), 3);
  assert.equal(plan({ coreCount: 1 }), 1);
  assert.equal(plan({ callThreads: 1 }), 1);
  assert.equal(plan({ limits: { runningMax: 4 } }), 4);
  assert.equal(plan({ limits: { cellCount: 20_000 } }), 2, 'each can hold the longest request');
  assert.equal(plan({ limits: { cellCount: 4096, contextLength: 4096 } }), 1);
});

test('any other has one', () => {
  assert.equal(plan({ byteLength: 500e6 }), 1);
  assert.equal(plan({ limits: { hasDevice: false } }), 1);
  assert.equal(plan({ gpuLayers: 12 }), 1);
  assert.equal(plan({ draftFile: 'draft.gguf' }), 1);
  assert.equal(plan({ isRecurrent: true }), 1);
});

test('a number that was told holds, if it can', () => {
  assert.equal(plan({ contextCount: 1 }), 1);
  assert.equal(plan({ contextCount: 3, byteLength: 5e9, limits: { hasDevice: false } }), 3);
  assert.throws(() => plan({ contextCount: 8, limits: { cellCount: 8192 } }), {
    message:
      'parameter \'contexts\' is "8", but each would have 1024 of the 8192 cells (kv_cells), and a request may need 8192 (context_length)',
  });
  assert.throws(() => plan({ contextCount: 4, limits: { runningMax: 2 } }), /but max_running is 2$/);
  assert.throws(() => plan({ contextCount: 2, draftFile: 'a.gguf' }), /but a draft model goes with one$/);
  assert.equal(plan({ contextCount: 1, draftFile: 'a.gguf' }), 1);
});

test('each has its share', () => {
  assert.equal(limitsOfEach(LIMITS, 1), LIMITS);
  const each = limitsOfEach(LIMITS, 8);
  const { cellCount, runningMax, sequenceCount, keptCellsMax, contextLength } = each;
  assert.deepEqual(
    { cellCount, runningMax, sequenceCount, keptCellsMax, contextLength },
    { cellCount: 8192, runningMax: 8, sequenceCount: 32, keptCellsMax: 8192, contextLength: 8192 },
  );
  assert.equal(limitsOfEach({ ...LIMITS, runningMax: 10 }, 4).runningMax, 3, 'none is lost');
  assert.equal(limitsOfEach({ ...LIMITS, isPrefixCache: false, sequenceCount: 64 }, 8).sequenceCount, 8);
});
