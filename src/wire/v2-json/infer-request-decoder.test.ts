// Unit tests of the memo of request heads: it must never be told from the plain decoder.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelView } from '../../domain/model-view.ts';
import { decodeInferRequest } from './decode-infer-request.ts';
import { createInferRequestDecoder } from './infer-request-decoder.ts';

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

const BINARY =
  '{"inputs":[{"name":"X","datatype":"FP32","shape":[2,3],"parameters":{"binary_data_size":24}}]}';

test('the memo gives what the plain decoder gives, with the id and the bytes of each request', () => {
  const decoder = createInferRequestDecoder({ entriesMax: 2 });
  for (let round = 0; round < 12; round++) {
    const id = round % 2 === 0 ? `{"id":"r${round}",` : '{';
    const size = 4 * ((round >> 1) % 3);
    const json = Buffer.from(
      BINARY.replace('{', id)
        .replace('24', String(size))
        .replace(/}$/, ',"outputs":[{"name":"Y","parameters":{"binary_data":true}}]}'),
    );
    const body = Buffer.concat([json, Buffer.alloc(size, round)]);
    const options = {
      body: [body],
      bodyLength: body.length,
      jsonLength: json.length,
      model: NOBATCH,
      inputBytesMax: INPUT_BYTES_MAX,
    };
    assert.deepEqual(decoder.decode(options), decodeInferRequest(options));
    assert.deepEqual(decoder.decode(options), decodeInferRequest(options));
    assert.throws(
      () => decoder.decode({ ...options, body: [body, Buffer.alloc(1)], bodyLength: body.length + 1 }),
      {
        message: "unexpected additional input data for model 'nobatch'",
      },
    );
  }
  const rest = Buffer.from(BINARY.slice(1));
  assert.throws(
    () =>
      decoder.decode({
        body: [rest],
        bodyLength: rest.length,
        jsonLength: rest.length,
        model: NOBATCH,
        inputBytesMax: INPUT_BYTES_MAX,
      }),
    /The document root must not be followed by other values/,
  );
});

test('the memo keeps ranges of shared memory, and takes the binary inputs beside them from the body', () => {
  const decoder = createInferRequestDecoder();
  const json = Buffer.from(
    '{"inputs":[{"name":"S","datatype":"FP32","shape":[4],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":16}},' +
      '{"name":"X","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}],' +
      '"outputs":[{"name":"Y","parameters":{"shared_memory_region":"r","shared_memory_offset":16,"shared_memory_byte_size":8}}]}',
  );
  for (let round = 0; round < 3; round++) {
    const body = Buffer.concat([json, Buffer.alloc(8, round)]);
    const options = {
      body: [body],
      bodyLength: body.length,
      jsonLength: json.length,
      model: NOBATCH,
      inputBytesMax: INPUT_BYTES_MAX,
    };
    const decoded = decoder.decode(options);
    assert.deepEqual(decoded, decodeInferRequest(options));
    assert.deepEqual(decoded.request.inputs[0]?.data, []);
    assert.deepEqual([...Buffer.concat(decoded.request.inputs[1]!.data)], Array(8).fill(round));
    assert.equal(decoded.ranges?.outputs?.get('Y')?.offset, 16);
  }
});
