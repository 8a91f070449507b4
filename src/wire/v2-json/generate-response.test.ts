// The JSON object of a generate response: members, their order, scalars and arrays.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import type { InferResponse, ParameterValue } from '../../domain/request.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { encodeGenerateResponse } from './generate-response.ts';

function output(name: string, datatype: DataType, shape: number[], data: Buffer): OutputTensor {
  return { name, datatype, shape, data: [data], byteLength: data.length };
}

function strings(...texts: string[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(text));
      return [length, Buffer.from(text)];
    }),
  );
}

function encode(
  outputs: OutputTensor[],
  options: { id?: string; idBytes?: Buffer; parameters?: [string, ParameterValue][] } = {},
): string {
  const response: InferResponse = {
    modelName: 'm',
    modelVersion: 2,
    id: options.id ?? '',
    parameters: options.parameters === undefined ? undefined : new Map(options.parameters),
    outputs,
  };
  return encodeGenerateResponse(response, { idBytes: options.idBytes }).toString('latin1');
}

test('members are sorted by name, capitals first', () => {
  const outputs = [
    output('text', 'BYTES', [1], strings('a')),
    output('Zed', 'BOOL', [1], Buffer.of(1)),
    output('idx', 'UINT8', [1], Buffer.of(7)),
  ];
  assert.equal(
    encode(outputs, { id: 'r"1' }),
    String.raw`{"Zed":true,"id":"r\"1","idx":7,"model_name":"m","model_version":"2","text":"a"}`,
  );
});

test('one element stands alone, any other number is a flat array', () => {
  const int32 = (...values: number[]): Buffer => Buffer.from(Int32Array.from(values).buffer);
  assert.match(encode([output('X', 'INT32', [1, 1], int32(-5))]), /"X":-5,/);
  assert.match(encode([output('X', 'INT32', [], int32(3))]), /"X":3,/);
  assert.match(encode([output('X', 'INT32', [2, 2], int32(1, 2, 3, 4))]), /"X":\[1,2,3,4\],/);
  assert.match(encode([output('X', 'INT32', [1, 0], int32())]), /"X":\[\],/);
  assert.match(encode([output('X', 'BYTES', [2], strings('a', 'b'))]), /"X":\["a","b"\],/);
});

test('doubles have a fraction, strings keep their bytes', () => {
  const floats = Buffer.from(Float32Array.of(1, 0.5).buffer);
  assert.match(encode([output('X', 'FP32', [2], floats)]), /"X":\[1\.0,0\.5\]/);
  const bytes = Buffer.concat([Buffer.of(2, 0, 0, 0), Buffer.of(0xff, 0x0a)]);
  assert.match(encode([output('X', 'BYTES', [1], bytes)]), /"X":"\xff\\n"/);
});

test('response parameters stand beside the outputs', () => {
  const parameters: [string, ParameterValue][] = [
    ['sequence_id', 0n],
    ['b', false],
    ['d', 2],
    ['s', 'x'],
  ];
  assert.equal(
    encode([], { parameters }),
    '{"b":false,"d":2.0,"model_name":"m","model_version":"2","s":"x","sequence_id":0}',
  );
});

test('of two members of one name the first stays: model, then parameters, then outputs', () => {
  const outputs = [
    output('model_name', 'UINT8', [1], Buffer.of(1)),
    output('p', 'UINT8', [1], Buffer.of(2)),
    output('id', 'UINT8', [1], Buffer.of(3)),
  ];
  assert.equal(
    encode(outputs, { parameters: [['p', 'q']] }),
    '{"id":3,"model_name":"m","model_version":"2","p":"q"}',
  );
});

test('an id that is not UTF-8 is echoed byte by byte', () => {
  assert.match(encode([], { id: '\ufffd', idBytes: Buffer.of(0xfe) }), /"id":"\xfe"/);
});

test('half precision cannot be written', () => {
  assert.throws(() => encode([output('X', 'FP16', [1], Buffer.alloc(2))]), {
    code: 'INVALID_ARG',
    message: 'sending FP16 data via JSON is not supported. Please use the binary data format for output',
  });
});
