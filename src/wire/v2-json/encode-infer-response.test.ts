// Unit tests of response encoding; the texts are those of a recorded Triton 2.51 unless marked.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { type EncodedInferResponse, encodeInferResponse } from './encode-infer-response.ts';
import { doubleText } from './json-writer.ts';
import type { OutputOption } from './output-options.ts';

const MODEL: ModelView = {
  name: 'm',
  version: 1,
  maxBatchSize: 0,
  inputs: [],
  outputs: [],
  isDecoupled: false,
  labelsOf: () => undefined,
};

function tensor(datatype: DataType, shape: number[], data: Buffer, name = 'OUT'): OutputTensor {
  return { name, datatype, shape, data: [data], byteLength: data.length };
}

function bytesOf(values: ArrayBufferView): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

function responseOf(outputs: OutputTensor[], more: Partial<InferResponse> = {}): InferResponse {
  return { modelName: 'm', modelVersion: 1, id: '', parameters: undefined, outputs, ...more };
}

function encode(
  response: InferResponse,
  options: { byName?: [string, OutputOption][]; isBinaryDefault?: boolean; idBytes?: Buffer } = {},
): EncodedInferResponse {
  const outputs = { byName: new Map(options.byName), isBinaryDefault: options.isBinaryDefault ?? false };
  return encodeInferResponse(response, { outputs, model: MODEL, idBytes: options.idBytes });
}

function textOf(encoded: EncodedInferResponse): string {
  return Buffer.concat(encoded.parts).toString();
}

function dataText(output: OutputTensor): string {
  return /"data":\[(.*)\]\}\]\}$/.exec(textOf(encode(responseOf([output]))))![1]!;
}

test('members come in order: id, model, parameters, outputs', () => {
  const parameters = new Map<string, string | boolean | bigint | number>([
    ['sequence_id', 0n],
    ['sequence_start', false],
    ['d', 2],
    ['s', 'x"'],
  ]);
  const output = tensor('INT32', [1, 2], bytesOf(new Int32Array([1, -2])));
  const encoded = encode(responseOf([output], { id: 'a"b\\c', parameters }));
  assert.equal(
    textOf(encoded),
    '{"id":"a\\"b\\\\c","model_name":"m","model_version":"1","parameters":{"sequence_id":0,"sequence_start":false,"d":2.0,"s":"x\\""},"outputs":[{"name":"OUT","datatype":"INT32","shape":[1,2],"data":[1,-2]}]}',
  );
  assert.equal(encoded.jsonLength, undefined);
  assert.equal(encoded.byteLength, encoded.parts[0]!.length);
});

test('numbers are written as rapidjson writes them', () => {
  const texts = ['0.10000000149011612', '1.0', '-0.0', 'NaN', 'Infinity', '-Infinity', '16777216.0', '-1.5'];
  const fp32 = new Float32Array([0.1, 1, -0, Number.NaN, Infinity, -Infinity, 16777217, -1.5]);
  assert.equal(dataText(tensor('FP32', [8], bytesOf(fp32))), texts.join(','));
  const doubles: [number, string][] = [
    [1e21, '1e21'],
    [1e-7, '1e-7'],
    [123456789012345680000, '123456789012345680000.0'],
    [0.000001, '0.000001'],
    [1.5e300, '1.5e300'],
    [5e-324, '5e-324'],
    [100, '100.0'],
  ];
  for (const [value, text] of doubles) assert.equal(doubleText(value), text);
  assert.equal(
    dataText(tensor('INT64', [2], bytesOf(new BigInt64Array([-(2n ** 63n), 9007199254740993n])))),
    '-9223372036854775808,9007199254740993',
  );
  assert.equal(
    dataText(tensor('UINT64', [1], bytesOf(new BigUint64Array([2n ** 64n - 1n])))),
    '18446744073709551615',
  );
  assert.equal(dataText(tensor('BOOL', [2], Buffer.from([1, 0]))), 'true,false');
  assert.equal(dataText(tensor('INT8', [2], Buffer.from([255, 127]))), '-1,127');
  assert.equal(dataText(tensor('UINT16', [1], Buffer.from([255, 255]))), '65535');
  assert.equal(dataText(tensor('FP32', [1, 0], Buffer.alloc(0))), '');
});

test('a long array is complete', () => {
  const values = Float32Array.from({ length: 50_000 }, (_, i) => i / 4);
  const parsed = JSON.parse(textOf(encode(responseOf([tensor('FP32', [50_000], bytesOf(values))]))));
  assert.deepEqual(Float32Array.from(parsed.outputs[0].data), values);
});

