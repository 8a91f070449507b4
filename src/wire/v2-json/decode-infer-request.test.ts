// Unit tests of request decoding; bodies and error texts are those of a recorded Triton 2.51 unless marked.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelView } from '../../domain/model-view.ts';
import { contiguous } from '../../domain/tensor.ts';
import { type DecodedInferRequest, decodeInferRequest } from './decode-infer-request.ts';

const INPUT_BYTES_MAX = 64 * 1024 * 1024;

const NOBATCH: ModelView = {
  name: 'nobatch',
  version: 1,
  maxBatchSize: 0,
  inputs: [{ name: 'X', datatype: 'FP32', dims: [2, 3], optional: false }],
  outputs: [],
  isDecoupled: false,
  labelsOf: () => undefined,
};

function decode(json: string | Buffer, binary: Buffer = Buffer.alloc(0)): DecodedInferRequest {
  const head = typeof json === 'string' ? Buffer.from(json) : json;
  return decodeInferRequest({
    body: [Buffer.concat([head, binary])],
    bodyLength: head.length + binary.length,
    jsonLength: head.length,
    model: NOBATCH,
    inputBytesMax: INPUT_BYTES_MAX,
  });
}

const VALID = '{"inputs":[{"name":"X","datatype":"FP32","shape":[2,3],"data":[1,1,1,1,1,1]}]}';

function withOutputs(outputs: string): string {
  return VALID.replace(/}$/, `,"outputs":${outputs}}`);
}

function assertRefused(json: string, code: string, message: string, binary: Buffer = Buffer.alloc(0)): void {
  assert.throws(() => decode(json, binary), { code, message }, json);
}

test('the members of the document are checked in Triton’s order', () => {
  const none =
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But";
  assertRefused(
    '"x"',
    'INTERNAL',
    "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
  );
  assertRefused(
    '{"inputs":{}}',
    'INTERNAL',
    "Unable to parse 'inputs': attempt to access JSON non-array as array",
  );
  assertRefused('{"inputs":[5]}', 'INVALID_ARG', `${none} no field is set`);
  assertRefused('{"inputs":[null]}', 'INVALID_ARG', `${none} no field is set`);
  assertRefused(
    '{"inputs":[{"data":[1],"parameters":{"binary_data_size":4,"shared_memory_region":"r"}}]}',
    'INVALID_ARG',
    `${none} set 'data' 'binary_data_size' 'shared_memory_region'`,
  );
  assertRefused(
    '{"inputs":[{"datatype":"FP32","shape":[2,3],"data":[1]}]}',
    'INTERNAL',
    "Unable to parse 'name': attempt to access non-existing object member 'name'",
  );
  assertRefused(
    '{"id":5,"inputs":[]}',
    'INTERNAL',
    "Unable to parse 'id': attempt to access JSON non-string as string",
  );
  assertRefused(
    VALID.replace('{', '{"parameters":[],'),
    'INTERNAL',
    'failed to get request params.: attempt to get members for non-object',
  );
  assertRefused(
    withOutputs('null'),
    'INTERNAL',
    "Unable to parse 'outputs': attempt to access JSON non-array as array",
  );
  const twice = VALID.replace(/\[(\{.*\})\]\}$/, '[$1,$1]}').replace('{', '{"id":"7",');
  assertRefused(twice, 'INVALID_ARG', "[request id: 7] input 'X' already exists in request");
});

