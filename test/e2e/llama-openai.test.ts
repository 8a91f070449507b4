// A llama model through the OpenAI API, as the official packages for Node and for Python call it: chat, streams, sampling,
// structured outputs, tools, completions, tokens and errors with a real model.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import OpenAI, { APIError } from 'openai';
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import { addLlama, findGguf } from '../support/llama.ts';
import { callApi } from '../support/openai.ts';
import { OPENAI_PACKAGES } from '../support/openai-packages.ts';
import { findPackages } from '../support/pip-packages.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/llama_openai.py';
const KEY = 'sk-of-this-test';
const QUESTION = [{ role: 'user' as const, content: 'How many days are in a week?' }];
const CONTEXT_LENGTH = 1024;
const TOOLS = ['get_weather', 'get_time'].map((name) => ({
  type: 'function' as const,
  function: {
    name,
    description: `Says the ${name.slice('get_'.length)} in a city`,
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 } },
      required: ['city'],
      additionalProperties: false,
    },
  },
}));
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', maxLength: 20 }, population: { type: 'integer' } },
  required: ['city', 'population'],
  additionalProperties: false,
};

const gguf = await findGguf();
const packages =
  pythonSkip === false ? await findPackages('openai', OPENAI_PACKAGES) : { reason: pythonSkip };