test('strings keep their bytes, control characters are escaped', () => {
  const content = Buffer.from([0x01, 0x1f, 0x0a, 0x22, 0x5c, 0xff, 0xc3, 0xa9]);
  const data = Buffer.concat([Buffer.from([8, 0, 0, 0]), content, Buffer.from([0, 0, 0, 0])]);
  const encoded = encode(responseOf([tensor('BYTES', [1, 2], data)]));
  const expected = Buffer.concat([
    Buffer.from('"data":["\\u0001\\u001F\\n\\"\\\\'),
    Buffer.from([0xff, 0xc3, 0xa9]),
    Buffer.from('",""]'),
  ]);
  assert.ok(Buffer.concat(encoded.parts).includes(expected));
  const idBytes = Buffer.from([0xff, 0xfe]);
  const withId = encode(responseOf([], { id: '\ufffd\ufffd' }), { idBytes }).parts[0]!;
  assert.deepEqual(
    withId.subarray(0, 10),
    Buffer.concat([Buffer.from('{"id":"'), idBytes, Buffer.from('"')]),
  );
});

test('binary outputs follow the head, and only then its length is told', () => {
  const data = bytesOf(new Int32Array([1, 2]));
  const first = tensor('INT32', [1, 2], data, 'OUTPUT0');
  const second = tensor('INT32', [1, 2], data, 'OUTPUT1');
  const both = encode(responseOf([first, second]), { isBinaryDefault: true });
  const head =
    '{"model_name":"m","model_version":"1","outputs":[{"name":"OUTPUT0","datatype":"INT32","shape":[1,2],"parameters":{"binary_data_size":8}},{"name":"OUTPUT1","datatype":"INT32","shape":[1,2],"parameters":{"binary_data_size":8}}]}';
  assert.equal(both.parts[0]!.toString(), head);
  assert.equal(both.jsonLength, head.length);
  assert.equal(both.byteLength, head.length + 16);
  assert.equal(both.parts[1], data);
  const mixed = encode(responseOf([first, second]), {
    byName: [['OUTPUT1', { isBinary: true, classCount: 0 }]],
  });
  assert.match(
    mixed.parts[0]!.toString(),
    /"OUTPUT0".*"data":\[1,2\]},{"name":"OUTPUT1".*"binary_data_size":8}}\]}$/,
  );
  const empty = encode(responseOf([tensor('FP32', [1, 0], Buffer.alloc(0))]), { isBinaryDefault: true });
  assert.equal(empty.jsonLength, undefined);
  assert.match(textOf(empty), /"shape":\[1,0\],"parameters":{"binary_data_size":0}}\]}$/);
});

test('an output in shared memory is described and not sent, beside JSON and binary ones', () => {
  const range = { region: 'r', offset: 0, byteSize: 8 };
  const shared: OutputTensor = { name: 'S', datatype: 'FP16', shape: [1, 2], data: [], byteLength: 0 };
  const other = tensor('INT32', [1], bytesOf(new Int32Array([7])));
  const text = (isBinary: boolean, ...outputs: OutputTensor[]) => {
    const options = { byName: new Map(), isBinaryDefault: isBinary, rangeByName: new Map([['S', range]]) };
    return encodeInferResponse(responseOf(outputs), { outputs: options, model: MODEL });
  };
  const head =
    '{"model_name":"m","model_version":"1","outputs":[{"name":"S","datatype":"FP16","shape":[1,2]}';
  const alone = text(false, shared);
  assert.equal(textOf(alone), `${head}]}`);
  assert.equal(alone.jsonLength, undefined);
  assert.equal(
    textOf(text(false, shared, other)),
    `${head},{"name":"OUT","datatype":"INT32","shape":[1],"data":[7]}]}`,
  );
  const binary = text(true, shared, other);
  assert.equal(
    textOf(binary),
    `${head},{"name":"OUT","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}\x07\0\0\0`,
  );
  assert.equal(binary.jsonLength, binary.byteLength - 4);
});

test('half precision has no JSON form, and a wrong size is an internal error', () => {
  for (const datatype of ['FP16', 'BF16'] as const) {
    const output = tensor(datatype, [1, 2], Buffer.alloc(4));
    assert.throws(() => encode(responseOf([output])), {
      code: 'INVALID_ARG',
      message: `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
    });
    assert.doesNotThrow(() => encode(responseOf([output]), { isBinaryDefault: true }));
  }
  assert.throws(() => encode(responseOf([tensor('FP32', [3], Buffer.alloc(8))])), { code: 'INTERNAL' });
  assert.throws(() => encode(responseOf([tensor('BYTES', [1], Buffer.from([9, 0, 0, 0]))])), {
    code: 'INTERNAL',
  });
  assert.throws(() => encode(responseOf([tensor('BYTES', [1], Buffer.from([9, 0]))])), { code: 'INTERNAL' });
});
