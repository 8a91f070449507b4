// The OpenAI API of a real server with Python text models, byte by byte: chat and text completions with and without streams,
// tools, choices, errors, API keys, restricted APIs, clients that go away or read slowly, and the port of its own.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../support/load.ts';
import {
  type ApiAnswer,
  abandonAfterFirstByte,
  callApi,
  type OpenAiServer,
  startOpenAiServer,
  streamApi,
  textOf,
} from '../support/openai.ts';
import { pythonSkip } from '../support/python.ts';
import { createRepository } from '../support/repository.ts';

const say = (text: string) => [{ role: 'user', content: `say: ${text}` }];
const ADD = { type: 'function', function: { name: 'add', parameters: { type: 'object' } } };
const CALL = '<tool_call>{"name":"add","arguments":{"a":1,"b":[2]}}</tool_call>';

interface Completion {
  readonly choices: {
    readonly index: number;
    readonly text: string;
    readonly message: { content: string | null; tool_calls?: { function: { arguments: string } }[] };
    readonly finish_reason: string;
  }[];
  readonly usage: Record<string, unknown> | null;
}

describe('the OpenAI API', { skip: pythonSkip }, () => {
  let api: OpenAiServer;
  before(async () => {
    api = await startOpenAiServer();
  });
  after(async () => {
    await api?.close();
  });

  const chatUrl = () => `${api.httpUrl}/v1/chat/completions`;
  const completionUrl = () => `${api.httpUrl}/v1/completions`;

  async function chat(body: object): Promise<Completion> {
    const answer = await callApi(chatUrl(), body);
    assert.equal(answer.status, 200, answer.text);
    return answer.json as unknown as Completion;
  }

  async function complete(body: object): Promise<Completion> {
    const answer = await callApi(completionUrl(), body);
    assert.equal(answer.status, 200, answer.text);
    return answer.json as unknown as Completion;
  }

  /** What the model `contract` was given. */
  async function givenFor(url: string, body: object): Promise<Record<string, unknown>> {
    const answer = await callApi(url, { model: 'contract', ...body });
    assert.equal(answer.status, 200, answer.text);
    const [choice] = (answer.json as unknown as Completion).choices;
    return JSON.parse(choice!.text ?? choice!.message.content) as Record<string, unknown>;
  }

  describe('models', () => {
    test('are the text models and their adapters, on both ports', async () => {
      for (const url of [api.httpUrl, api.aloneUrl]) {
        const { json } = await callApi(`${url}/v1/models`);
        const data = json.data as { id: string; object: string; created: number; owned_by: string }[];
        assert.deepEqual(
          data.map(({ id }) => id),
          ['contract', 'contract:pirate', 'shouter', 'talker', 'templated'],
        );
        assert.ok(data.every(({ object, created }) => object === 'model' && created > 1.7e9));
      }
      const one = await callApi(`${api.httpUrl}/v1/models/contract%3Apirate`);
      assert.equal(one.json.id, 'contract:pirate');
    });
  });

  describe('chat', () => {
    test('with a decoupled model', async () => {
      const { choices, usage } = await chat({ model: 'talker', messages: say('hello big world') });
      assert.deepEqual(choices, [
        {
          index: 0,
          message: { role: 'assistant', content: 'hello big world', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ]);
      assert.deepEqual(usage, { prompt_tokens: 6, completion_tokens: 3, total_tokens: 9 });
    });

    test('cut by max_tokens says so', async () => {
      for (const limit of [{ max_tokens: 2 }, { max_completion_tokens: 2, max_tokens: 5 }]) {
        const { choices } = await chat({ model: 'talker', messages: say('hello big world'), ...limit });
        assert.deepEqual([choices[0]?.message.content, choices[0]?.finish_reason], ['hello big', 'length']);
      }
    });

    test('with an ordinary, batched model: messages joined, choices as requests of their own', async () => {
      const messages = [
        { role: 'developer', content: 'be loud' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
      ];
      const { choices, usage } = await chat({ model: 'shouter', n: 3, messages });
      assert.deepEqual(
        choices.map(({ index, message }) => [index, message.content]),
        [0, 1, 2].map((index) => [index, 'SYSTEM: BE LOUD\nUSER: A\nB\nASSISTANT:']),
      );
      assert.equal(usage, null);
    });

    test('streams: role, text, finish, usage, done', async () => {
      const { chunks, isDone } = await streamApi(chatUrl(), {
        model: 'talker',
        messages: say('a wörld 😀'),
        stream_options: { include_usage: true },
      });
      assert.ok(isDone);
      assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
      assert.deepEqual(
        chunks.map(({ choices: [choice], usage }) => [choice?.delta, choice?.finish_reason, usage]),
        [
          [{ role: 'assistant', content: '' }, null, null],
          [{ content: 'a' }, null, null],
          [{ content: ' wörld' }, null, null],
          [{ content: ' 😀' }, null, null],
          [{}, 'stop', null],
          [undefined, undefined, { prompt_tokens: 6, completion_tokens: 3, total_tokens: 9 }],
        ],
      );
    });

    test('streams n choices side by side', async () => {
      const { chunks } = await streamApi(chatUrl(), { model: 'contract', n: 3, messages: say('hello') });
      for (const index of [0, 1, 2]) {
        assert.equal(textOf(chunks, index), 'hello');
        const own = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index);
        assert.equal(own[0]?.delta.role, 'assistant');
        assert.deepEqual(
          own.map(({ finish_reason }) => finish_reason).filter((reason) => reason !== null),
          ['length'],
        );
        assert.equal(own.at(-1)?.finish_reason, 'length');
      }
    });

    test('settings become the tensors that the model declares', async () => {
      const settings = { temperature: 0.5, seed: 7, stop: ['x', 'y'], max_tokens: 9, top_k: 3 };
      const { choices } = await chat({ model: 'talker', n: 2, messages: say('settings!'), ...settings });
      const given = { stream: false, max_tokens: 9, temperature: 0.5, stop_words: ['x', 'y'] };
      assert.deepEqual(
        choices.map(({ message }) => JSON.parse(message.content!) as unknown),
        [
          { ...given, seed: 7 },
          { ...given, seed: 8 },
        ],
      );
    });

    test('a model that renders chats gets all of it', async () => {
      const messages = [{ role: 'user', content: 'hi' }];
      const given = await givenFor(chatUrl(), {
        messages,
        model: 'contract:pirate',
        tools: [ADD],
        tool_choice: { type: 'function', function: { name: 'add' } },
        parallel_tool_calls: false,
        chat_template_kwargs: { enable_thinking: false },
        response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
        temperature: 0,
        logit_bias: { 5: -100 },
        logprobs: true,
        top_logprobs: 3,
        seed: 5,
        min_p: 0.1,
        ignore_eos: true,
        user: 'nobody',
        something_unknown: 1,
      });
      const sampling = given.sampling_parameters as Record<string, unknown>;
      assert.deepEqual(given.chat_request, {
        messages,
        tools: [ADD],
        tool_choice: { type: 'function', function: { name: 'add' } },
        parallel_tool_calls: false,
        chat_template_kwargs: { enable_thinking: false },
      });
      assert.deepEqual(sampling, {
        n: 1,
        max_tokens: null,
        temperature: 0,
        logit_bias: { 5: -100 },
        logprobs: 3,
        logprobs_format: 'openai',
        seed: 5,
        min_p: 0.1,
        ignore_eos: true,
        lora_name: 'pirate',
        structured_outputs: '{"json":{"type":"object"}}',
      });
      assert.deepEqual(
        [given.stream, given.exclude_input_in_output, given.return_finish_reason, given.return_logprobs],
        [true, true, true, true],
      );
      const none = await givenFor(chatUrl(), { messages, tools: [ADD], tool_choice: 'none' });
      assert.deepEqual(none.chat_request, { messages });
    });

    test('log probabilities, timings and cached tokens', async () => {
      const asked = {
        model: 'contract',
        messages: say('ab'),
        logprobs: true,
        top_logprobs: 2,
        return_timings: true,
      };
      const answer = (await callApi(chatUrl(), asked)).json as unknown as {
        choices: { logprobs: unknown }[];
        usage: unknown;
        timings: unknown;
      };
      const other = { token: 'other', logprob: -1.5, bytes: [111, 116, 104, 101, 114] };
      const a = { token: 'a', logprob: -0.5, bytes: [97] };
      const b = { token: 'b', logprob: -0.5, bytes: [98] };
      assert.deepEqual(answer.choices[0]?.logprobs, {
        content: [
          { ...a, top_logprobs: [a, other] },
          { ...b, top_logprobs: [b, other] },
        ],
        refusal: null,
      });
      assert.deepEqual(answer.usage, {
        prompt_tokens: 11,
        completion_tokens: 2,
        total_tokens: 13,
        prompt_tokens_details: { cached_tokens: 4 },
      });
      assert.deepEqual(answer.timings, { prompt_ms: 1.5 });
      const { chunks } = await streamApi(chatUrl(), asked);
      const tokens = chunks.flatMap(({ choices: [choice] }) => {
        const logprobs = choice?.logprobs as { content: { token: string }[] } | null | undefined;
        return logprobs?.content.map(({ token }) => token) ?? [];
      });
      assert.deepEqual(tokens, ['a', 'b']);
      assert.deepEqual(chunks.at(-1)?.timings, { prompt_ms: 1.5 });
    });
  });

  describe('tools', () => {
    test('a call is taken out of the text', async () => {
      const { choices } = await chat({ model: 'templated', messages: say(`so ${CALL}`), tools: [ADD] });
      const [{ message, finish_reason }] = choices as [Completion['choices'][0]];
      assert.equal(finish_reason, 'tool_calls');
      assert.equal(message.content, 'so ');
      assert.deepEqual(JSON.parse(message.tool_calls![0]!.function.arguments), { a: 1, b: [2] });
    });

    test('calls come in pieces in a stream', async () => {
      const spaced = `${CALL.replaceAll(',', ', ')} ${CALL}`;
      const { chunks } = await streamApi(chatUrl(), {
        model: 'templated',
        messages: say(spaced),
        tools: [ADD],
      });
      const calls = chunks.flatMap(({ choices }) => choices).flatMap(({ delta }) => delta.tool_calls ?? []);
      const named = calls.filter(({ id }) => id !== undefined);
      assert.deepEqual(
        named.map((call) => [call.index, call.type, call.function.name]),
        [
          [0, 'function', 'add'],
          [1, 'function', 'add'],
        ],
      );
      for (const index of [0, 1]) {
        const text = calls.filter((call) => call.index === index).map((call) => call.function.arguments);
        assert.deepEqual(JSON.parse(text.join('')), { a: 1, b: [2] });
      }
      assert.equal(textOf(chunks), '');
      assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'tool_calls');
    });

    test('without tools, or with none wanted, the text stays', async () => {
      for (const more of [{}, { tools: [ADD], tool_choice: 'none' }]) {
        const { choices } = await chat({ model: 'templated', messages: say(CALL), ...more });
        assert.deepEqual([choices[0]?.message.content, choices[0]?.finish_reason], [CALL, 'stop']);
      }
    });

    test('the template sees tools, calls and answers', async () => {
      const messages = [
        { role: 'user', content: 'say: ' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'add', arguments: '{"a": 41}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: '42' },
      ];
      const { choices } = await chat({ model: 'templated', messages, tools: [ADD] });
      assert.equal(choices[0]?.message.content, '<assistant> calls add with a=41<tool>42');
    });
  });

  describe('completions', () => {
    test('several prompts, several choices', async () => {
      const { choices } = await complete({ model: 'talker', prompt: ['say: a', 'say: b c'], n: 2 });
      assert.deepEqual(
        choices.map(({ index, text }) => [index, text]),
        [
          [0, 'a'],
          [1, 'a'],
          [2, 'b c'],
          [3, 'b c'],
        ],
      );
      const { chunks, isDone } = await streamApi(completionUrl(), {
        model: 'talker',
        prompt: ['say: a', 'say: b c'],
      });
      assert.ok(isDone);
      assert.deepEqual([textOf(chunks, 0), textOf(chunks, 1)], ['a', 'b c']);
    });

    test('echo, by the model or by us', async () => {
      const asked = { prompt: 'say: x', echo: true };
      assert.equal((await complete({ model: 'talker', ...asked })).choices[0]?.text, 'say: xx');
      const { chunks } = await streamApi(completionUrl(), { model: 'talker', ...asked });
      assert.equal(textOf(chunks), 'say: xx');
      const given = await givenFor(completionUrl(), { prompt: 'x', echo: true });
      assert.equal(given.exclude_input_in_output, false);
    });

    test('tokens as the prompt', async () => {
      const given = await givenFor(completionUrl(), { prompt: [1, 2, 3], max_tokens: 5 });
      assert.deepEqual([given.prompt_token_ids, given.text_input], [[1, 2, 3], undefined]);
      assert.deepEqual(given.sampling_parameters, { n: 1, max_tokens: 5 });
      const refused = await callApi(completionUrl(), { model: 'talker', prompt: [1, 2] });
      assert.deepEqual([refused.status, refused.json.error?.param], [400, 'prompt']);
    });

    test('log probabilities with their offsets', async () => {
      const asked = { model: 'contract', prompt: 'say: abcd', logprobs: 1 };
      const { chunks } = await streamApi(completionUrl(), asked);
      const offsets = chunks.flatMap(({ choices: [choice] }) => {
        const { tokens, text_offset } = choice!.logprobs as { tokens: string[]; text_offset: number[] };
        return tokens.map((token, i) => [token, text_offset[i]]);
      });
      assert.deepEqual(offsets, [
        ['ab', 0],
        ['cd', 2],
      ]);
      const whole = (await callApi(completionUrl(), asked)).json as unknown as {
        choices: { logprobs: unknown }[];
      };
      assert.deepEqual(whole.choices[0]?.logprobs, {
        tokens: ['ab', 'cd'],
        token_logprobs: [-0.5, -0.5],
        top_logprobs: [{ ab: -0.5 }, { cd: -0.5 }],
        text_offset: [0, 2],
      });
    });
  });

  describe('documents', () => {
    test('embeddings, as numbers and in base64', async () => {
      const url = `${api.httpUrl}/v1/embeddings`;
      const numbers = await callApi(url, { model: 'contract', input: ['abc', 'de'] });
      assert.deepEqual(numbers.json.data, [
        { object: 'embedding', index: 0, embedding: [3, 0.5] },
        { object: 'embedding', index: 1, embedding: [2, 0.5] },
      ]);
      assert.deepEqual(numbers.json.usage, { prompt_tokens: 2, total_tokens: 2 });
      const base64 = await callApi(url, { model: 'contract', input: [5, 6], encoding_format: 'base64' });
      const [{ embedding }] = base64.json.data as [{ embedding: string }];
      const bytes = Buffer.from(embedding, 'base64');
      assert.deepEqual([bytes.readFloatLE(0), bytes.readFloatLE(4)], [2, 0.5]);
    });

    test('rerank', async () => {
      const { json } = await callApi(`${api.httpUrl}/v1/rerank`, {
        model: 'contract',
        query: 'a',
        documents: ['b', 'aa', { text: 'a' }],
        top_n: 2,
        return_documents: true,
      });
      assert.deepEqual(json.results, [
        { index: 1, relevance_score: 2, document: { text: 'aa' } },
        { index: 2, relevance_score: 1, document: { text: 'a' } },
      ]);
    });

    test('tokens and back', async () => {
      const asked = { model: 'contract', prompt: 'abc', return_token_strs: true };
      const { json } = await callApi(`${api.httpUrl}/v1/tokenize`, asked);
      assert.deepEqual(json, {
        count: 3,
        max_model_len: 4096,
        tokens: [97, 98, 99],
        token_strs: ['a', 'b', 'c'],
      });
      const back = await callApi(`${api.httpUrl}/v1/detokenize`, { model: 'contract', tokens: [97, 98] });
      assert.deepEqual(back.json, { prompt: 'ab' });
    });
  });

  describe('errors', () => {
    const REFUSED: readonly [string, string, object | string, number, string | null, string | null][] = [
      [
        'an unknown model',
        'chat/completions',
        { model: 'no', messages: say('a') },
        404,
        'model',
        'model_not_found',
      ],
      [
        'an unknown adapter',
        'completions',
        { model: 'contract:no', prompt: 'a' },
        404,
        'model',
        'model_not_found',
      ],
      ['no model', 'chat/completions', { messages: say('a') }, 400, 'model', null],
      ['no messages', 'chat/completions', { model: 'talker' }, 400, 'messages', null],
      ['no prompt', 'completions', { model: 'talker' }, 400, 'prompt', null],
      ['an empty prompt', 'completions', { model: 'talker', prompt: '' }, 400, 'prompt', null],
      ['no JSON', 'chat/completions', '{"model":', 400, null, null],
      ['no object', 'chat/completions', '[]', 400, null, null],
      [
        'a temperature',
        'completions',
        { model: 'talker', prompt: 'a', temperature: 2.1 },
        400,
        'temperature',
        null,
      ],
      ['best_of', 'completions', { model: 'talker', prompt: 'a', best_of: 2 }, 400, 'best_of', null],
      ['a suffix', 'completions', { model: 'talker', prompt: 'a', suffix: 'b' }, 400, 'suffix', null],
      [
        'what the model has not',
        'chat/completions',
        { model: 'talker', messages: say('a'), logprobs: true },
        400,
        'logprobs',
        null,
      ],
      [
        'a schema that nobody keeps',
        'chat/completions',
        { model: 'talker', messages: say('a'), response_format: { type: 'json_object' } },
        400,
        'response_format',
        null,
      ],
      [
        'a call that nobody can force',
        'chat/completions',
        { model: 'templated', messages: say('a'), tools: [ADD], tool_choice: 'required' },
        400,
        'tool_choice',
        null,
      ],
      [
        'tools that nobody tells of',
        'chat/completions',
        { model: 'talker', messages: say('a'), tools: [ADD] },
        400,
        'tools',
        null,
      ],
      [
        'what a template refuses',
        'chat/completions',
        { model: 'templated', messages: [{ role: 'tool', content: 'a' }] },
        400,
        'messages',
        null,
      ],
      ['embeddings of another model', 'embeddings', { model: 'talker', input: 'a' }, 400, 'model', null],
      ['a path', 'nothing', {}, 404, null, 'unknown_url'],
    ];
    for (const [name, path, body, status, param, code] of REFUSED) {
      test(`${name}: ${status}`, async () => {
        const answer = await callApi(`${api.httpUrl}/v1/${path}`, body);
        assert.equal(answer.status, status, answer.text);
        const { error } = answer.json;
        assert.deepEqual([error?.type, error?.param, error?.code], ['invalid_request_error', param, code]);
        assert.ok(error?.message);
      });
    }

    test('a wrong method names the right one', async () => {
      const answer = await callApi(chatUrl());
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get('allow'), 'POST');
    });

    test('a model that fails is a server error, before and in a stream', async () => {
      const body = { model: 'talker', messages: say('fail!') };
      for (const more of [{}, { stream: true }]) {
        const answer = await callApi(chatUrl(), { ...body, ...more });
        assert.equal(answer.status, 500);
        assert.deepEqual(answer.json.error, {
          message: 'told to fail',
          type: 'server_error',
          param: null,
          code: null,
        });
      }
      const { chunks, isDone } = await streamApi(chatUrl(), { model: 'talker', messages: say('a fail! b') });
      assert.equal(isDone, false);
      assert.equal(chunks.at(-1)?.error?.type, 'server_error');
      assert.equal(textOf(chunks.slice(0, -1)), 'a');
    });

    test('a body that is too large is refused, told or found out', async () => {
      const large = JSON.stringify({ model: 'talker', prompt: 'x'.repeat(17 * 1024 * 1024) });
      const told = await callApi(completionUrl(), large);
      assert.deepEqual([told.status, told.json.error?.code], [413, 'content_too_large']);
      const found = await chunked(completionUrl(), large);
      assert.equal(found.status, 413, found.text);
    });
  });

  test('the port of its own has health and metrics, and no inference API', async () => {
    assert.equal((await callApi(`${api.aloneUrl}/health`)).status, 200);
    assert.equal((await callApi(`${api.aloneUrl}/health/ready`)).status, 200);
    assert.match((await callApi(`${api.aloneUrl}/metrics`)).text, /^nv_inference_request_success/m);
    assert.equal((await callApi(`${api.aloneUrl}/v2`)).status, 404);
    assert.equal((await callApi(`${api.httpUrl}/health`)).status, 404);
    const { status } = await callApi(`${api.aloneUrl}/v1/completions`, { model: 'talker', prompt: 'say: a' });
    assert.equal(status, 200);
  });

  test('a version may be asked for', async () => {
    const body = { model: 'talker', prompt: 'say: a' };
    const ask = (version: string) => callApi(completionUrl(), body, { 'nereid-model-version': version });
    assert.deepEqual(
      [(await ask('1')).status, (await ask('2')).status, (await ask('-')).status],
      [200, 404, 400],
    );
  });

  test('a slow client holds the model back, and gets everything', async () => {
    const text = await new Promise<string>((resolve, reject) => {
      const outgoing = request(completionUrl(), { method: 'POST', agent: false }, (response) => {
        let received = '';
        response.pause();
        setTimeout(() => response.resume(), 500);
        response.setEncoding('utf8').on('data', (piece: string) => {
          received += piece;
        });
        response.on('end', () => resolve(received));
      });
      outgoing.on('error', reject);
      outgoing.end(JSON.stringify({ model: 'talker', prompt: `say: ${'flood! '.repeat(8)}`, stream: true }));
    });
    assert.equal(text.split('"text":"xxxx').length - 1, 8000);
    assert.ok(text.endsWith('data: [DONE]\n\n'));
  });

  // The last one: it ends the server.
  test('a client that goes away ends the work of the model: the server has nothing to wait for', async () => {
    const text = 'a wait:100 '.repeat(500);
    await abandonAfterFirstByte(chatUrl(), { model: 'talker', messages: say(text), stream: true, n: 3 });
    await sleep(300);
    assert.equal((await api.server.stop()).code, 0, api.server.logs());
  });
});

function chunked(url: string, body: string): Promise<Pick<ApiAnswer, 'status' | 'text'>> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    outgoing.on('error', reject);
    for (let at = 0; at < body.length; at += 1 << 20) outgoing.write(body.slice(at, at + (1 << 20)));
    outgoing.end();
  });
}

