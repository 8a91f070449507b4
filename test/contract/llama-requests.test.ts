// The llama backend as a host loads it, without a server: chat, tools, tokens and tokenization on a tiny model with a real
// vocabulary and chat template. What its texts say is nonsense; their form is what a grammar or a template makes it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { BackendInstance, ExecuteOutputs, ResponseSender } from '../../src/backend/sdk.ts';
import { llamaBackend } from '../../src/backends/llama/llama-backend.ts';
import type { ModelConfig } from '../../src/domain/model-config.ts';
import { StatusError } from '../../src/domain/status.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';
import { textValue } from '../support/gguf-file.ts';
import { writeTinyLlama } from '../support/gguf-models.ts';
import { findGguf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { makeContext } from './load-context.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';

const MESSAGES = [{ role: 'user', content: 'Weather in Bern?' }];
const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'weather',
      parameters: {
        type: 'object',
        properties: { city: { enum: ['Bern', 'Basel'] }, unit: { enum: ['C', 'F'] } },
        required: ['city', 'unit'],
        additionalProperties: false,
      },
    },
  },
  { type: 'function', function: { name: 'clock' } },
];

interface Answer {
  readonly text: string;
  readonly finishReason: string;
  readonly inputTokens: number;
}

describe('requests to a llama model', { skip }, () => {
  let files: TestRepository;
  let instance: BackendInstance;
  let config: ModelConfig;
  let batchId = 0;

  before(async () => {
    files = createRepository();
    const toolUse = '{{ tools[0].function.name }}:{% for m in messages %}{{ m.content }}{% endfor %}';
    writeTinyLlama(files.at('model.gguf'), {
      ...{ vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 },
      metadata: { 'tokenizer.chat_template.tool_use': textValue(toolUse) },
    });
    const parameters = {
      context_length: 512,
      kv_cells: 1024,
      threads: 1,
      cache_type_k: 'f32',
      cache_type_v: 'f32',
    };
    const rows = Object.entries(parameters).map(
      ([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`,
    );
    const context = makeContext(
      parseModelConfig(`name: "tiny" backend: "llama" ${rows.join(' ')}`),
      files.path,
    );
    const model = await llamaBackend.load(context);
    config = model.config;
    instance = await model.start(config);
  });

  after(async () => {
    await instance?.close();
    files?.remove();
  });

  /** Resolves with the outputs of the last response, or rejects with its error. */
  const execute = (inputs: Readonly<Record<string, Buffer>>) => {
    const entries = Object.entries(inputs);
    let offset = 0;
    const batch = {
      id: batchId++,
      payload: Buffer.concat(entries.map(([, data]) => data)),
      requests: [
        {
          requestedOutputs: [],
          inputs: entries.map(([name, data]) => {
            offset += data.length;
            const index = config.input.findIndex((input) => input.name === name);
            return { index, shape: [1], offset: offset - data.length, byteLength: data.length };
          }),
        },
      ],
    };
    return new Promise<ReadonlyMap<string, Buffer>>((resolve, reject) => {
      const sender: ResponseSender = {
        isCancelled: false,
        hasRoom: true,
        whenRoom: () => Promise.resolve(),
        finish: () => reject(new Error('finished without a response')),
        send: (response: ExecuteOutputs | StatusError, isFinal) => {
          if (!isFinal) return;
          if (response instanceof StatusError) reject(response);
          else resolve(new Map(response.map(({ index, data }) => [config.output[index]!.name, data])));
        },
      };
      void instance.execute(batch, () => sender);
    });
  };
  const generate = async (
    inputs: Readonly<Record<string, Buffer>>,
    sampling: object = {},
  ): Promise<Answer> => {
    const outputs = await execute({
      ...inputs,
      sampling_parameters: bytes(JSON.stringify({ temperature: 0, max_tokens: 200, ...sampling })),
      return_finish_reason: FLAG,
      return_num_input_tokens: FLAG,
    });
    return {
      text: textOf(outputs.get('text_output')!),
      finishReason: textOf(outputs.get('finish_reason')!),
      inputTokens: outputs.get('num_input_tokens')!.readUInt32LE(0),
    };
  };
  const chat = (request: object, sampling: object = {}) =>
    generate({ chat_request: bytes(JSON.stringify(request)) }, sampling);
  const tokenize = async (request: object) => {
    const outputs = await execute({ tokenize_request: bytes(JSON.stringify(request)) });
    return JSON.parse(textOf(outputs.get('text_output')!)) as {
      tokens: number[];
      text: string;
      count: number;
      pieces: string[];
    };
  };

  test('a chat is the text that its template writes, as a prompt', async () => {
    const prompt =
      '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' +
      '<|im_start|>user\nWeather in Bern?<|im_end|>\n<|im_start|>assistant\n';
    const { tokens } = await tokenize({ messages: MESSAGES });
    assert.equal((await tokenize({ tokens })).text, prompt);
    const answer = await chat({ messages: MESSAGES }, { max_tokens: 20 });
    const same = await generate(
      { text_input: bytes(prompt), exclude_input_in_output: FLAG },
      { max_tokens: 20 },
    );
    assert.deepEqual(answer, same);
    assert.equal(answer.inputTokens, tokens.length);
  });

  test('tokens are the same prompt as their text', async () => {
    const { tokens } = await tokenize({ text: 'The sea is' });
    const data = Buffer.from(Int32Array.from(tokens).buffer);
    const byTokens = await generate({ prompt_token_ids: data }, { max_tokens: 10 });
    assert.deepEqual(byTokens, await generate({ text_input: bytes('The sea is') }, { max_tokens: 10 }));
    assert.ok(byTokens.text.startsWith('The sea is'));
  });

  test('a required tool is called with arguments of its schema, seed after seed', async () => {
    for (let seed = 0; seed < 6; seed++) {
      const request = {
        messages: MESSAGES,
        tools: TOOLS,
        tool_choice: 'required',
        parallel_tool_calls: false,
      };
      const { text, finishReason } = await chat(request, { temperature: 1, seed });
      assert.equal(finishReason, 'stop', text);
      const [, json] = /^<tool_call>\n?(\{.*\})\n?<\/tool_call>$/s.exec(text) ?? [];
      const { name, arguments: given } = JSON.parse(json!);
      if (name === 'clock') assert.deepEqual(given, {});
      else assert.ok(['Bern', 'Basel'].includes(given.city) && ['C', 'F'].includes(given.unit), text);
    }
  });

  test('a named tool is the one that is called, and several calls can be in one answer', async () => {
    const named = { type: 'function', function: { name: 'clock' } };
    const { text } = await chat({ messages: MESSAGES, tools: TOOLS, tool_choice: named });
    const [, json] = /^<tool_call>\n?(\{.*\})\n?<\/tool_call>$/s.exec(text) ?? [];
    assert.deepEqual(JSON.parse(json!), { name: 'clock', arguments: {} });
    const parallel = await chat(
      { messages: MESSAGES, tools: TOOLS.slice(1), tool_choice: 'required' },
      { min_tokens: 60 },
    );
    assert.ok(parallel.text.split('<tool_call>').length > 2, parallel.text);
  });

  test('requests with tools use the template for tools, others and "none" do not', async () => {
    const shown = async (request: object) =>
      (await tokenize({ tokens: (await tokenize(request)).tokens })).text;
    assert.equal(await shown({ messages: MESSAGES, tools: TOOLS }), 'weather:Weather in Bern?');
    const plain = await chat({ messages: MESSAGES }, { max_tokens: 8 });
    const none = await chat({ messages: MESSAGES, tools: TOOLS, tool_choice: 'none' }, { max_tokens: 8 });
    assert.deepEqual(none, plain);
    const auto = await chat({ messages: MESSAGES, tools: TOOLS }, { max_tokens: 8 });
    assert.notEqual(auto.inputTokens, plain.inputTokens);
  });

  test('tokenization, both ways', async () => {
    const { tokens, count, pieces } = await tokenize({ text: 'a <|im_end|> b', with_pieces: true });
    assert.equal(count, tokens.length);
    assert.equal(pieces.join(''), 'a <|im_end|> b');
    assert.ok(pieces.includes('<|im_end|>'));
    const plain = await tokenize({ text: 'a <|im_end|> b', parse_special: false });
    assert.ok(plain.count > count);
    assert.equal((await tokenize({ tokens: plain.tokens })).text, 'a <|im_end|> b');
    assert.equal((await tokenize({ tokens: [] })).text, '');
    await assert.rejects(tokenize({ tokens: [600] }), /600 is no token of this model, which has 512/);
    await assert.rejects(tokenize({ text: 7 }), /'text' must be a string/);
  });

  test('what is wrong is refused by name, and takes no place', async () => {
    const cases: [object, object, RegExp][] = [
      [{ messages: [] }, {}, /messages/],
      [{ messages: MESSAGES, tools: [{}] }, {}, /tools\[0\] must have the type 'function'/],
      [{ messages: MESSAGES, tool_choice: 'required' }, {}, /tool_choice 'required' needs tools/],
      [{ messages: MESSAGES }, { grammar: 'root ::= "a" foo' }, /grammar/],
      [{ messages: MESSAGES }, { top_q: 1 }, /unknown sampling parameter 'top_q'/],
      [
        { messages: [{ role: 'user', content: 'a b '.repeat(600) }] },
        {},
        /this model's context is 512 tokens/,
      ],
    ];
    for (const [request, sampling, expected] of cases) {
      await assert.rejects(chat(request, sampling), (error: StatusError) => {
        assert.equal(error.code, 'INVALID_ARG');
        assert.match(error.message, expected);
        return true;
      });
    }
    const empty = generate({ prompt_token_ids: Buffer.alloc(0) });
    await assert.rejects(empty, /the prompt is empty/);
    const foreign = generate({ prompt_token_ids: Buffer.from(Int32Array.from([1, -4]).buffer) });
    await assert.rejects(foreign, /-4 is no token of this model/);
    const streamed = generate({
      text_input: bytes('x'),
      stream: FLAG,
      exclude_input_in_output: Buffer.from([0]),
    });
    await assert.rejects(streamed, /When streaming, `exclude_input_in_output` = False is not allowed\./);
  });
});

const FLAG = Buffer.from([1]);

function bytes(text: string): Buffer {
  const data = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(data.length);
  return Buffer.concat([length, data]);
}

function textOf(data: Buffer): string {
  return data.toString('utf8', 4, 4 + data.readUInt32LE(0));
}