test('outputs: kind, classification, and the first of two entries wins', () => {
  const { request, outputs } = decode(
    withOutputs(
      '[{"name":"Y","parameters":{"binary_data":true}},{"name":"Z","parameters":{"classification":3}},{"name":"Y"}]',
    ),
  );
  assert.deepEqual(request.requestedOutputs, ['Y', 'Z']);
  assert.deepEqual(outputs.byName.get('Y'), { isBinary: true, classCount: 0 });
  assert.deepEqual(outputs.byName.get('Z'), { isBinary: false, classCount: 3 });
  const refused = (parameters: string, code: string, message: string) =>
    assertRefused(withOutputs(`[{"name":"Y","parameters":${parameters}}]`), code, message);
  refused(
    '{"binary_data":"yes"}',
    'INTERNAL',
    "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
  );
  refused(
    '{"classification":"2"}',
    'INTERNAL',
    "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
  );
  refused(
    '{"shared_memory_region":"r","binary_data":true}',
    'INVALID_ARG',
    "Output can't set both 'shared_memory_region' and 'binary_data'",
  );
  refused(
    '{"shared_memory_region":"r","classification":1}',
    'INVALID_ARG',
    "Output can't set both 'shared_memory_region' and 'classification'",
  );
});

test('request parameters: settings, custom values and refusals', () => {
  const withParameters = (parameters: string) => VALID.replace('{', `{"parameters":${parameters},`);
  const { request, outputs } = decode(
    withParameters(
      '{"sequence_id":18446744073709551615,"sequence_start":true,"sequence_end":true,"priority":2,"timeout":1234,"binary_data_output":true,"a":1,"a":2,"d":2.0,"s":"é","b":false,"big":18446744073709551615,"max":9223372036854775807}',
    ),
  );
  assert.equal(request.correlationId, 2n ** 64n - 1n);
  assert.equal(request.sequenceFlags, 3);
  assert.equal(request.priority, 2);
  assert.equal(request.timeoutUs, 1234);
  assert.equal(outputs.isBinaryDefault, true);
  assert.deepEqual(
    [...request.parameters!],
    [
      ['a', 1n],
      ['d', 2],
      ['s', 'é'],
      ['b', false],
      ['big', 18446744073709552000],
      ['max', 9223372036854775807n],
    ],
  );
  assert.equal(decode(withParameters('{"sequence_id":"s9"}')).request.correlationId, 's9');
  assert.equal(decode(VALID).request.parameters, undefined);
  const refused = (parameters: string, code: string, message: string) =>
    assertRefused(withParameters(parameters), code, message);
  refused(
    '{"sequence_id":-3}',
    'INTERNAL',
    "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
  );
  refused(
    `{"sequence_id":"${'x'.repeat(129)}"}`,
    'UNSUPPORTED',
    'string correlation ID cannot be longer than 128 characters',
  );
  refused(
    '{"sequence_start":1}',
    'INTERNAL',
    "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
  );
  refused(
    '{"priority":-1}',
    'INTERNAL',
    "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
  );
  refused(
    '{"triton_x":1}',
    'INVALID_ARG',
    "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
  );
  refused(
    '{"a":[1]}',
    'INVALID_ARG',
    "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
  );
  refused(
    '{"a":null}',
    'INVALID_ARG',
    "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
  );
});

