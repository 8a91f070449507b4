// Every refusal of a request, in Triton's words, which of two comes first, and what the scheduler is told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InferRequest } from '../domain/request.ts';
import type { StatusError } from '../domain/status.ts';
import type { InputTensor } from '../domain/tensor.ts';
import { parseModelConfig } from '../wire/pbtxt/parse-model-config.ts';
import { createTensorTable } from './model/tensor-table.ts';
import { toSequenceRules } from './scheduler/sequence/sequence-policy.ts';
import { makeRequest } from './scheduler/test-entry.ts';
import { type RequestRules, type ValidRequest, validateRequest } from './validate.ts';

const BATCH_NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.';

const TWO_INPUTS = `max_batch_size: 8
  input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "B" data_type: TYPE_INT32 dims: [ -1 ] } ]
  output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] } ]`;
const STRINGS = 'max_batch_size: 4 input [ { name: "S" data_type: TYPE_STRING dims: [ 2 ] } ]';
const OPTIONAL = `max_batch_size: 8
  input [ { name: "A" data_type: TYPE_INT8 dims: [ 1 ] },
    { name: "B" data_type: TYPE_INT8 dims: [ 1 ] },
    { name: "C" data_type: TYPE_INT8 dims: [ 1 ] optional: true } ]`;

function rulesOf(text: string): RequestRules {
  const config = parseModelConfig(text);
  return {
    modelName: 'M',
    maxBatchSize: config.max_batch_size,
    tensors: createTensorTable(config),
    sequence: toSequenceRules(config),
  };
}

function input(
  name: string,
  datatype: InputTensor['datatype'],
  shape: number[],
  bytes: number | Buffer,
): InputTensor {
  const data = typeof bytes === 'number' ? Buffer.alloc(bytes) : bytes;
  return { name, datatype, shape, data: [data], byteLength: data.length };
}

const A = input('A', 'FP32', [1, 4], 16);
const B = input('B', 'INT32', [1, 2], 8);

function validate(text: string, inputs: InputTensor[], fields: Partial<InferRequest> = {}): ValidRequest {
  return validateRequest(makeRequest({ inputs, ...fields }), rulesOf(text));
}

function refusal(text: string, inputs: InputTensor[], fields: Partial<InferRequest> = {}): string {
  try {
    validate(text, inputs, fields);
  } catch (thrown) {
    assert.equal((thrown as StatusError).code, 'INVALID_ARG');
    return (thrown as StatusError).message;
  }
  return 'accepted';
}

const UNKNOWN_ID = '[request id: <id_unknown>] ';

test('a valid request is told in indexes, rows and bytes', () => {
  const valid = validate(TWO_INPUTS, [A, B], { requestedOutputs: ['Z'] });
  assert.equal(valid.batchSize, 1);
  assert.equal(valid.byteLength, 24);
  assert.equal(valid.batchKey, '1:2');
  assert.deepEqual(valid.sent.requestedOutputs, [1]);
  assert.deepEqual(
    valid.sent.inputs.map(({ index, shape }) => ({ index, shape })),
    [
      { index: 0, shape: [1, 4] },
      { index: 1, shape: [1, 2] },
    ],
  );
});

test('too few inputs are named, with the ones that are missing', () => {
  assert.equal(
    refusal(TWO_INPUTS, [A], { id: 'r1' }),
    "[request id: r1] expected 2 inputs but got 1 inputs for model 'M'. Got input(s) ['A'], but missing required input(s) ['B']. Please provide all required input(s).",
  );
  assert.equal(
    refusal(TWO_INPUTS, []),
    `${UNKNOWN_ID}expected 2 inputs but got 0 inputs for model 'M'. Got input(s) [], but missing required input(s) ['A','B']. Please provide all required input(s).`,
  );
});

test('too many inputs: nothing is missing, and the list is a lone bracket as in Triton', () => {
  assert.match(
    refusal(TWO_INPUTS, [A, B, { ...A, name: 'X' }]),
    /expected 2 inputs but got 3 inputs .* but missing required input\(s\) \]\. Please/,
  );
});

test('with optional inputs the text tells a range', () => {
  const a = input('A', 'INT8', [1, 1], 1);
  assert.equal(
    refusal(OPTIONAL, [a]),
    `${UNKNOWN_ID}expected number of inputs between 2 and 3 but got 1 inputs for model 'M'. Got input(s) ['A'], but missing required input(s) ['B']. Please provide all required input(s).`,
  );
});

test('an optional input does not make up for a required one', () => {
  const inputs = ['A', 'C'].map((name) => input(name, 'INT8', [1, 1], 1));
  assert.match(refusal(OPTIONAL, inputs), /but got 2 inputs .* missing required input\(s\) \['B'\]/);
  const complete = ['A', 'B'].map((name) => input(name, 'INT8', [1, 1], 1));
  assert.equal(refusal(OPTIONAL, complete), 'accepted');
});

