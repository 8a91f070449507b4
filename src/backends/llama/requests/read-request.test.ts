// The six questions of a request, and what is refused before any of them is asked.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExecuteBatch } from '../../../backend/sdk.ts';
import { readRequest } from './read-request.ts';

function bytesElement(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const FLAG = Buffer.from([1]);

function read(inputs: Readonly<Record<string, Buffer>>) {
  const names = Object.keys(inputs);
  const payload = Buffer.concat(Object.values(inputs));
  let offset = 0;
  const batch: ExecuteBatch = {
    id: 1,
    payload,
    requests: [
      {
        requestedOutputs: [],
        inputs: names.map((name, index) => {
          const byteLength = inputs[name]!.length;
          offset += byteLength;
          return { index, shape: [1], offset: offset - byteLength, byteLength };
        }),
      },
    ],
  };
  return readRequest(batch, batch.requests[0]!, names);
}

describe('reading a request', () => {
  test('a text with nothing else', () => {
    assert.deepEqual(read({ text_input: bytesElement('Grüße') }), {
      question: { kind: 'text', text: 'Grüße' },
      isStream: false,
      samplingParameters: undefined,
      isInputExcluded: undefined,
      extras: new Set(),
    });
  });

  test('flags, extras and sampling parameters', () => {
    const request = read({
      text_input: bytesElement('x'),
      stream: FLAG,
      exclude_input_in_output: Buffer.from([0]),
      sampling_parameters: bytesElement('{"n":2}'),
      return_logprobs: FLAG,
      return_timings: FLAG,
      return_finish_reason: Buffer.from([0]),
    });
    assert.equal(request.isStream, true);
    assert.equal(request.isInputExcluded, false);
    assert.equal(request.samplingParameters, '{"n":2}');
    assert.deepEqual(request.extras, new Set(['logprobs', 'timings']));
  });

  test('tokens and JSON questions', () => {
    const tokens = Buffer.from(Int32Array.from([7, -1, 300]).buffer);
    assert.deepEqual(read({ prompt_token_ids: tokens }).question, { kind: 'tokens', tokens: [7, -1, 300] });
    const body = { input: 'a' };
    const json = bytesElement(JSON.stringify(body));
    assert.deepEqual(read({ chat_request: json }).question, { kind: 'chat', chat: body });
    assert.deepEqual(read({ embedding_request: json }).question, { kind: 'embed', body });
    assert.deepEqual(read({ rerank_request: json }).question, { kind: 'rerank', body });
    assert.deepEqual(read({ tokenize_request: json }).question, { kind: 'tokenize', body });
  });

  test('none, two, or wrong ones are refused by name', () => {
    assert.throws(
      () => read({ stream: FLAG }),
      /must have one of the inputs text_input, .*; this one has none/,
    );
    const text = bytesElement('{}');
    assert.throws(
      () => read({ text_input: text, chat_request: text }),
      /this one has text_input and chat_request/,
    );
    assert.throws(() => read({ chat_request: bytesElement('{') }), /input 'chat_request' is not JSON/);
    assert.throws(
      () => read({ rerank_request: bytesElement('[]') }),
      /'rerank_request' must be a JSON object/,
    );
    const two = Buffer.concat([bytesElement('a'), bytesElement('b')]);
    assert.throws(() => read({ text_input: two }), /input 'text_input' must have one element/);
    assert.throws(() => read({ text_input: Buffer.alloc(0) }), /must have one element/);
  });
});
