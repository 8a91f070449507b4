// The parameters of a llama model: defaults, values, and the texts for what is wrong.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { InstancePlacement } from '../../backend/sdk.ts';
import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { readSettings } from './llama-settings.ts';

const directory = mkdtempSync(join(tmpdir(), 'nereid-llama-settings-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function read(
  parameters: Readonly<Record<string, string>>,
  options: { files?: readonly string[]; placement?: Partial<InstancePlacement> } = {},
) {
  const versionDirectory = mkdtempSync(join(directory, 'v'));
  for (const file of options.files ?? ['model.gguf']) writeFileSync(join(versionDirectory, file), '');
  const config: ModelConfig = {
    ...(createMessage('ModelConfig') as unknown as ModelConfig),
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([name, string_value]) => [name, { string_value }]),
    ),
  };
  const settings = readSettings({
    ...{
      modelName: 'm',
      version: 1,
      modelDirectory: directory,
      versionDirectory,
      config,
      isAutoComplete: true,
    },
    backendConfig: {},
    placement: { name: 'm_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 3, ...options.placement },
    log: () => {},
  });
  return { settings, at: (file: string) => join(versionDirectory, file) };
}

describe('the parameters of a llama model', () => {
  test('there is a default for each', () => {
    const { settings, at } = read({});
    assert.equal(settings.modelFile, at('model.gguf'));
    assert.equal(settings.contextLength, undefined);
    assert.equal(settings.maxWaiting, 1024);
    assert.deepEqual(
      [settings.threads, settings.batchThreads, settings.coreCount],
      [undefined, undefined, 3],
    );
    assert.equal(settings.gpuLayers, 0);
    assert.equal(settings.speculative, 'off');
    assert.equal(settings.isPrefixCache, true);
    assert.deepEqual(settings.adapters, []);
  });

  test('a GPU instance puts all layers on its GPU', () => {
    const { settings } = read({}, { placement: { kind: 'KIND_GPU', deviceId: 2 } });
    assert.equal(settings.gpuLayers, -1);
    assert.equal(settings.mainGpu, 2);
  });

  test('values are read, and files are beside the model unless their path says otherwise', () => {
    const { settings, at } = read({
      ...{ kv_cells: '4096', threads: '2', threads_batch: '5', prefix_cache: 'false', tensor_split: '3,1' },
      ...{
        cache_type_k: 'q8_0',
        flash_attention: 'on',
        draft_model: 'small.gguf',
        mmap: '0',
        pooling: 'cls',
      },
      ...{ lora_adapters: '{"a": "a.gguf", "b": "/models/b.gguf"}', chat_template: 'chat.jinja' },
    });
    assert.equal(settings.kvCells, 4096);
    assert.deepEqual([settings.threads, settings.batchThreads], [2, 5]);
    assert.equal(settings.isPrefixCache, false);
    assert.deepEqual(settings.tensorSplit, [3, 1]);
    assert.deepEqual([settings.cacheTypeK, settings.cacheTypeV], ['q8_0', 'f16']);
    assert.equal(settings.flashAttention, 'on');
    assert.equal(settings.draftFile, at('small.gguf'));
    assert.equal(settings.speculative, 'draft');
    assert.equal(settings.isMemoryMapped, false);
    assert.equal(settings.pooling, 'cls');
    assert.equal(settings.chatTemplateFile, at('chat.jinja'));
    assert.deepEqual(settings.adapters, [
      { name: 'a', file: at('a.gguf') },
      { name: 'b', file: '/models/b.gguf' },
    ]);
  });

  test('an empty value is none', () => {
    assert.equal(read({ kv_cells: '' }).settings.kvCells, undefined);
  });

  test('the model is model.gguf, the only file, the first of its parts, or the one that is named', () => {
    const modelOf = (files: string[], parameters = {}) => {
      return basename(read(parameters, { files }).settings.modelFile);
    };
    assert.equal(modelOf(['a.gguf', 'model.gguf']), 'model.gguf');
    assert.equal(modelOf(['a.gguf', 'notes.txt']), 'a.gguf');
    assert.equal(modelOf(['x-00002-of-00002.gguf', 'x-00001-of-00002.gguf']), 'x-00001-of-00002.gguf');
    assert.equal(modelOf(['a.gguf', 'b.gguf'], { model_file: 'b.gguf' }), 'b.gguf');
    assert.throws(
      () => modelOf(['b.gguf', 'a.gguf']),
      /has several GGUF files \(a\.gguf, b\.gguf\); name one with/,
    );
    assert.throws(() => modelOf([]), /no GGUF file in .*; it is expected as model\.gguf/);
  });

  test('what is wrong is refused by name, with what is right', () => {
    const cases: [Record<string, string>, RegExp][] = [
      [{ kv_cell: '1' }, /unknown parameter 'kv_cell' of a llama model; known are .*kv_cells/],
      [{ kv_cells: 'many' }, /parameter 'kv_cells' is "many"; it must be a whole number from 16 to/],
      [{ max_running: '0' }, /parameter 'max_running' is "0"; it must be a whole number from 1 to 256/],
      [{ prefix_cache: 'maybe' }, /parameter 'prefix_cache' is "maybe"; it must be true or false/],
      [{ split_mode: 'rows' }, /it must be one of none, layer, row, tensor/],
      [{ tensor_split: '0,0' }, /it must be shares of the GPUs such as "3,1"/],
      [{ tensor_split: '1,x' }, /parameter 'tensor_split' is "1,x"/],
      [{ lora_adapters: '[1]' }, /it must be JSON such as \{"name": "file\.gguf"\}/],
      [{ lora_adapters: '{"a": 1}' }, /it must be JSON such as/],
      [{ lora_adapters: '{' }, /it must be JSON such as/],
      [{ speculative: 'draft' }, /parameter 'speculative' is "draft", but 'draft_model' names no file/],
    ];
    for (const [parameters, expected] of cases) assert.throws(() => read(parameters), expected);
  });
});
