// Adapters of libllama, another one for every step. libllama's log calls JavaScript while an adapter is being set, and that
// may run the collector: what the call was given must still be there.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import koffi from 'koffi';
import type { LlamaContext } from '../../src/backends/llama/library/context.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { writeLora, writeTinyLlama } from '../support/gguf-models.ts';
import { createNativeContext, loadNativeModel } from '../support/gguf-native.ts';
import { findGguf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;

const LOG_CALLBACK = koffi.proto('void', ['int32_t', 'str', 'void *']);
/** So many that the compiler has left out of the function what it does not need. */
const WARM_UP_SWITCHES = 20_000;
const SWITCHES = 300;

describe('adapters', { skip }, () => {
  let files: TestRepository;
  let model: LlamaModel;
  let context: LlamaContext;

  before(async () => {
    files = createRepository();
    const from = files.at('tiny.gguf');
    const vocabularyOf = 'file' in gguf ? gguf.file : '';
    writeTinyLlama(from, { vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 });
    writeLora(files.at('one.gguf'), { from, strength: 2, seed: 5 });
    writeLora(files.at('two.gguf'), { from, strength: 2, seed: 6 });
    model = await loadNativeModel(from);
    context = createNativeContext(model, { sequenceCount: 1 });
  });

  after(() => {
    context?.free();
    model?.free();
    files?.remove();
  });

  const logitsWith = async (adapter: bigint | undefined) => {
    context.clearCells();
    context.useAdapter(adapter);
    context.beginBatch();
    const output = context.addRow(40, 0, 0, true);
    assert.equal(await context.decode(), 0);
    context.readLogits();
    return context.logitsOf(output).slice();
  };

  test('each step has its own, though garbage is collected while it is set', async () => {
    const loaded = ['one.gguf', 'two.gguf'].map((name) => model.loadAdapter(files.at(name)));
    const adapters = [undefined, ...loaded];
    const alone: Float32Array[] = [];
    for (const adapter of adapters) alone.push(await logitsWith(adapter));
    for (let i = 0; i < WARM_UP_SWITCHES; i++) context.useAdapter(adapters[i % adapters.length]);
    let collections = 0;
    logTo(model, (text) => {
      if (!text.includes('adapters')) return;
      collections++;
      collectAndFill();
    });
    for (let i = 0; i < SWITCHES; i++) {
      const which = i % adapters.length;
      assert.deepEqual(await logitsWith(adapters[which]), alone[which], `switch ${i}`);
    }
    assert.ok(collections >= SWITCHES, `libllama's log has called ${collections} times`);
  });
});

function logTo(model: LlamaModel, listener: (text: string) => void): void {
  const callback = koffi.register(
    (_level: number, text: string) => listener(text),
    koffi.pointer(LOG_CALLBACK),
  );
  model.library.functions.llama_log_set(callback, null);
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void;

/** What was freed gets other bytes. */
function collectAndFill(): void {
  collect({ type: 'minor' });
  for (let i = 0; i < 20; i++) new Float32Array(new ArrayBuffer(8)).fill(7);
}