describe('who may use the OpenAI API', { skip: pythonSkip }, () => {
  const keys = createRepository();
  const file = keys.at('keys');
  let api: OpenAiServer;
  before(async () => {
    writeFileSync(file, '# team a\nsk-one\n\n  sk-two \n');
    api = await startOpenAiServer([
      `--openai-api-key-file=${file}`,
      '--http-restricted-api=model-repository:x-admin=yes',
    ]);
  });
  after(async () => {
    await api?.close();
    keys.remove();
  });

  const status = async (key: string | undefined): Promise<number> => {
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const body = { model: 'talker', prompt: 'say: a' };
    const answers = await Promise.all(
      [api.httpUrl, api.aloneUrl].map((url) => callApi(`${url}/v1/completions`, body, headers)),
    );
    assert.equal(answers[0]!.status, answers[1]!.status);
    if (answers[0]!.status === 401) assert.equal(answers[0]!.json.error?.code, 'invalid_api_key');
    return answers[0]!.status;
  };

  test('who has a key of the file, as it is now', async () => {
    assert.deepEqual(
      [await status('sk-one'), await status('sk-two'), await status('sk-three'), await status(undefined)],
      [200, 200, 401, 401],
    );
    assert.equal(await status('# team a'), 401);
    writeFileSync(file, 'sk-three\n');
    assert.ok(await waitUntil(async () => (await status('sk-three')) === 200));
    assert.equal(await status('sk-one'), 401);
    assert.equal((await callApi(`${api.aloneUrl}/health`)).status, 200);
  });

  test('restricted groups ask for their header', async () => {
    const key = { authorization: 'Bearer sk-three' };
    writeFileSync(file, 'sk-three\n');
    assert.ok(await waitUntil(async () => (await status('sk-three')) === 200));
    const refused = await callApi(`${api.httpUrl}/v1/models`, undefined, key);
    assert.deepEqual([refused.status, refused.json.error?.code], [403, 'restricted_api']);
    const served = await callApi(`${api.httpUrl}/v1/models`, undefined, { ...key, 'x-admin': 'yes' });
    assert.equal(served.status, 200);
  });
});
