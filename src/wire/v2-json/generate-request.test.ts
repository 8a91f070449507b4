// The mapping of generate members to inputs and parameters, rule by rule.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import type { ModelView, TensorSpec } from '../../domain/model-view.ts';
import { StatusError } from '../../domain/status.ts';
import { type DecodedGenerateRequest, decodeGenerateRequest } from './generate-request.ts';

function input(name: string, datatype: DataType, dims: number[]): TensorSpec {
  return { name, datatype, dims, optional: false };
}

function model(inputs: TensorSpec[], maxBatchSize = 0): ModelView {
  return {
    name: 'm',
    version: 1,
    maxBatchSize,
    inputs,
    outputs: [],
    isDecoupled: true,
    labelsOf: () => undefined,
  };
}

const TEXT = model([input('text_input', 'BYTES', [1]), input('max_tokens', 'INT32', [1])]);

function decode(
  body: string | Buffer,
  view: ModelView = TEXT,
  inputBytesMax = 1 << 20,
): DecodedGenerateRequest {
  return decodeGenerateRequest({ body: Buffer.from(body), model: view, inputBytesMax });
}

function refused(body: string | Buffer, view?: ModelView, inputBytesMax?: number): string {
  try {
    decode(body, view, inputBytesMax);
  } catch (thrown) {
    assert.ok(thrown instanceof StatusError);
    return `${thrown.code} ${thrown.message}`;
  }
  assert.fail(`not refused: ${body}`);
}

/** Name, datatype, shape and bytes in hexadecimal of each input. */
function inputsOf(body: string | Buffer, view?: ModelView): unknown[] {
  return decode(body, view).request.inputs.map(({ name, datatype, shape, data, byteLength }) => {
    const bytes = Buffer.concat(data);
    assert.equal(byteLength, bytes.length);
    return [name, datatype, shape, bytes.toString('hex')];
  });
}

function shapesOf(body: string, dims: number[], maxBatchSize = 0): readonly number[] {
  const view = model([input('X', 'UINT8', dims)], maxBatchSize);
  return decode(body, view).request.inputs[0]!.shape;
}

describe('inputs', () => {
  test('a lone value is a tensor of one element', () => {
    assert.deepEqual(inputsOf('{"text_input": "ab", "max_tokens" : 3}'), [
      ['text_input', 'BYTES', [1], '020000006162'],
      ['max_tokens', 'INT32', [1], '03000000'],
    ]);
  });

  test('come in document order, whatever stands between them', () => {
    const body = '{"a":{"not":"here"}, "max_tokens":[ -1 ],"text_input":"é\\n\\u0000"}';
    assert.throws(() => decode(body), /parameter 'a' has invalid type/);
    assert.deepEqual(inputsOf(body.replace('{"not":"here"}', '"}]\\""')), [
      ['max_tokens', 'INT32', [1], 'ffffffff'],
      ['text_input', 'BYTES', [1], '04000000c3a90a00'],
    ]);
  });

  test('of every datatype, as a scalar', () => {
    const cases: [DataType, string, string][] = [
      ['BOOL', 'true', '01'],
      ['UINT8', '255', 'ff'],
      ['INT16', '-2', 'feff'],
      ['UINT32', '4294967295', 'ffffffff'],
      ['INT64', '-9223372036854775808', '0000000000000080'],
      ['UINT64', '18446744073709551615', 'ffffffffffffffff'],
      ['FP32', '1', '0000803f'],
      ['FP32', 'NaN', '0000c07f'],
      ['FP64', '-0.0', '0000000000000080'],
      ['FP64', '1e3', '0000000000408f40'],
      ['BYTES', '""', '00000000'],
    ];
    for (const [datatype, text, hex] of cases) {
      const view = model([input('X', datatype, [1])]);
      assert.deepEqual(inputsOf(`{"X":${text}}`, view), [['X', datatype, [1], hex]], datatype);
    }
  });

  test('keep strings that are not UTF-8 as they are', () => {
    const body = Buffer.concat([Buffer.from('{"text_input":"'), Buffer.of(0xff, 0x41), Buffer.from('"}')]);
    assert.deepEqual(inputsOf(body), [['text_input', 'BYTES', [1], '02000000ff41']]);
  });

  test('of the wrong type', () => {
    const bytes = 'INTERNAL Unable to parse JSON bytes array: attempt to access JSON non-string as string';
    const integer =
      "INTERNAL Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer";
    for (const value of ['5', 'null', 'true', '{"a":"b"}', '["a", 1]']) {
      assert.equal(refused(`{"text_input":${value}}`), bytes);
    }
    for (const value of ['"3"', '3.5', '3.0', 'null', '{}', 'true', '[[{}]]']) {
      assert.equal(refused(`{"max_tokens":${value}}`), integer);
    }
    for (const datatype of ['FP16', 'BF16'] as const) {
      assert.equal(
        refused('{"X":1}', model([input('X', datatype, [1])])),
        `INVALID_ARG receiving ${datatype} data via JSON is not supported. Please use the binary data format for input X`,
      );
    }
  });

  test('nested arrays have more elements than the shape was made for', () => {
    assert.equal(
      refused('{"X":[[1,2]]}', model([input('X', 'INT32', [-1])])),
      "INTERNAL Unable to parse 'data': Shape does not match true shape of 'data' field",
    );
  });

  test('given twice', () => {
    const text = "input 'text_input' already exists in request";
    assert.equal(
      refused('{"text_input":"a","text_input":"b"}'),
      `INVALID_ARG [request id: <id_unknown>] ${text}`,
    );
    assert.equal(
      refused('{"id":"7","text_input":"a","parameters":{"text_input":"b"}}'),
      `INVALID_ARG Converting keyword: 'parameters': [request id: 7] ${text}`,
    );
  });
});

