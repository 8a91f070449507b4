// The thread for JSON gives the same requests, answers, prompts and refusals as the event loop.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import { JsonThread, toBuffer } from '../json-thread.ts';
import { ApiError } from './api-error.ts';
import { type AnswerForm, writeDocument } from './document-answers.ts';
import { readOnThread, renderOnThread, writeOnThread } from './large-json.ts';
import { type RequestName, readRequest } from './read-request.ts';
import { renderChat } from './render-chat.ts';

const thread = new JsonThread();
after(() => thread.close());

const MESSAGES = [{ role: 'user', content: 'grüß dich' }];
const ADD = { type: 'function', function: { name: 'add' } };
const LONG = 'wörd '.repeat(40_000);

function bodyOf(body: unknown): Buffer[] {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  // As a body comes: in pieces that cut characters in two.
  return [bytes.subarray(0, 1001), bytes.subarray(1001)];
}

/** With all bytes as one type: structured clone makes Uint8Arrays of Buffers. */
function plain(value: unknown): unknown {
  if (value instanceof Int32Array) return [...value];
  if (value instanceof Uint8Array) return toBuffer(value).toString('latin1');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]));
}

describe('a request', () => {
  const CASES: readonly [RequestName, object][] = [
    ['chat', { messages: MESSAGES, tools: [ADD], tool_choice: 'required', stop: ['a'], n: 2 }],
    ['chat', { messages: [{ role: 'user', content: LONG }], chat_template_kwargs: { a: 1 }, stream: true }],
    ['completion', { prompt: LONG, logit_bias: { 1: 2 }, guided_regex: 'a+' }],
    ['completion', { prompt: [LONG, 'short'], seed: 5 }],
    ['completion', { prompt: [[1, 2, 3], Array.from({ length: 50_000 }, (_, i) => i)] }],
    ['embeddings', { input: [LONG, 'b'], dimensions: 3, encoding_format: 'base64' }],
    ['rerank', { query: 'q', documents: [LONG, { text: 'b' }], return_documents: true, top_n: 1 }],
    ['tokenize', { prompt: LONG, return_token_strs: true }],
    ['detokenize', { tokens: Array.from({ length: 50_000 }, (_, i) => i) }],
  ];
  for (const [name, fields] of CASES) {
    test(`${name}: ${Object.keys(fields).join(', ')}`, async () => {
      const body = { model: 'm', ...fields };
      const there = await readOnThread(thread, name, bodyOf(body));
      assert.deepEqual(plain(there), plain(readRequest(name, bodyOf(body))));
    });
  }
});

test('a refusal keeps its status, its text and the field it names', async () => {
  const CASES: readonly [RequestName, unknown][] = [
    ['chat', { model: 'm', messages: [{ role: 'nobody', content: LONG }] }],
    ['completion', { model: 'm', prompt: [1, 2, -3, LONG] }],
    ['completion', { model: 'm', prompt: 'x', stop_token_ids: Array(2000).fill(1) }],
    ['completion', { model: 'm', prompt: 'x', guided_grammar: LONG }],
    ['embeddings', { model: 'm', input: Array(3000).fill('x') }],
    ['rerank', `{"model": "m", "query": "${LONG}`],
    ['tokenize', `["${LONG}"]`],
  ];
  for (const [name, body] of CASES) {
    let here: unknown;
    try {
      readRequest(name, bodyOf(body));
    } catch (thrown) {
      here = thrown;
    }
    assert.ok(here instanceof ApiError, `${name} is not refused`);
    const { message, detail } = here;
    await assert.rejects(readOnThread(thread, name, bodyOf(body)), (error) => {
      assert.ok(error instanceof ApiError, String(error));
      assert.deepEqual([error.message, error.detail], [message, detail]);
      return true;
    });
  }
});

describe('an answer', () => {
  const vectors = Array.from({ length: 500 }, (_, i) => Array.from({ length: 300 }, (_, j) => i / (j + 1)));
  const CASES: readonly [string, object, AnswerForm][] = [
    [
      'floats',
      { embeddings: vectors, prompt_tokens: 9 },
      { kind: 'embeddings', model: 'm', isBase64: false },
    ],
    ['base64', { embeddings: vectors, prompt_tokens: 9 }, { kind: 'embeddings', model: 'm', isBase64: true }],
    ['tokens', { tokens: [1], count: 1, pieces: [LONG] }, { kind: 'tokenize', hasPieces: true }],
    ['text', { text: LONG }, { kind: 'detokenize' }],
  ];
  for (const [name, document, form] of CASES) {
    test(`of ${name}`, async () => {
      const answer = Buffer.from(JSON.stringify(document));
      const before = answer.toString('latin1');
      const written = await writeOnThread(thread, answer, form);
      assert.ok(written.equals(writeDocument(answer, form)));
      assert.equal(answer.toString('latin1'), before, 'the answer is still there for others');
    });
  }

  test('of several copies is put together in order', async () => {
    const text = Array.from({ length: 300_000 }, (_, i) => i).join(' ');
    const answer = Buffer.from(JSON.stringify({ text }));
    assert.ok(answer.length > 1024 * 1024);
    const written = JSON.parse(String(await writeOnThread(thread, answer, { kind: 'detokenize' })));
    assert.equal(written.prompt, text);
  });

  test('that is no JSON is an error of the server', async () => {
    await assert.rejects(
      writeOnThread(thread, Buffer.from('oh no'), { kind: 'detokenize' }),
      (error) =>
        error instanceof StatusError && error.code === 'INTERNAL' && /is not JSON/.test(error.message),
    );
  });
});

describe('a chat', () => {
  const chat = () =>
    Buffer.from(JSON.stringify({ messages: [...MESSAGES, { role: 'user', content: LONG }] }));
  const options = { model: 'm', beginText: '<s>', endText: '</s>' };

  test('is rendered', async () => {
    for (const template of [
      undefined,
      '{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}',
    ]) {
      const here = renderChat({ ...options, template, chat: chat() });
      const there = await renderOnThread(thread, { ...options, template, chat: chat() });
      assert.ok(here.length > LONG.length);
      assert.equal(toBuffer(there).toString(), here);
    }
  });

  test('is refused by its template as a mistake of the client', async () => {
    const template = "{{ raise_exception('no') }}";
    await assert.rejects(
      renderOnThread(thread, { ...options, template, chat: chat() }),
      (error) => error instanceof ApiError && error.detail.param === 'messages',
    );
  });
});
