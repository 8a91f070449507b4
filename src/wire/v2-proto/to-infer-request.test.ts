import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import { decodeInferRequest } from './decode-infer-request.ts';
import { encodeMessage } from './encode-message.ts';
import { type ConvertedInferRequest, toInferRequest } from './to-infer-request.ts';

function convert(message: object): ConvertedInferRequest {
  const bytes = encodeMessage('ModelInferRequest', { model_name: 'm', ...message });
  return toInferRequest(decodeInferRequest(Buffer.from(bytes)));
}

function refused(message: object, text: string, code = 'INVALID_ARG'): void {
  assert.throws(
    () => convert(message),
    (thrown) => {
      assert.ok(thrown instanceof StatusError);
      assert.equal(thrown.message, text);
      assert.equal(thrown.code, code);
      return true;
    },
  );
}

function input(members: object = {}): object {
  return { name: 'X', datatype: 'INT32', shape: [1], ...members };
}

/** A request with one tensor whose bytes are given as typed contents. */
function dataOf(datatype: string, contents: object): string {
  const { request } = convert({ inputs: [input({ datatype, contents })] });
  const [tensor] = request.inputs;
  const data = Buffer.concat(tensor!.data);
  assert.equal(tensor!.byteLength, data.length);
  return data.toString('hex');
}

const RAW = [Buffer.from('01000000', 'hex')];
const REGION = { shared_memory_region: { string_param: 'r' }, shared_memory_byte_size: { int64_param: 4 } };

describe('parameters', () => {
  const parameters = (name: string, value: object) => ({ parameters: { [name]: value } });

  test('with names of Triton become settings', () => {
    const { request, isEmptyFinalWanted } = convert({
      id: 'i',
      parameters: {
        sequence_id: { int64_param: 42 },
        sequence_start: { bool_param: true },
        sequence_end: { bool_param: true },
        priority: { uint64_param: 3 },
        timeout: { int64_param: 1234 },
        triton_enable_empty_final_response: { bool_param: true },
      },
    });
    assert.equal(request.id, 'i');
    assert.equal(request.correlationId, 42n);
    assert.equal(request.sequenceFlags, 3);
    assert.equal(request.priority, 3);
    assert.equal(request.timeoutUs, 1234);
    assert.equal(request.parameters, undefined);
    assert.equal(isEmptyFinalWanted, true);
  });

  test('that are false or 0 change nothing', () => {
    const { request, isEmptyFinalWanted } = convert({
      parameters: {
        sequence_start: { bool_param: false },
        priority: { int64_param: 0 },
        triton_enable_empty_final_response: { bool_param: false },
      },
    });
    assert.deepEqual([request.sequenceFlags, request.priority, isEmptyFinalWanted], [0, 0, false]);
  });

  test('of other names are custom', () => {
    const { request } = convert({
      parameters: {
        i: { int64_param: -5 },
        b: { bool_param: false },
        s: { string_param: 'x\0y' },
        d: { double_param: 0.5 },
        binary_data_output: { bool_param: true },
      },
    });
    assert.deepEqual(
      request.parameters,
      new Map<string, unknown>([
        ['i', -5n],
        ['b', false],
        ['s', 'x'],
        ['d', 0.5],
        ['binary_data_output', true],
      ]),
    );
  });

  test('make negative ids and timeouts large, as in C++', () => {
    const { request } = convert({
      parameters: { sequence_id: { int64_param: -1 }, timeout: { int64_param: -5 } },
    });
    assert.equal(request.correlationId, 2n ** 64n - 1n);
    assert.equal(request.timeoutUs, 2n ** 64n - 5n);
  });

  test('may name the sequence with a text of at most 128 bytes', () => {
    const id = (text: string) => parameters('sequence_id', { string_param: text });
    assert.equal(convert(id('s9')).request.correlationId, 's9');
    assert.equal(convert(id('x'.repeat(128))).request.correlationId, 'x'.repeat(128));
    refused(id('x'.repeat(129)), 'string correlation ID cannot be longer than 128 characters', 'UNSUPPORTED');
    refused(id('é'.repeat(65)), 'string correlation ID cannot be longer than 128 characters', 'UNSUPPORTED');
  });

  for (const [name, value, expected] of [
    ['sequence_id', { bool_param: true }, 'int64_param or string_param.'],
    ['sequence_id', { uint64_param: 1 }, 'int64_param or string_param.'],
    ['sequence_start', { int64_param: 1 }, 'bool_param.'],
    ['sequence_end', { string_param: 'true' }, 'bool_param.'],
    ['priority', { string_param: '1' }, 'int64_param or uint64_param.'],
    ['timeout', { string_param: '5' }, 'int64_param.'],
    ['timeout', { uint64_param: 5 }, 'int64_param.'],
    ['triton_enable_empty_final_response', { string_param: 'x' }, 'bool_param.'],
    ['a', { uint64_param: 5 }, 'int64_param, bool_param, or string_param.'],
    ['a', {}, 'int64_param, bool_param, or string_param.'],
  ] as const) {
    test(`refuse ${name} as ${JSON.stringify(value)}`, () => {
      refused(parameters(name, value), `invalid value type for '${name}' parameter, expected ${expected}`);
    });
  }

  test('refuse a negative priority and names that begin with triton_', () => {
    refused(
      parameters('priority', { int64_param: -1 }),
      "invalid value for 'priority', expected value >= 0.",
    );
    refused(
      parameters('triton_a', { int64_param: 1 }),
      "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response",
    );
  });

  test('take in forwarded headers', () => {
    const message = decodeInferRequest(Buffer.alloc(0));
    const { request } = toInferRequest(message, { forwardedHeaders: new Map([['x-a', '1']]) });
    assert.deepEqual(request.parameters, new Map([['x-a', '1']]));
    assert.equal(toInferRequest(message, { forwardedHeaders: new Map() }).request.parameters, undefined);
  });
});