describe('shape', () => {
  test('fixed dimensions share the elements, the innermost variable one takes the rest', () => {
    assert.deepEqual(shapesOf('{"X":1}', [1]), [1]);
    assert.deepEqual(shapesOf('{"X":1}', [1], 8), [1, 1]);
    assert.deepEqual(shapesOf('{"X":[1,2,3]}', [-1]), [3]);
    assert.deepEqual(shapesOf('{"X":[1,2,3]}', [-1], 8), [1, 3]);
    assert.deepEqual(shapesOf('{"X":[1,2,3,4]}', [2], 8), [2, 2]);
    assert.deepEqual(shapesOf('{"X":[1,2,3,4,5,6]}', [2, -1, 3, 1]), [2, 1, 3, 1]);
    assert.deepEqual(shapesOf('{"X":[1,2,3,4,5,6]}', [-1, 2, -1]), [1, 2, 3]);
    assert.deepEqual(shapesOf('{"X":1}', []), []);
  });

  test('an empty array has a dimension of 0', () => {
    assert.deepEqual(shapesOf('{"X":[]}', [-1], 8), [1, 0]);
    assert.deepEqual(shapesOf('{"X":[ ]}', [2], 8), [0, 2]);
  });

  test('that cannot be met', () => {
    const text = "INVALID_ARG The schema can not convert input 'X' to tensor with proper shape";
    const cases: [string, number[], number][] = [
      ['{"X":[1,2,3,4,5]}', [2, 3], 0],
      ['{"X":[1,2,3]}', [2], 8],
      ['{"X":[1,2]}', [1], 0],
      ['{"X":[]}', [1], 0],
      ['{"X":1}', [2, -1], 0],
    ];
    for (const [body, dims, maxBatchSize] of cases) {
      assert.equal(refused(body, model([input('X', 'UINT8', dims)], maxBatchSize)), text);
    }
  });

  test('is checked before the elements', () => {
    assert.match(refused('{"X":["a","b"]}', model([input('X', 'UINT8', [1])])), /proper shape/);
    assert.match(refused('{"X":[1,2]}', model([input('X', 'BYTES', [1])])), /JSON bytes array/);
  });
});

