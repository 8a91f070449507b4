import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CACHE_STEP_BYTES_MAX } from '../../domain/limits.ts';
import type { InferRequest, ParameterValue } from '../../domain/request.ts';
import { digestInSteps, digestOf, keyOf } from './cache-key.ts';
import { input, requestOf } from './test-served.ts';

function bytesOf(request: InferRequest, scope = 'm:1:a'): string {
  const key = keyOf(scope, request);
  const bytes = Buffer.concat([...key.pieces]);
  assert.equal(bytes.length, key.byteLength);
  return bytes.toString('latin1');
}

const withParameter = (value: ParameterValue) => requestOf([1], { parameters: new Map([['p', value]]) });

test('anything that may change the answer changes the key', () => {
  const requests: readonly (readonly [string, InferRequest])[] = [
    ['plain', requestOf([1, 2])],
    ['bytes', requestOf([1, 3])],
    ['shape', requestOf([1, 2], { inputs: [input('X', [1, 2], { shape: [2, 1] })] })],
    ['datatype', requestOf([1, 2], { inputs: [input('X', [1, 2], { datatype: 'INT32' })] })],
    ['input name', requestOf([1, 2], { inputs: [input('Z', [1, 2])] })],
    ['one more input', requestOf([1, 2], { inputs: [input('X', [1, 2]), input('Z', [])] })],
    ['requested output', requestOf([1, 2], { requestedOutputs: ['Y'] })],
    ['other output', requestOf([1, 2], { requestedOutputs: ['Z'] })],
    ['both outputs', requestOf([1, 2], { requestedOutputs: ['Y', 'Z'] })],
    ['both, turned round', requestOf([1, 2], { requestedOutputs: ['Z', 'Y'] })],
    ['correlation id', requestOf([1, 2], { correlationId: 5n })],
    ['correlation id as text', requestOf([1, 2], { correlationId: '5' })],
    ['sequence flags', requestOf([1, 2], { sequenceFlags: 1 })],
    ['string parameter', withParameter('1')],
    ['integer parameter', withParameter(1n)],
    ['double parameter', withParameter(1)],
    ['boolean parameter', withParameter(true)],
    ['zero', withParameter(0)],
    ['negative zero', withParameter(-0)],
    ['not a number', withParameter(Number.NaN)],
    ['the text NaN', withParameter('NaN')],
  ];
  const seen = new Map<string, string>();
  for (const [what, request] of requests) {
    const bytes = bytesOf(request);
    assert.equal(seen.get(bytes), undefined, `${what} has the key of ${seen.get(bytes)}`);
    seen.set(bytes, what);
  }
  assert.notEqual(bytesOf(requestOf([1, 2])), bytesOf(requestOf([1, 2]), 'm:1:b'));
});

test('bytes that move from one input to the next make another key', () => {
  const split = (at: number) => {
    const data = Buffer.from('abcdef');
    const part = (name: string, bytes: Buffer) =>
      input(name, [], { datatype: 'BYTES', shape: [1], data: [bytes], byteLength: bytes.length });
    return requestOf([], { inputs: [part('A', data.subarray(0, at)), part('B', data.subarray(at))] });
  };
  assert.notEqual(bytesOf(split(2)), bytesOf(split(3)));
});

test('what only says when and to whom to answer does not change the key', () => {
  const plain = bytesOf(requestOf([1, 2]));
  assert.equal(bytesOf(requestOf([1, 2], { id: 'other' })), plain);
  assert.equal(bytesOf(requestOf([1, 2], { priority: 3, timeoutUs: 500 })), plain);
  const inputs = [input('A', [1]), input('B', [2])];
  assert.equal(bytesOf(requestOf([], { inputs })), bytesOf(requestOf([], { inputs: inputs.toReversed() })));
  const parameters = [
    ['a', 1n],
    ['b', 2n],
  ] as const;
  assert.equal(
    bytesOf(requestOf([1], { parameters: new Map(parameters) })),
    bytesOf(requestOf([1], { parameters: new Map(parameters.toReversed()) })),
  );
  const whole = Buffer.from([1, 2, 3, 4]);
  const pieces = [whole.subarray(0, 1), whole.subarray(1)];
  const of = (data: readonly Buffer[]) =>
    requestOf([], { inputs: [input('X', [], { data, byteLength: 4 })] });
  assert.equal(bytesOf(of(pieces)), bytesOf(of([whole])));
});

test('a digest in steps is the digest in one go, and lets others run', async () => {
  const data = Buffer.alloc(3 * CACHE_STEP_BYTES_MAX + 17, 'x');
  const pieces = [data.subarray(0, 5), data.subarray(5)];
  const key = keyOf(
    's',
    requestOf([], { inputs: [input('X', [], { data: pieces, byteLength: data.length })] }),
  );
  let turns = 0;
  const count = (): void => {
    turns++;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  const digest = await digestInSteps(key);
  clearImmediate(immediate);
  assert.equal(digest, digestOf(key));
  assert.ok(turns >= 2, `${turns} turns of the event loop`);
});
