// Samples of model_warmup: how many batches, which bytes, and the texts of a real Triton 2.51 for what it refuses.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { WarmupBatch } from '../../instance/warmup-batch.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { createWarmup } from './warmup.ts';

const directory = mkdtempSync(join(tmpdir(), 'nereid-warmup-'));
mkdirSync(join(directory, 'warmup'));
writeFileSync(join(directory, 'warmup', 'four'), Buffer.from([1, 2, 3, 4]));
writeFileSync(join(directory, 'warmup', 'twelve'), Buffer.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
writeFileSync(join(directory, 'warmup', 'strings'), Buffer.from([2, 0, 0, 0, 0x61, 0x62, 0, 0, 0, 0]));
after(() => rmSync(directory, { recursive: true }));

const ZEROS = 'inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 zero_data: true } }';

function warmup(sample: string, model = 'max_batch_size: 4'): Promise<WarmupBatch[]> {
  const config = parseModelConfig(
    `name: "m" ${model}
     input { name: "X" data_type: TYPE_FP32 dims: 2 }
     output { name: "Y" data_type: TYPE_FP32 dims: 2 }
     model_warmup { name: "s" ${sample} }`,
  );
  return createWarmup(config, directory);
}

async function onlyInput(sample: string, model?: string) {
  const [batch] = await warmup(`batch_size: 1 ${sample}`, model);
  const [input] = batch!.requests[0]!.inputs;
  return { ...input!, bytes: Buffer.concat(input!.data) };
}

function stringModel(): string {
  return 'input { name: "S" data_type: TYPE_STRING dims: 2 optional: true }';
}

test('batch_size requests of one row each, count times', async () => {
  const batches = await warmup(`batch_size: 3 count: 2 ${ZEROS}`);
  assert.deepEqual(
    batches.map(({ sample, requests }) => [sample, requests.length]),
    [
      ['s', 3],
      ['s', 3],
    ],
  );
  assert.deepEqual(batches[0]!.requests[0]!.inputs[0]!.shape, [1, 2]);
  assert.equal((await warmup(`batch_size: 1 ${ZEROS}`)).length, 1);
  assert.deepEqual(await warmup(`batch_size: 0 count: 5 ${ZEROS}`), []);
});

test('a model that does not batch gets one request at a time, without a row', async () => {
  const batches = await warmup(`batch_size: 2 count: 2 ${ZEROS}`, '');
  assert.deepEqual(
    batches.map(({ requests }) => requests.map(({ inputs }) => inputs[0]!.shape)),
    [[[2]], [[2]], [[2]], [[2]]],
  );
});

test('zeros, random numbers, and as many bytes of a file as are needed', async () => {
  assert.deepEqual((await onlyInput(ZEROS)).bytes, Buffer.alloc(8));
  const { bytes } = await onlyInput(
    'inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 random_data: true } }',
  );
  for (const at of [0, 4]) assert.ok(bytes.readFloatLE(at) >= 0 && bytes.readFloatLE(at) < 1);
  assert.ok(!bytes.equals(Buffer.alloc(8)));
  const file = 'inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 input_data_file: "twelve" } }';
  assert.deepEqual((await onlyInput(file)).bytes, Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]));
});

test('random numbers of 16 bits lie between 0 and 1', async () => {
  const half = 'input { name: "H" data_type: TYPE_FP16 dims: 500 optional: true }';
  const sample = 'inputs { key: "H" value { data_type: TYPE_FP16 dims: 500 random_data: true } }';
  const [batch] = await warmup(`batch_size: 1 ${ZEROS} ${sample}`, half);
  const bytes = Buffer.concat(batch!.requests[0]!.inputs.find(({ index }) => index === 0)!.data);
  for (let at = 0; at < bytes.length; at += 2) assert.ok(bytes.readUInt16LE(at) < 0x3c00);
});