describe('parameters', () => {
  test('members that are no input, by their JSON type', () => {
    const { request } = decode(
      '{"text_input":"a","s":"t","i":-3,"big":9223372036854775808,"b":false,"d":0.5,"one":1.0}',
    );
    assert.deepEqual(
      [...request.parameters!],
      [
        ['s', 't'],
        ['i', -3n],
        ['big', 2 ** 63],
        ['b', false],
        ['d', 0.5],
        ['one', 1],
      ],
    );
    assert.equal(request.inputs.length, 1);
  });

  test('the keys of Triton are parameters like all others', () => {
    const { request } = decode(
      '{"sequence_id":5,"sequence_start":true,"priority":1,"timeout":9,"triton_x":1}',
    );
    assert.equal(request.parameters?.size, 5);
    assert.equal(request.correlationId, 0n);
    assert.equal(request.sequenceFlags, 0);
    assert.equal(request.priority, 0);
    assert.equal(request.timeoutUs, 0);
  });

  test('of a type that none has', () => {
    const text = "parameter 'x' has invalid type. It should be either 'int', 'bool', or 'string'.";
    for (const value of ['null', '[1]', '{}']) {
      assert.equal(refused(`{"x":${value}}`), `INVALID_ARG ${text}`);
      assert.equal(
        refused(`{"parameters":{"x":${value}}}`),
        `INVALID_ARG Converting keyword: 'parameters': ${text}`,
      );
    }
  });

  test('none are undefined', () => {
    assert.equal(decode('{"text_input":"a"}').request.parameters, undefined);
  });

  test('inside `parameters` are mapped like those outside', () => {
    const { request } = decode('{"parameters":{"text_input":"a","p":1},"q":2}');
    assert.deepEqual(
      request.inputs.map(({ name }) => name),
      ['text_input'],
    );
    assert.deepEqual(
      [...request.parameters!],
      [
        ['p', 1n],
        ['q', 2n],
      ],
    );
  });

  test('`parameters` is an object, one level deep, and no input', () => {
    assert.equal(
      refused('{"parameters":3}'),
      "INTERNAL Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object",
    );
    assert.match(refused('{"parameters":{"parameters":{}}}'), /parameter 'parameters' has invalid type/);
    assert.equal(
      refused('{"parameters":{}}', model([input('parameters', 'BYTES', [1])])),
      "INVALID_ARG Keyword 'parameters' for nested schema also given as input tensor name",
    );
  });
});

describe('the request', () => {
  test('id is the request id and a parameter as well', () => {
    const { request, idBytes } = decode('{"id":"g1","text_input":"a"}');
    assert.equal(request.id, 'g1');
    assert.equal(idBytes, undefined);
    assert.equal(request.parameters?.get('id'), 'g1');
    assert.equal(
      refused('{"id":5}'),
      "INTERNAL Unable to parse 'id': attempt to access JSON non-string as string",
    );
  });

  test('id of other bytes than UTF-8 is kept', () => {
    const body = Buffer.concat([Buffer.from('{"id":"'), Buffer.of(0xfe, 0x41), Buffer.from('"}')]);
    assert.deepEqual(decode(body).idBytes, Buffer.of(0xfe, 0x41));
  });

  test('that is no JSON object', () => {
    const parse = 'INTERNAL failed to parse the request JSON buffer: ';
    assert.equal(refused('{"text_input":'), `${parse}Invalid value. at 14`);
    assert.equal(refused('{'), `${parse}Missing a name for object member. at 1`);
    assert.equal(refused(''), `${parse}The document is empty. at 0`);
    assert.equal(refused('[]'), 'INTERNAL attempt to get members for non-object');
    assert.deepEqual(decode('{}').request.inputs, []);
  });

  test('the first mistake in document order is named', () => {
    assert.match(refused('{"x":null,"text_input":5}'), /parameter 'x'/);
    assert.match(refused('{"text_input":5,"x":null}'), /JSON bytes array/);
  });

  test('that is too large', () => {
    assert.equal(
      refused('{"text_input":"abc"}', TEXT, 19),
      'INVALID_ARG request JSON size of 20 bytes exceeds the maximum allowed input size of 19 bytes. Use --http-max-input-size to increase the limit.',
    );
    const view = model([input('A', 'INT64', [-1]), input('B', 'INT64', [-1])]);
    assert.equal(
      refused('{"A":[1,2],"B":[1,2]}', view, 24),
      "INVALID_ARG request size of 16 bytes with input 'B' of size 16 bytes exceeds the maximum allowed input size of 24. Use --http-max-input-size to increase the limit.",
    );
  });
});
