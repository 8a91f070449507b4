// Elements as a C++ stream prints them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DataType } from '../../domain/datatype.ts';
import { streamNumber, tensorText } from './tensor-text.ts';

test('numbers have six digits, as %g', () => {
  for (const [value, text] of [
    [1.5, '1.5'],
    [0.1, '0.1'],
    [Math.fround(0.705676), '0.705676'],
    [100000, '100000'],
    [123456.7, '123457'],
    [999999.5, '1e+06'],
    [1e10, '1e+10'],
    [-1.5e-7, '-1.5e-07'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1e300, '1e+300'],
    [0, '0'],
    [-0, '-0'],
    [Number.NaN, 'nan'],
    [Number.NEGATIVE_INFINITY, '-inf'],
  ] as const) {
    assert.equal(streamNumber(value), text);
  }
});

function textOf(datatype: DataType, shape: number[], bytes: Buffer): string {
  // in two pieces, as bodies come
  const data = [bytes.subarray(0, 3), bytes.subarray(3)];
  return tensorText({ name: 'X', datatype, shape, data, byteLength: bytes.length });
}

test('elements of every type are separated by commas', () => {
  const bytes = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
  assert.equal(textOf('BOOL', [4], bytes.subarray(0, 4)), '1,0,0,0');
  assert.equal(textOf('UINT8', [2, 2], bytes.subarray(6, 10)), '0,0,255,255');
  assert.equal(textOf('INT8', [2, 2], bytes.subarray(6, 10)), '0,0,-1,-1');
  assert.equal(textOf('UINT16', [8], bytes), '1,0,0,0,65535,65535,65535,65535');
  assert.equal(textOf('INT16', [8], bytes), '1,0,0,0,-1,-1,-1,-1');
  assert.equal(textOf('UINT32', [4], bytes), '1,0,4294967295,4294967295');
  assert.equal(textOf('INT32', [4], bytes), '1,0,-1,-1');
  assert.equal(textOf('UINT64', [2], bytes), '1,18446744073709551615');
  assert.equal(textOf('INT64', [2], bytes), '1,-1');
  assert.equal(textOf('FP32', [2], Buffer.from(new Float32Array([1.5, 0.1]).buffer)), '1.5,0.1');
  assert.equal(textOf('FP64', [2], Buffer.from(new Float64Array([1.5, 1e10]).buffer)), '1.5,1e+10');
  assert.equal(textOf('FP16', [8], bytes), '', 'half precision has no text in Triton either');
  assert.equal(textOf('INT32', [0], Buffer.alloc(0)), '');
});

test('texts are in quotes; bytes that end too early end the list', () => {
  const element = (text: string): Buffer => {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const bytes = Buffer.concat([element('hé'), element('bc')]);
  assert.equal(textOf('BYTES', [1, 2], bytes), '"hé","bc"');
  assert.equal(textOf('BYTES', [1, 2], bytes.subarray(0, -1)), '"hé"');
});
