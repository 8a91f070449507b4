// Seeded fuzzing of request decoding: whatever a client sends is decoded or refused, never worse.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelView } from '../../domain/model-view.ts';
import { StatusError } from '../../domain/status.ts';
import { createPrng, type Prng } from '../../lib/prng.ts';
import { createInferRequestDecoder } from './infer-request-decoder.ts';

const MODEL: ModelView = {
  name: 'm',
  version: 1,
  maxBatchSize: 0,
  inputs: [{ name: 'X', datatype: 'FP32', dims: [-1], optional: false }],
  outputs: [],
  isDecoupled: false,
  labelsOf: () => undefined,
};

const ROUNDS = 30_000;

function input(datatype: string, shape: string, rest: string): string {
  return `{"name":"X","datatype":"${datatype}","shape":${shape},${rest}}`;
}

const SEEDS = [
  `{"inputs":[${input('FP32', '[2,3]', '"data":[1,1,1,[1,1],1]')}]}`,
  `{"id":"1","inputs":[${input('FP32', '[1]', '"parameters":{"binary_data_size":4}')}]}\0\0\0\0`,
  `{"inputs":[${input('BYTES', '[1,4]', '"data":["a",["b\\u00e9\\/"],"","\\ud83d\\ude00"]')}]}`,
  `{"inputs":[${input('INT64', '[1,3]', '"data":[-9223372036854775808, 9223372036854775807, 0]')}]}`,
  `{"inputs":[${input('FP64', '[6]', '"data":[1E2,1e-7,123456789012345680000,0.000001,-0,NaN]')}]}`,
  `{"id":"a\\"b","parameters":{"sequence_id":1,"sequence_start":true,"a":2.5},"inputs":[${input('BOOL', '[1]', '"data":[true]')}],"outputs":[{"name":"Y","parameters":{"binary_data":true,"classification":2}}]}`,
].map((text) => Buffer.from(text));

const PIECES = '" \\ { } [ ] , : - + 1e999 \0 NaN Inf \\u null true 0 . e "data":[1] "parameters":{}'.split(
  ' ',
);

test('random mutations of valid bodies are decoded or refused with a StatusError', () => {
  const prng = createPrng(20261115);
  const decoder = createInferRequestDecoder();
  let decoded = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const seed = prng.pick(SEEDS);
    const body = mutate(seed, prng);
    const middle = body.length >> 1;
    const jsonLength = Math.max(0, Math.min(body.length, seed.length - prng.integer(0, 5)));
    const chunks = [body.subarray(0, middle), body.subarray(middle)];
    try {
      decoder.decode({
        body: chunks,
        bodyLength: body.length,
        jsonLength,
        model: MODEL,
        inputBytesMax: 1 << 20,
      });
      decoded += 1;
    } catch (thrown) {
      assert.ok(
        thrown instanceof StatusError,
        `${JSON.stringify(body.toString('latin1'))}: ${String(thrown)}`,
      );
    }
  }
  assert.ok(decoded > 0, 'some mutations must stay valid, or the fuzzing sees the first check only');
});

function mutate(seed: Buffer, prng: Prng): Buffer {
  let body: Buffer = Buffer.from(seed);
  for (let count = prng.integer(1, 3); count > 0; count--) {
    const at = prng.integer(0, body.length - 1);
    switch (prng.integer(0, 3)) {
      case 0:
        body[at] = prng.integer(0, 255);
        break;
      case 1:
        body = Buffer.concat([body.subarray(0, at), Buffer.from(prng.pick(PIECES)), body.subarray(at)]);
        break;
      case 2:
        body = Buffer.concat([body.subarray(0, at), body.subarray(at + prng.integer(1, 8))]);
        break;
      default: {
        const from = prng.integer(0, body.length - 1);
        body = Buffer.concat([body.subarray(0, at), body.subarray(from, from + 20), body.subarray(at)]);
      }
    }
    if (body.length === 0) return body;
  }
  return body;
}
