// Requests and answers of the OpenAI API and of generate that are too large for the event loop, against a real server: what goes
// to the thread for JSON comes back the same, and others are answered meanwhile.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { callApi, type OpenAiServer, startOpenAiServer, streamApi, textOf } from '../support/openai.ts';
import { pythonSkip } from '../support/python.ts';

const LONG = 'wörd '.repeat(60_000).trim();
const TOKENS = Array.from({ length: 200_000 }, (_, i) => i % 50_000);

describe('large JSON', { skip: pythonSkip }, () => {
  let api: OpenAiServer;
  before(async () => {
    api = await startOpenAiServer();
  });
  after(async () => {
    await api.close();
  });
  const call = (path: string, body: object) =>
    callApi(`${api.httpUrl}${path}`, { model: 'contract', ...body });

  test('a chat, whole and as a stream', async () => {
    const body = { messages: [{ role: 'user', content: `say: ${LONG}` }] };
    const { status, json } = await call('/v1/chat/completions', body);
    assert.equal(status, 200);
    const [{ message }] = json.choices as [{ message: { content: string } }];
    assert.ok(message.content === LONG);
    const { chunks } = await streamApi(`${api.httpUrl}/v1/chat/completions`, { model: 'contract', ...body });
    assert.ok(textOf(chunks) === LONG);
  });

  test('a chat whose prompt the server renders', async () => {
    const body = { model: 'templated', messages: [{ role: 'user', content: `${LONG} say: this` }] };
    const { status, text } = await callApi(`${api.httpUrl}/v1/chat/completions`, body);
    assert.equal(status, 200);
    assert.match(text, /this/);
  });

  test('a prompt of tokens', async () => {
    const { json } = await call('/v1/completions', { prompt: TOKENS });
    const [{ text }] = json.choices as [{ text: string }];
    assert.deepEqual(JSON.parse(text).prompt_token_ids, TOKENS);
  });

  test('2048 texts to embed', async () => {
    const input = Array.from({ length: 2048 }, (_, i) => 'x'.repeat(100 + (i % 7)));
    const { json } = await call('/v1/embeddings', { input });
    const data = json.data as { index: number; embedding: number[] }[];
    assert.deepEqual(
      data.map(({ index, embedding }) => [index, embedding[0]]),
      input.map((text, i) => [i, text.length]),
    );
  });

  test('documents that come back with their rank, tokens, and text of tokens', async () => {
    const documents = ['a', `${LONG} zz zz`, 'zz'];
    const ranked = await call('/v1/rerank', { query: 'zz', documents, return_documents: true, top_n: 2 });
    const results = ranked.json.results as { index: number; document: { text: string } }[];
    assert.deepEqual(
      results.map(({ index, document }) => [index, document.text === documents[index]]),
      [
        [1, true],
        [2, true],
      ],
    );
    const tokens = await call('/v1/tokenize', { prompt: LONG });
    assert.equal(tokens.json.count, LONG.length);
    const back = await call('/v1/detokenize', { tokens: tokens.json.tokens });
    assert.ok(back.json.prompt === LONG);
  });

  test('what is wrong is named as in a small request', async () => {
    const url = `${api.httpUrl}/v1/completions`;
    const range = await call('/v1/completions', { prompt: LONG, temperature: 3 });
    assert.deepEqual([range.status, range.json.error?.param], [400, 'temperature']);
    const absent = await callApi(url, { model: 'absent', prompt: LONG });
    assert.deepEqual([absent.status, absent.json.error?.code], [404, 'model_not_found']);
    const broken = await callApi(url, JSON.stringify({ model: 'contract', prompt: LONG }).slice(0, -5));
    assert.equal(broken.status, 400);
    assert.match(broken.json.error?.message ?? '', /could not parse the JSON body/);
  });

  test('generate', async () => {
    const url = `${api.httpUrl}/v2/models/contract/generate`;
    const asked = { text_input: `say: ${LONG}`, stream: false, sampling_parameters: '{}' };
    const { status, json } = await callApi(url, asked);
    assert.equal(status, 200);
    assert.ok(json.text_output === LONG);
    const broken = await callApi(url, JSON.stringify(asked).slice(0, -5));
    assert.equal(broken.status, 500);
    assert.match(broken.text, /failed to parse the request JSON buffer/);
  });

  test('a small request passes the large ones', async () => {
    const order: string[] = [];
    const large = [1, 2, 3].map(async () => {
      await call('/v1/tokenize', { prompt: LONG });
      order.push('large');
    });
    await callApi(`${api.httpUrl}/v1/models`);
    order.push('small');
    await Promise.all(large);
    assert.deepEqual(order, ['small', 'large', 'large', 'large']);
  });
});