test('strings: empty ones for zero and random data, a file as it is', async () => {
  const bytesOf = async (data: string) => {
    const sample = `inputs { key: "S" value { data_type: TYPE_STRING dims: 2 ${data} } }`;
    const [batch] = await warmup(`batch_size: 1 ${ZEROS} ${sample}`, stringModel());
    return Buffer.concat(batch!.requests[0]!.inputs.find(({ index }) => index === 0)!.data);
  };
  assert.deepEqual(await bytesOf('zero_data: true'), Buffer.alloc(8));
  assert.deepEqual(await bytesOf('random_data: true'), Buffer.alloc(8));
  assert.equal((await bytesOf('input_data_file: "strings"')).length, 10);
});

test('reshape is applied, as it is to requests', async () => {
  const config = parseModelConfig(
    `name: "m" max_batch_size: 2
     input { name: "X" data_type: TYPE_FP32 dims: 2 reshape { shape: [ 2, 1 ] } }
     model_warmup { name: "s" batch_size: 1 ${ZEROS} }`,
  );
  const [batch] = await createWarmup(config, directory);
  assert.deepEqual(batch!.requests[0]!.inputs[0]!.shape, [1, 2, 1]);
});

test('control and state tensors are counted after the inputs of the config', async () => {
  const sequence = `max_batch_size: 4 sequence_batching {
    control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
    control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
    state { input_name: "IN_STATE" output_name: "OUT_STATE" data_type: TYPE_FP32 dims: 3 } }`;
  const batches = await warmup(
    `batch_size: 2 ${ZEROS}
     inputs { key: "CORRID" value { data_type: TYPE_UINT64 dims: 1 zero_data: true } }
     inputs { key: "IN_STATE" value { data_type: TYPE_FP32 dims: 3 zero_data: true } }
     inputs { key: "START" value { data_type: TYPE_INT32 dims: 1 input_data_file: "four" } }`,
    sequence,
  );
  const inputs = batches[0]!.requests[1]!.inputs.map(({ index, shape, byteLength }) => ({
    index,
    shape,
    byteLength,
  }));
  assert.deepEqual(
    inputs.sort((a, b) => a.index - b.index),
    [
      { index: 0, shape: [1, 2], byteLength: 8 },
      { index: 1, shape: [1, 1], byteLength: 4 },
      { index: 2, shape: [1, 1], byteLength: 8 },
      { index: 3, shape: [1, 3], byteLength: 12 },
    ],
  );
});

test('what is no request for the model is refused in the words of Triton', async () => {
  const id = '[request id: <id_unknown>] ';
  const x = (fields: string) => `batch_size: 1 inputs { key: "X" value { ${fields} } }`;
  const cases: [string, string][] = [
    [
      x('data_type: TYPE_FP32 dims: -1 zero_data: true'),
      "warmup setting expects all variable-size dimensions are specified for input 'X'",
    ],
    [
      x('data_type: TYPE_FP32 dims: 2 input_data_file: "four"'),
      `${id}warmup setting expects 8 bytes, but the data provided from fouronly has 4 bytes`,
    ],
    [x('data_type: TYPE_FP32 dims: 2'), `${id}warmup setting expects input 'X' to have input_data_type set`],
    [
      'batch_size: 1',
      `${id}expected 1 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) ['X']. Please provide all required input(s).`,
    ],
    [
      x('data_type: TYPE_INT64 dims: 2 zero_data: true'),
      `${id}inference input 'X' data-type is 'INT64', but model 'm' expects 'FP32'`,
    ],
  ];
  for (const [sample, message] of cases) {
    await assert.rejects(warmup(sample), { code: 'INVALID_ARG', message });
  }
  await assert.rejects(warmup(x('data_type: TYPE_FP32 dims: 3 zero_data: true')), {
    message:
      /^\[request id: <id_unknown>\] unexpected shape for input 'X' for model 'm'\. Expected \[-1,2\], got \[1,3\]\./,
  });
});

test('a file that is not there, and a batch that the model does not allow', async () => {
  await assert.rejects(
    warmup('batch_size: 1 inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 input_data_file: "no" } }'),
    {
      code: 'INTERNAL',
      message: `failed to open text file for read ${join(directory, 'warmup', 'no')}: No such file or directory`,
    },
  );
  await assert.rejects(warmup(`batch_size: 5 ${ZEROS}`), { code: 'INVALID_ARG', message: /batch_size 5/ });
});