describe('inputs', () => {
  test('take the raw entries in order, shared memory aside', () => {
    const { request, sharedMemoryInputs } = convert({
      inputs: [
        input({ name: 'A' }),
        input({ name: 'B', parameters: { ...REGION, shared_memory_offset: { int64_param: 8 } } }),
        input({ name: 'C', datatype: 'int32' }),
      ],
      raw_input_contents: [Buffer.from('aa'), Buffer.from('cc'), Buffer.from('left over')],
    });
    assert.deepEqual(
      request.inputs.map(({ name, datatype, shape, data, byteLength }) => [
        name,
        datatype,
        shape,
        Buffer.concat(data).toString(),
        byteLength,
      ]),
      [
        ['A', 'INT32', [1], 'aa', 2],
        ['B', 'INT32', [1], '', 0],
        ['C', '<invalid>', [1], 'cc', 2],
      ],
    );
    assert.deepEqual(sharedMemoryInputs, [{ inputIndex: 1, region: 'r', offset: 8, byteSize: 4 }]);
  });

  test('may be empty in raw form and as contents', () => {
    for (const message of [
      { inputs: [input()], raw_input_contents: [Buffer.alloc(0)] },
      { inputs: [input({ contents: {} })] },
    ]) {
      assert.equal(convert(message).request.inputs[0]!.byteLength, 0);
    }
  });

  test('are little-endian bytes from contents of every datatype', () => {
    assert.equal(dataOf('BOOL', { bool_contents: [true, false, true] }), '010001');
    assert.equal(dataOf('INT8', { int_contents: [-128, 127, 0, 257] }), '807f0001');
    assert.equal(dataOf('INT16', { int_contents: [-32768, 32767, 65537] }), '0080ff7f0100');
    assert.equal(dataOf('INT32', { int_contents: [-(2 ** 31), 1] }), '0000008001000000');
    assert.equal(dataOf('INT64', { int64_contents: [-(2n ** 63n), 1] }), '00000000000000800100000000000000');
    assert.equal(dataOf('UINT8', { uint_contents: [0, 255, 256] }), '00ff00');
    assert.equal(dataOf('UINT16', { uint_contents: [65535, 7] }), 'ffff0700');
    assert.equal(dataOf('UINT32', { uint_contents: [2 ** 32 - 1] }), 'ffffffff');
    assert.equal(dataOf('UINT64', { uint64_contents: [2n ** 64n - 1n] }), 'ffffffffffffffff');
    assert.equal(dataOf('FP32', { fp32_contents: [0.1, -1.5] }), 'cdcccc3d0000c0bf');
    assert.equal(dataOf('FP64', { fp64_contents: [0.1] }), '9a9999999999b93f');
    const elements = [Buffer.from('a'), Buffer.alloc(0), Buffer.from([255, 0])];
    assert.equal(dataOf('BYTES', { bytes_contents: elements }), '01000000610000000002000000ff00');
  });

  test('must be in one place', () => {
    const contents = { int_contents: [1] };
    refused(
      { inputs: [input({ contents })], raw_input_contents: RAW },
      "contents field must not be specified when using raw_input_contents for 'X' for model 'm'",
    );
    refused(
      { inputs: [input({ contents, parameters: REGION })], raw_input_contents: RAW },
      "unexpected 'content' provided when using shared memory for input tensor 'X' for model 'm'",
    );
    const missing = "unable to find data for input tensor 'X' for model 'm' in request.";
    refused({ inputs: [input()] }, missing);
    refused({ inputs: [input({ name: 'A' }), input()], raw_input_contents: RAW }, missing);
  });

  for (const [datatype, contents, given] of [
    ['INT32', { fp32_contents: [1] }, 'FP32'],
    ['FP16', { fp32_contents: [1] }, 'FP32'],
    ['BF16', { fp32_contents: [1] }, 'FP32'],
    ['FP16', { bytes_contents: [Buffer.from('ab')] }, 'BYTES'],
    ['FP32', { fp64_contents: [1] }, 'FP64'],
    ['FP32', { int_contents: [1] }, 'INT32'],
    ['UINT8', { int_contents: [1] }, 'INT32'],
    ['INT8', { uint_contents: [1] }, 'UINT32'],
    ['INT32', { int64_contents: [1] }, 'INT64'],
    ['INT64', { uint64_contents: [1] }, 'UINT64'],
    ['UINT8', { bool_contents: [true] }, 'BOOL'],
    ['FLOAT', { fp32_contents: [1] }, 'FP32'],
  ] as const) {
    test(`of ${datatype} are refused as ${Object.keys(contents)[0]}`, () => {
      const expected = datatype === 'FLOAT' ? '<invalid>' : datatype;
      refused(
        { inputs: [input({ datatype, contents })] },
        `unexpected explicit tensor data for input tensor 'X' for model 'm' of type '${given}', expected datatype '${expected}'`,
      );
    });
  }

  test('are refused with two lists, before the datatype of the second is looked at', () => {
    refused(
      { inputs: [input({ contents: { int_contents: [1], fp32_contents: [1] } })] },
      "unexpected explicit tensor data for input tensor 'X' for model 'm', binary data was already supplied.",
    );
  });

  test('are refused when they come twice, before their data is looked at', () => {
    const inputs = [input(), input()];
    refused({ inputs }, "[request id: <id_unknown>] input 'X' already exists in request");
    refused({ inputs, id: 'abc' }, "[request id: abc] input 'X' already exists in request");
    refused(
      { inputs, parameters: { timeout: { bool_param: true } } },
      "invalid value type for 'timeout' parameter, expected int64_param.",
    );
  });
});

