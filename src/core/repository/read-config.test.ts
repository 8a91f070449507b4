// From a model directory on disk to its config.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { type ConfigRules, readRepositoryConfig } from './read-config.ts';

const AUTO: ConfigRules = { isAutoComplete: true, modelConfigName: '' };
const STRICT: ConfigRules = { isAutoComplete: false, modelConfigName: '' };
const IO =
  'input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nereid-config-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text = ''): void {
  mkdirSync(dirname(join(root, 'm', path)), { recursive: true });
  writeFileSync(join(root, 'm', path), text);
}

function read(rules: ConfigRules, override?: string) {
  const directory = { name: 'm', path: join(root, 'm') };
  return readRepositoryConfig(
    directory,
    rules,
    override === undefined ? undefined : parseModelConfig(override),
  );
}

test('without a config file the directory tells name, backend and versions', async () => {
  write('1/model.onnx');
  write('2/model.onnx');
  write('old/model.onnx');
  const { config, versions, ignored } = await read(AUTO);
  assert.equal(config.name, 'm');
  assert.equal(config.backend, 'onnxruntime');
  assert.deepEqual(versions, [1, 2]);
  assert.deepEqual(ignored, ['old']);
});

test('without completion a missing config file is an error that names it', async () => {
  write('1/model.onnx');
  await assert.rejects(read(STRICT), {
    code: 'INTERNAL',
    message: `failed to open text file for read ${join(root, 'm', 'config.pbtxt')}: No such file or directory`,
  });
});

test('the config file is read, and must bear the name of its directory', async () => {
  write('1/model.onnx');
  write('config.pbtxt', `max_batch_size: 4 backend: "onnxruntime" ${IO}`);
  assert.equal((await read(STRICT)).config.max_batch_size, 4);
  write('config.pbtxt', `name: "other" backend: "onnxruntime" ${IO}`);
  await assert.rejects(read(AUTO), {
    code: 'INVALID_ARG',
    message: "unexpected directory name 'm' for model 'other', directory name must equal model name",
  });
});

test('--model-config-name prefers its own file and falls back to config.pbtxt', async () => {
  write('1/model.onnx');
  write('config.pbtxt', `max_batch_size: 1 backend: "onnxruntime" ${IO}`);
  write('configs/large.pbtxt', `max_batch_size: 64 backend: "onnxruntime" ${IO}`);
  const sizeUnder = async (modelConfigName: string) =>
    (await read({ ...STRICT, modelConfigName })).config.max_batch_size;
  assert.equal(await sizeUnder('large'), 64);
  assert.equal(await sizeUnder('small'), 1);
});

test('an override replaces the file', async () => {
  write('1/model.onnx');
  write('config.pbtxt', 'this is no config');
  const { config } = await read(STRICT, `max_batch_size: 2 backend: "onnxruntime" ${IO}`);
  assert.equal(config.max_batch_size, 2);
  await assert.rejects(read(STRICT));
});

test('an invalid config is refused; tensors are only checked when nothing will complete them', async () => {
  write('1/model.onnx');
  write('config.pbtxt', 'backend: "onnxruntime" max_batch_size: -1');
  await assert.rejects(read(AUTO), { code: 'INVALID_ARG' });
  write('config.pbtxt', 'backend: "onnxruntime" input [ { name: "X" dims: [ 1 ] } ]');
  assert.equal((await read(AUTO)).config.input.length, 1);
  await assert.rejects(read(STRICT), { code: 'INVALID_ARG' });
});

test('a config that cannot be read is not taken for a missing one', async () => {
  mkdirSync(join(root, 'm', 'config.pbtxt'), { recursive: true });
  await assert.rejects(read(AUTO), { code: 'INTERNAL' });
});