test('the set of optional inputs is part of the batch key', () => {
  const inputs = ['A', 'B', 'C'].map((name) => input(name, 'INT8', [1, 1], 1));
  const without = validate(OPTIONAL, inputs.slice(0, 2)).batchKey;
  assert.notEqual(validate(OPTIONAL, inputs).batchKey, without);
  assert.equal(validate(OPTIONAL, inputs).batchKey, validate(OPTIONAL, [...inputs].reverse()).batchKey);
});

test('a variable shape is part of the batch key, the batch dimension and fixed shapes are not', () => {
  const key = (rows: number, width: number) =>
    validate(TWO_INPUTS, [
      input('A', 'FP32', [rows, 4], 16 * rows),
      input('B', 'INT32', [rows, width], 4 * rows * width),
    ]).batchKey;
  assert.equal(key(1, 2), key(3, 2));
  assert.notEqual(key(1, 2), key(1, 3));
});

test('a ragged input shares batches whatever its shape', () => {
  const text =
    'max_batch_size: 8 input [ { name: "A" data_type: TYPE_INT8 dims: [ -1 ] allow_ragged_batch: true } ]';
  assert.equal(
    validate(text, [input('A', 'INT8', [1, 3], 3)]).batchKey,
    validate(text, [input('A', 'INT8', [1, 5], 5)]).batchKey,
  );
});

test('unknown names', () => {
  assert.equal(refusal(TWO_INPUTS, [A, { ...B, name: 'X' }]), "unexpected inference input 'X' for model 'M'");
  assert.equal(
    refusal(TWO_INPUTS, [A, B], { requestedOutputs: ['Y', 'Q'] }),
    "unexpected inference output 'Q' for model 'M'",
  );
});

test('datatypes', () => {
  const text = (datatype: string) =>
    `${UNKNOWN_ID}inference input 'A' data-type is '${datatype}', but model 'M' expects 'FP32'`;
  assert.equal(refusal(TWO_INPUTS, [{ ...A, datatype: 'INT32' }, B]), text('INT32'));
  assert.equal(refusal(TWO_INPUTS, [{ ...A, datatype: '<invalid>' }, B]), text('<invalid>'));
});

test('shapes, with the note only where the model batches', () => {
  assert.equal(
    refusal(TWO_INPUTS, [input('A', 'FP32', [1, 8], 32), B]),
    `${UNKNOWN_ID}unexpected shape for input 'A' for model 'M'. Expected [-1,4], got [1,8]. ${BATCH_NOTE}`,
  );
  const noBatch = 'input [ { name: "A" data_type: TYPE_FP32 dims: [ 2, -1 ] } ]';
  assert.equal(
    refusal(noBatch, [input('A', 'FP32', [3, 1], 12)]),
    `${UNKNOWN_ID}unexpected shape for input 'A' for model 'M'. Expected [2,-1], got [3,1]. `,
  );
  assert.equal(refusal(noBatch, [input('A', 'FP32', [2, 0], 0)]), 'accepted');
  assert.match(refusal(noBatch, [input('A', 'FP32', [2], 8)]), /Expected \[2,-1\], got \[2\]/);
});

test('the batch dimension', () => {
  assert.equal(
    refusal(TWO_INPUTS, [A, { ...B, shape: [] }]),
    `${UNKNOWN_ID}input 'B' has no shape but model requires batch dimension for 'M'`,
  );
  assert.equal(
    refusal(TWO_INPUTS, [input('A', 'FP32', [2, 4], 32), B]),
    `${UNKNOWN_ID}input 'A' batch size does not match other inputs for 'M'`,
  );
  assert.equal(
    refusal(TWO_INPUTS, [input('A', 'FP32', [9, 4], 144), input('B', 'INT32', [9, 1], 36)]),
    `${UNKNOWN_ID}inference request batch-size must be <= 8 for 'M'`,
  );
});

test('the number of bytes; a raw request calls its input raw_input', () => {
  const one = 'max_batch_size: 8 input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] } ]';
  const short = input('A', 'FP32', [1, 4], 15);
  assert.equal(
    refusal(one, [short]),
    `${UNKNOWN_ID}input byte size mismatch for input 'A' for model 'M'. Expected 16, got 15`,
  );
  assert.match(refusal(one, [short], { isRaw: true }), /mismatch for input 'raw_input' for/);
});

test('a batch of 0 counts as one row and is checked as one', () => {
  const one = 'max_batch_size: 8 input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] } ]';
  assert.equal(validate(one, [input('A', 'FP32', [0, 4], 16)]).batchSize, 1);
  assert.match(refusal(one, [input('A', 'FP32', [0, 4], 0)]), /Expected 16, got 0/);
});

test('a model that does not batch has one row whatever the first dimension', () => {
  const text = 'input [ { name: "A" data_type: TYPE_INT8 dims: [ -1 ] } ]';
  assert.equal(validate(text, [input('A', 'INT8', [700], 700)]).batchSize, 1);
});

function strings(...elements: string[]): Buffer {
  return Buffer.concat(
    elements.flatMap((element) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(element));
      return [length, Buffer.from(element)];
    }),
  );
}