describe('a llama model through the OpenAI API', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: OpenAI;

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    const parameters = { threads: 1, context_length: CONTEXT_LENGTH, prefix_cache: 'false' };
    addLlama(repository, { name: 'smol', file: gguf.file, parameters });
    addLlama(repository, { name: 'short', file: gguf.file, parameters: { threads: 1, context_length: 64 } });
    const keyFile = repository.at('keys.txt');
    writeFileSync(keyFile, `${KEY}\n`);
    server = await startServer({ repository: repository.path, args: [`--openai-api-key-file=${keyFile}`] });
    client = new OpenAI({ baseURL: `${server.httpUrl}/v1`, apiKey: KEY, maxRetries: 0 });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  function chat(extra: Partial<ChatCompletionCreateParamsNonStreaming> = {}) {
    return client.chat.completions.create({
      ...{ model: 'smol', messages: QUESTION, temperature: 0, max_tokens: 16 },
      ...extra,
    });
  }

  async function errorOf(pending: Promise<unknown>): Promise<APIError> {
    const error = await pending.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof APIError, `no error of the API: ${String(error)}`);
    return error;
  }

  test('both models are listed', async () => {
    const ids = [];
    for await (const { id } of client.models.list()) ids.push(id);
    assert.deepEqual(ids, ['short', 'smol']);
  });

  test('chat, whole and in a stream', async () => {
    const answer = await chat();
    const [choice] = answer.choices;
    assert.equal(choice!.message.content, 'A week is approximately 7 days.');
    assert.equal(choice!.finish_reason, 'stop');
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage!;
    assert.ok(prompt_tokens > 10 && completion_tokens > 5);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
    const stream = await client.chat.completions.create({
      ...{ model: 'smol', messages: QUESTION, temperature: 0, max_tokens: 16 },
      ...{ stream: true, stream_options: { include_usage: true } },
    });
    let text = '';
    const reasons: string[] = [];
    let usage: unknown;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
      usage = chunk.usage;
    }
    assert.deepEqual([text, reasons], [choice!.message.content, ['stop']]);
    assert.deepEqual(usage, answer.usage);
  });

  test('n, stop, seed and the length', async () => {
    const several = await chat({ n: 2, temperature: 1.2, seed: 4 });
    assert.deepEqual(
      several.choices.map(({ index }) => index),
      [0, 1],
    );
    assert.notEqual(several.choices[0]!.message.content, several.choices[1]!.message.content);
    const again = await chat({ n: 2, temperature: 1.2, seed: 4 });
    assert.equal(again.choices[0]!.message.content, several.choices[0]!.message.content);
    const stopped = (await chat({ stop: ['ximately 7', 'never'] })).choices[0]!;
    assert.deepEqual([stopped.message.content, stopped.finish_reason], ['A week is appro', 'stop']);
    const cut = await chat({ max_completion_tokens: 3 });
    assert.deepEqual([cut.choices[0]!.finish_reason, cut.usage!.completion_tokens], ['length', 3]);
  });

  test('log probabilities', async () => {
    const { choices } = await chat({ logprobs: true, top_logprobs: 2, max_tokens: 4 });
    const content = choices[0]!.logprobs!.content!;
    assert.equal(content.map(({ token }) => token).join(''), choices[0]!.message.content);
    for (const { logprob, top_logprobs, token, bytes } of content) {
      assert.equal(top_logprobs.length, 2);
      assert.equal(top_logprobs[0]!.logprob, logprob);
      assert.equal(Buffer.from(bytes!).toString(), token);
    }
  });

  test('JSON of a schema', async () => {
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'city', schema: SCHEMA, strict: true },
    };
    const { choices } = await chat({ response_format, max_tokens: 80 });
    const value = JSON.parse(choices[0]!.message.content!) as { city: unknown; population: unknown };
    assert.deepEqual(Object.keys(value), ['city', 'population']);
    assert.ok(typeof value.city === 'string' && Number.isInteger(value.population));
  });

  test('a tool that is named, and one that is required', async () => {
    const named = await chat({
      ...{ tools: TOOLS, max_tokens: 60 },
      tool_choice: { type: 'function', function: { name: 'get_time' } },
    });
    const [choice] = named.choices;
    assert.deepEqual(
      callsOf(choice!.message).map(({ name }) => name),
      ['get_time'],
    );
    assert.equal(choice!.finish_reason, 'tool_calls');
    const required = await chat({
      ...{ tools: TOOLS, tool_choice: 'required' as const, parallel_tool_calls: false, max_tokens: 60 },
    });
    const calls = callsOf(required.choices[0]!.message);
    assert.equal(calls.length, 1);
    assert.ok(TOOLS.some((tool) => tool.function.name === calls[0]!.name));
    assert.deepEqual(Object.keys(calls[0]!.arguments), ['city']);
  });

  test('a required tool in a stream', async () => {
    const runner = client.chat.completions.stream({
      ...{ model: 'smol', messages: QUESTION, temperature: 0, max_tokens: 60 },
      ...{ tools: TOOLS, tool_choice: { type: 'function' as const, function: { name: 'get_weather' } } },
    });
    const { choices } = await runner.finalChatCompletion();
    assert.deepEqual(
      callsOf(choices[0]!.message).map(({ name }) => name),
      ['get_weather'],
    );
    assert.equal(choices[0]!.finish_reason, 'tool_calls');
  });

  test('tools that may be called, and the answer of one', async () => {
    const free = await chat({ tools: TOOLS, max_tokens: 24 });
    assert.ok(free.choices[0]!.message.content !== null || free.choices[0]!.message.tool_calls !== undefined);
    const call = {
      id: 'call_1',
      type: 'function' as const,
      function: { name: 'get_time', arguments: '{"city":"Paris"}' },
    };
    const told = await chat({
      messages: [
        ...QUESTION,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: '12:30' },
      ],
      tools: TOOLS,
    });
    assert.ok(['stop', 'length', 'tool_calls'].includes(told.choices[0]!.finish_reason));
  });

  test('completions of texts and of tokens, with the prompt and in a stream', async () => {
    const options = { model: 'smol', temperature: 0, max_tokens: 6 };
    const prompt = 'Once upon a time';
    const plain = await client.completions.create({ ...options, prompt });
    const { text } = plain.choices[0]!;
    assert.ok(text.length > 5);
    const { tokens } = await tokenize({ model: 'smol', prompt });
    const both = await client.completions.create({ ...options, prompt: [tokens, tokens], echo: true });
    assert.deepEqual(
      both.choices.map((choice) => choice.text),
      [prompt + text, prompt + text],
    );
    let streamed = '';
    for await (const chunk of await client.completions.create({ ...options, prompt, stream: true })) {
      streamed += chunk.choices[0]?.text ?? '';
    }
    assert.equal(streamed, text);
  });

  async function tokenize(body: object): Promise<{ tokens: number[]; count: number; max_model_len: number }> {
    const { status, json, text } = await callApi(`${server.httpUrl}/v1/tokenize`, body, {
      Authorization: `Bearer ${KEY}`,
    });
    assert.equal(status, 200, text);
    return json as unknown as { tokens: number[]; count: number; max_model_len: number };
  }

  test('tokens of a text and of messages', async () => {
    const text = await tokenize({ model: 'smol', prompt: 'Hello world' });
    assert.equal(text.count, text.tokens.length);
    assert.equal(text.max_model_len, CONTEXT_LENGTH);
    const messages = await tokenize({ model: 'smol', messages: QUESTION });
    assert.equal(messages.count, (await chat({ max_tokens: 1 })).usage!.prompt_tokens);
  });

  test('errors have a type and name the parameter', async () => {
    const missing = await errorOf(chat({ model: 'large' }));
    assert.deepEqual([missing.status, missing.code], [404, 'model_not_found']);
    const hot = await errorOf(chat({ temperature: 3 }));
    assert.deepEqual([hot.status, hot.type, hot.param], [400, 'invalid_request_error', 'temperature']);
    const long = [{ role: 'user' as const, content: 'word '.repeat(100) }];
    const full = await errorOf(chat({ model: 'short', messages: long }));
    assert.equal(full.status, 400);
    assert.match(full.message, /the prompt has \d+ tokens, but this model's context is 64 tokens/);
    const schema = { type: 'json_schema' as const, json_schema: { name: 'x', schema: { type: 'oddity' } } };
    const odd = await errorOf(chat({ response_format: schema }));
    assert.deepEqual([odd.status, odd.param], [400, 'response_format']);
    assert.match(odd.message, /Invalid 'response_format': JSON schema type 'oddity' is not supported/);
    const vectors = await errorOf(client.embeddings.create({ model: 'smol', input: 'x' }));
    assert.equal(vectors.status, 400);
    assert.match(vectors.message, /does not support 'embed' request/);
  });

  test('a request without the key is refused', async () => {
    const other = new OpenAI({ baseURL: `${server.httpUrl}/v1`, apiKey: 'sk-other', maxRetries: 0 });
    const error = await errorOf(other.models.list());
    assert.deepEqual([error.status, error.code], [401, 'invalid_api_key']);
  });

  describe('with openai for Python', { skip: 'reason' in packages ? packages.reason : false }, () => {
    let output = '';
    before(async () => {
      if ('reason' in packages) return;
      const args = [`${server.httpUrl}/v1`, KEY];
      const env = { PYTHONPATH: packages.folder };
      output = (await runPython({ script: SCRIPT, args, env })).output;
    });
    testChecks(SCRIPT, () => output);
  });
});

interface Called {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

function callsOf(message: { readonly tool_calls?: readonly unknown[] }): Called[] {
  const calls = (message.tool_calls ?? []) as readonly { function: { name: string; arguments: string } }[];
  return calls.map((call) => ({
    name: call.function.name,
    arguments: JSON.parse(call.function.arguments) as Called['arguments'],
  }));
}
