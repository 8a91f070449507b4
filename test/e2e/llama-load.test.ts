// Llama models that cannot be loaded: the repository index says what is wrong and how to mend it, and neither the server
// nor the machine suffers.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { addLlama, findGguf, headOf, LlamaClient, type Parameters, writeConfig } from '../support/llama.ts';
import { call } from '../support/load.ts';
import { childrenOf } from '../support/processes.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

/** Keys and values of three heads of 64 in 30 layers, two bytes each. */
const KV_CELL_BYTES = 30 * 3 * 64 * 2 * 2;
const gguf = await findGguf();

describe('llama models that cannot be loaded', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    addLlama(repository, { name: 'good', file: gguf.file, parameters: { threads: 1, context_length: 256 } });
    const args = ['--model-control-mode=explicit', '--load-model=good'];
    server = await startServer({ repository: repository.path, args });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  /** Loads the model and returns the reason that the repository index gives for its failure. */
  async function reasonOf(name: string, on: RunningServer = server): Promise<string> {
    const load = await call(on, { path: `/v2/repository/models/${name}/load`, body: '', msMax: 60_000 });
    assert.equal(load.status, 400, load.text);
    const index = await call(on, { path: '/v2/repository/index', body: '' });
    const rows = JSON.parse(index.text) as { name: string; state?: string; reason?: string }[];
    const row = rows.find((candidate) => candidate.name === name);
    assert.equal(row?.state, 'UNAVAILABLE');
    assert.ok((await call(on, { path: '/v2/health/live' })).status === 200);
    return row?.reason ?? '';
  }

  function addFile(name: string, file: string, content: Buffer | string): void {
    mkdirSync(repository.at(name, '1'), { recursive: true });
    writeFileSync(repository.at(name, '1', file), content);
    writeConfig(repository, { name });
  }

  test('a GGUF that ends too early', async () => {
    if ('reason' in gguf) return;
    addFile('cut', 'model.gguf', headOf(gguf.file, 50_000_000));
    assert.match(
      await reasonOf('cut'),
      /model\.gguf cannot be loaded: .*(corrupted|incomplete|not within the file bounds)/,
    );
    addFile('cut_early', 'model.gguf', headOf(gguf.file, 2000));
    assert.match(await reasonOf('cut_early'), /model\.gguf cannot be loaded: \S/);
  });

  test('a file that is no GGUF, and an empty one', async () => {
    addFile('text', 'model.gguf', 'This is not a model.\n'.repeat(100));
    assert.match(await reasonOf('text'), /model\.gguf cannot be loaded: .*magic/);
    addFile('empty', 'model.gguf', '');
    assert.match(await reasonOf('empty'), /model\.gguf cannot be loaded: \S/);
  });

  test('no file, the wrong file, and several', async () => {
    if ('reason' in gguf) return;
    addFile('none', 'readme.txt', 'nothing');
    assert.match(await reasonOf('none'), /no GGUF file in .*; it is expected as model\.gguf/);
    addFile('named', 'other.txt', '');
    writeConfig(repository, { name: 'named', parameters: { model_file: 'missing.gguf' } });
    assert.match(await reasonOf('named'), /there is no file .*missing\.gguf/);
    addFile('two', 'b.gguf', '');
    symlinkSync(gguf.file, repository.at('two', '1', 'a.gguf'));
    assert.match(
      await reasonOf('two'),
      /several GGUF files \(a\.gguf, b\.gguf\); name one with the parameter 'model_file'/,
    );
    writeConfig(repository, {
      name: 'two',
      parameters: { model_file: 'a.gguf', threads: 1, context_length: 256 },
    });
    const load = await call(server, { path: '/v2/repository/models/two/load', body: '' });
    assert.equal(load.status, 200, load.text);
  });

  const WRONG: readonly (readonly [string, Parameters, RegExp])[] = [
    [
      'an unknown parameter',
      { kv_cels: 100 },
      /unknown parameter 'kv_cels' of a llama model; known are model_file, /,
    ],
    [
      'a word for a number',
      { kv_cells: 'many' },
      /parameter 'kv_cells' is "many"; it must be a whole number from 16 to/,
    ],
    [
      'a number out of range',
      { max_running: 1000 },
      /parameter 'max_running' is "1000"; it must be a whole number from 1 to 256/,
    ],
    [
      'a wrong word',
      { split_mode: 'half' },
      /parameter 'split_mode' is "half"; it must be one of none, layer, row, tensor/,
    ],
    [
      'a wrong switch',
      { prefix_cache: 'perhaps' },
      /parameter 'prefix_cache' is "perhaps"; it must be true or false/,
    ],
    [
      'more contexts than there can be',
      { contexts: 9 },
      /parameter 'contexts' is "9"; it must be a whole number from 1 to 8/,
    ],
    [
      'contexts that could not hold a request',
      { contexts: 4, kv_cells: 512, context_length: 256 },
      /parameter 'contexts' is "4", but each would have 128 of the 512 cells \(kv_cells\), and a request may need 256/,
    ],
    ['a draft model that is not there', { draft_model: 'd.gguf' }, /there is no file .*d\.gguf/],
    [
      'an adapter that is not there',
      { lora_adapters: '{\\"a\\":\\"a.gguf\\"}' },
      /there is no file .*a\.gguf/,
    ],
    [
      'fewer cells than a request has',
      { kv_cells: 64, context_length: 128 },
      /kv_cells is 64, less than context_length 128/,
    ],
    [
      'a KV cache larger than the memory',
      { kv_cells: Math.ceil(totalmem() / KV_CELL_BYTES) },
      /a KV cache of \d+ cells needs [\d.]+ GB, but only [\d.]+ GB of memory are free; lower kv_cells/,
    ],
  ];
  for (const [what, parameters, expected] of WRONG) {
    test(what, async () => {
      if ('reason' in gguf) return;
      const name = what.replaceAll(' ', '_');
      addLlama(repository, { name, file: gguf.file, parameters: { threads: 1, ...parameters } });
      assert.match(await reasonOf(name), expected);
    });
  }

  test('tensors and batching that llama models do not have', async () => {
    if ('reason' in gguf) return;
    addLlama(repository, { name: 'batched', file: gguf.file, config: 'max_batch_size: 4' });
    assert.match(await reasonOf('batched'), /a llama model batches by itself, at every token: leave it out/);
    const config = 'input [ { name: "prompt" data_type: TYPE_STRING dims: [ 1 ] } ]';
    addLlama(repository, { name: 'tensors', file: gguf.file, config });
    assert.match(await reasonOf('tensors'), /has input 'prompt', which llama models do not have/);
  });

  test('after all of them the first model serves, and no host of theirs is left', async () => {
    const client = new LlamaClient(server, 'good');
    assert.equal(
      (await client.generate({ text_input: 'One two three', sampling: { max_tokens: 2 } })).error,
      undefined,
    );
    assert.equal(childrenOf(server.pid).length, 2, 'hosts of good and two');
  });

  test('a library that is not there, and one that is none', async () => {
    const path = repository.at('no-library');
    mkdirSync(path);
    const args = ['--model-control-mode=explicit', `--backend-config=llama,library-path=${path}`];
    const other = await startServer({ repository: repository.path, args });
    try {
      const missing = /no libllama in .*: it must hold libllama, libggml and libggml-base/;
      assert.match(await reasonOf('good', other), missing);
      for (const name of ['llama', 'ggml', 'ggml-base']) writeFileSync(join(path, `lib${name}.so`), 'none');
      assert.match(await reasonOf('good', other), /libllama cannot be loaded from .*libllama\.so: /);
    } finally {
      await other.stop();
      rmSync(path, { recursive: true });
    }
  });
});