test('BYTES: the elements are counted and must be whole', () => {
  const check = (bytes: Buffer, shape = [1, 2]) => refusal(STRINGS, [input('S', 'BYTES', shape, bytes)]);
  assert.equal(check(strings('a', '')), 'accepted');
  assert.equal(check(strings('aä', '', 'x', 'y'), [2, 2]), 'accepted');
  assert.equal(
    check(strings('a', 'b', 'c')),
    `${UNKNOWN_ID}unexpected number of string elements 3 for inference input 'S' for model 'M', expecting 2`,
  );
  assert.equal(
    check(strings('a')),
    `${UNKNOWN_ID}expected 2 string elements for inference input 'S' for model 'M', got 1`,
  );
  assert.equal(
    check(Buffer.concat([strings('a'), Buffer.from([1, 0])])),
    `${UNKNOWN_ID}incomplete string length indicator for inference input 'S' for model 'M', expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer.`,
  );
  assert.equal(
    check(strings('a', 'abcd').subarray(0, -1)),
    "incomplete string data for inference input 'S', expecting string of length 4 but only 3 bytes available",
  );
  assert.match(
    check(Buffer.from([255, 255, 255, 255])),
    /expecting string of length 4294967295 but only 0 bytes/,
  );
});

test('BYTES in several pieces that end anywhere', () => {
  const bytes = strings('hello', 'world');
  const data = [bytes.subarray(0, 3), bytes.subarray(3, 11), bytes.subarray(11)];
  assert.equal(refusal(STRINGS, [{ ...input('S', 'BYTES', [1, 2], bytes), data }]), 'accepted');
});

test('a reshape is applied to what the backend sees, variable sizes carried over', () => {
  const text =
    'max_batch_size: 8 input [ { name: "A" data_type: TYPE_INT8 dims: [ -1, 4 ] reshape { shape: [ 2, 2, -1 ] } } ]';
  assert.deepEqual(validate(text, [input('A', 'INT8', [3, 5, 4], 60)]).sent.inputs[0]!.shape, [3, 2, 2, 5]);
  const scalar =
    'max_batch_size: 8 input [ { name: "A" data_type: TYPE_INT8 dims: [ 1 ] reshape { shape: [] } } ]';
  assert.deepEqual(validate(scalar, [input('A', 'INT8', [3, 1], 3)]).sent.inputs[0]!.shape, [3]);
});

test('of several faults Triton tells the same one: outputs, count, names, batch, then input by input from the last', () => {
  const badA: InputTensor = { ...A, datatype: 'INT8' };
  const badB: InputTensor = { ...B, datatype: 'INT8' };
  assert.match(refusal(TWO_INPUTS, [badA], { requestedOutputs: ['Q'] }), /unexpected inference output/);
  assert.match(refusal(TWO_INPUTS, [{ ...badA, name: 'X' }]), /expected 2 inputs/);
  assert.match(
    refusal(TWO_INPUTS, [
      { ...badA, shape: [2, 4] },
      { ...B, name: 'X' },
    ]),
    /unexpected inference input 'X'/,
  );
  assert.match(refusal(TWO_INPUTS, [{ ...badA, shape: [2, 4] }, B]), /batch size does not match/);
  assert.match(refusal(TWO_INPUTS, [badA, badB]), /input 'B' data-type/);
  assert.match(refusal(TWO_INPUTS, [A, { ...badB, shape: [1, 2, 3] }]), /data-type/);
  assert.match(refusal(TWO_INPUTS, [A, { ...B, shape: [1, 2, 3], byteLength: 1 }]), /unexpected shape/);
});

test('sequences: the type of the id, one row, and an id at all, in this order', () => {
  const model = (sequence: string) =>
    `max_batch_size: 4 input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] } ] sequence_batching { ${sequence} }`;
  const corrid = (type: string) =>
    model(`control_input { name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: ${type} } }`);
  const two = input('A', 'FP32', [2, 4], 32);
  const noId = "inference request to model 'M' must specify a non-zero or non-empty correlation ID";
  const oneRow =
    "inference request to model 'M' must specify batch-size 1 due to requirements of sequence batcher";
  assert.equal(refusal(model(''), [A]), noId);
  assert.equal(refusal(model(''), [A], { correlationId: '' }), noId);
  assert.equal(refusal(model(''), [two]), oneRow);
  assert.equal(
    refusal(corrid('TYPE_UINT64'), [two], { correlationId: 'x' }),
    `${UNKNOWN_ID}sequence batching control 'C' data-type is 'BYTES', but model 'M' expects 'UINT64'`,
  );
  assert.equal(
    refusal(corrid('TYPE_STRING'), [A], { correlationId: 5n }),
    `${UNKNOWN_ID}sequence batching control 'C' data-type is 'UINT64', but model 'M' expects 'BYTES'`,
  );
  assert.equal(refusal(corrid('TYPE_INT32'), [A], { correlationId: 5n }), 'accepted');
  assert.equal(refusal(model(''), [A], { correlationId: 'x' }), 'accepted');
  assert.equal(refusal(model('iterative_sequence: true'), [A]), 'accepted');
  assert.equal(refusal(TWO_INPUTS, [two, input('B', 'INT32', [2, 2], 16)]), 'accepted');
});