test('an id that is no UTF-8 keeps its bytes', () => {
  const json = Buffer.concat([
    Buffer.from('{"id":"'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('","inputs":[]}'),
  ]);
  assert.deepEqual(decode(json).idBytes, Buffer.from([0xff, 0xfe]));
  assert.equal(decode('{"id":"é","inputs":[]}').idBytes, undefined);
  assert.equal(decode('{"id":"é","inputs":[]}').request.id, 'é');
});

const BINARY =
  '{"inputs":[{"name":"X","datatype":"FP32","shape":[2,3],"parameters":{"binary_data_size":24}}]}';

test('binary tensors are views on the body, also across chunks', () => {
  const body = Buffer.concat([Buffer.from(BINARY), Buffer.from(Array.from({ length: 24 }, (_, i) => i))]);
  const whole = decodeInferRequest({
    body: [body],
    bodyLength: body.length,
    jsonLength: BINARY.length,
    model: NOBATCH,
    inputBytesMax: INPUT_BYTES_MAX,
  });
  const [view] = whole.request.inputs[0]!.data;
  assert.equal(view!.buffer, body.buffer);
  for (const cut of [1, 50, BINARY.length, BINARY.length + 10, body.length - 1]) {
    const { request } = decodeInferRequest({
      body: [body.subarray(0, cut), Buffer.alloc(0), body.subarray(cut)],
      bodyLength: body.length,
      jsonLength: BINARY.length,
      model: NOBATCH,
      inputBytesMax: INPUT_BYTES_MAX,
    });
    const input = request.inputs[0]!;
    assert.deepEqual(contiguous(input.data), body.subarray(BINARY.length));
    assert.equal(input.byteLength, 24);
    assert.equal(input.data.length, cut > BINARY.length ? 2 : 1);
  }
});

test('too little or too much binary data is refused', () => {
  const missing = "unexpected size for input 'X', expecting 24 additional bytes for model 'nobatch'";
  assertRefused(BINARY, 'INVALID_ARG', missing);
  const extra = "unexpected additional input data for model 'nobatch'";
  assertRefused(BINARY, 'INVALID_ARG', extra, Buffer.alloc(25));
  assertRefused(VALID, 'INVALID_ARG', extra, Buffer.alloc(1));
  assertRefused(
    BINARY.replace('24', '"24"'),
    'INTERNAL',
    "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
  );
  assert.equal(decode(BINARY.replace('24', '0')).request.inputs[0]!.byteLength, 0);
  assert.equal(
    decode(BINARY.replace('FP32', 'FLOAT'), Buffer.alloc(24)).request.inputs[0]!.datatype,
    '<invalid>',
  );
});

test('inputs in shared memory are ranges without data, and the parameters are checked', () => {
  const json = (parameters: string) =>
    `{"inputs":[{"name":"X","datatype":"FP32","shape":[2,3],"parameters":${parameters}}]}`;
  const decoded = decode(
    json('{"shared_memory_region":"hr","shared_memory_byte_size":24,"shared_memory_offset":48}'),
  );
  assert.deepEqual(decoded.ranges, {
    inputs: new Map([[0, { region: 'hr', offset: 48, byteSize: 24 }]]),
    outputs: undefined,
  });
  assert.deepEqual(decoded.request.inputs, [
    { name: 'X', datatype: 'FP32', shape: [2, 3], data: [], byteLength: 24 },
  ]);
  const bare = decode(json('{"shared_memory_region":"hr"}'));
  assert.deepEqual(bare.ranges?.inputs?.get(0), { region: 'hr', offset: 0, byteSize: 0 });
  assertRefused(
    json('{"shared_memory_region":"hr","shared_memory_byte_size":24,"shared_memory_offset":"0"}'),
    'INTERNAL',
    "Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer as unsigned-integer",
  );
  assertRefused(
    json('{"shared_memory_region":5}'),
    'INTERNAL',
    "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string",
  );
  assertRefused(
    VALID.replace('"data"', '"parameters":{"shared_memory_region":"hr"},"data"'),
    'INVALID_ARG',
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But set 'data' 'shared_memory_region'",
  );
  assert.equal('ranges' in decode(VALID), false);
});

test('outputs in shared memory are ranges, and cannot be classes or binary', () => {
  const output = (more: string) =>
    withOutputs(
      `[{"name":"Y","parameters":{"shared_memory_region":"hr","shared_memory_byte_size":24${more}}}]`,
    );
  const rangeByName = new Map([['Y', { region: 'hr', offset: 512, byteSize: 24 }]]);
  for (const more of [',"shared_memory_offset":512', ',"shared_memory_offset":512,"binary_data":false']) {
    const decoded = decode(output(more));
    assert.deepEqual(decoded.ranges, { inputs: undefined, outputs: rangeByName });
    assert.deepEqual(decoded.outputs.rangeByName, rangeByName);
    assert.deepEqual(decoded.request.requestedOutputs, ['Y']);
  }
  for (const [more, what] of [
    [',"binary_data":true', 'binary_data'],
    [',"classification":1', 'classification'],
  ] as const) {
    assertRefused(output(more), 'INVALID_ARG', `Output can't set both 'shared_memory_region' and '${what}'`);
  }
});