describe('shared memory', () => {
  const both: [string, (parameters: object) => object][] = [
    ['input', (parameters) => ({ inputs: [input({ parameters })] })],
    [
      'output',
      (parameters) => ({
        inputs: [input()],
        raw_input_contents: RAW,
        outputs: [{ name: 'X', parameters }],
      }),
    ],
  ];
  for (const [what, message] of both) {
    for (const [parameters, text] of [
      [
        { shared_memory_offset: { int64_param: 4 } },
        "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'X'",
      ],
      [
        { shared_memory_byte_size: { int64_param: 4 } },
        "'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter for tensor 'X'",
      ],
      [
        { shared_memory_region: { string_param: 'r' } },
        "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'X'",
      ],
      [
        { ...REGION, shared_memory_region: { int64_param: 5 } },
        "invalid value type for 'shared_memory_region' parameter for tensor 'X', expected string_param.",
      ],
      [
        { ...REGION, shared_memory_offset: { string_param: '4' } },
        "invalid value type for 'shared_memory_offset' parameter for tensor 'X', expected int64_param.",
      ],
      [
        { ...REGION, shared_memory_byte_size: { uint64_param: 4 } },
        "invalid value type for 'shared_memory_byte_size' parameter for tensor 'X', expected int64_param.",
      ],
    ] as const) {
      test(`of an ${what}: ${text}`, () => refused(message(parameters), text));
    }
  }
});

describe('outputs', () => {
  const outputs = (...list: object[]) => ({ inputs: [input()], raw_input_contents: RAW, outputs: list });

  test('are names without repeats, and options where there are any', () => {
    const { request, outputs: options } = convert(
      outputs(
        { name: 'A' },
        { name: 'B', parameters: { classification: { int64_param: 3 } } },
        { name: 'A', parameters: { other: { int64_param: 1 } } },
        { name: 'C', parameters: REGION },
        { name: 'B', parameters: { classification: { int64_param: 5 } } },
      ),
    );
    assert.deepEqual(request.requestedOutputs, ['A', 'B', 'C']);
    assert.deepEqual(
      options,
      new Map<string, unknown>([
        ['B', { classCount: 3 }],
        ['C', { classCount: 0, sharedMemory: { region: 'r', offset: 0, byteSize: 4 } }],
      ]),
    );
  });

  test('are none when the request lists none', () => {
    const { request, outputs: options } = convert({});
    assert.deepEqual(request.requestedOutputs, []);
    assert.equal(options.size, 0);
  });

  test('refuse classification that is no positive integer, or in shared memory', () => {
    const classification = (value: object) => outputs({ name: 'Y', parameters: { classification: value } });
    const wrong = "invalid value type for 'classification' parameter, expected int64_param";
    refused(classification({ string_param: '2' }), wrong);
    refused(classification({ uint64_param: 2 }), wrong);
    const low = "invalid value for 'classification' parameter, expected >= 0";
    refused(classification({ int64_param: 0 }), low);
    refused(classification({ int64_param: -1 }), low);
    refused(
      outputs({ name: 'Y', parameters: { ...REGION, classification: { int64_param: 1 } } }),
      "output can't set both 'shared_memory_region' and 'classification'",
    );
  });

  test('are looked at after the inputs', () => {
    refused(
      { inputs: [input()], outputs: [{ name: 'Y', parameters: { classification: { int64_param: -1 } } }] },
      "unable to find data for input tensor 'X' for model 'm' in request.",
    );
  });
});
