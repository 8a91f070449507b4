// A llama model through Triton's generate endpoints: the inputs, outputs and sampling parameters of Triton's vLLM backend
// and those of ours, each seen to do what it says with a real model.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import {
  addLlama,
  ask,
  bodyOf,
  eventsOf,
  findGguf,
  joined,
  LlamaClient,
  metricOf,
  type Question,
  textOf,
} from '../support/llama.ts';
import { waitUntil } from '../support/load.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const CONTEXT_LENGTH = 256;
const FRANCE = ask('What is the capital of France?');
const FRANCE_TEXT = 'The capital of France is Paris.';
/** Six words, a full stop and the end. */
const FRANCE_TOKENS = 8;
const STORY = 'Once upon a time there was a';
const gguf = await findGguf();

describe('a llama model through generate', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: LlamaClient;

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    // Without kept prefixes the same request meets the same arithmetic every time; llama-greedy.test.ts says why.
    const parameters = { threads: 1, context_length: CONTEXT_LENGTH, prefix_cache: 'false' };
    addLlama(repository, { name: 'smol', file: gguf.file, parameters });
    const shifting = { ...parameters, context_length: 64, context_shift: 'true' };
    addLlama(repository, { name: 'shifting', file: gguf.file, parameters: shifting });
    server = await startServer({ repository: repository.path });
    client = new LlamaClient(server, 'smol');
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  const greedy = (prompt: string, sampling: Readonly<Record<string, unknown>> = {}): Question => ({
    text_input: prompt,
    sampling: { temperature: 0, max_tokens: 16, ...sampling },
  });

  async function tokenize(request: Readonly<Record<string, unknown>>) {
    const json = textOf(await client.generate({ tokenize_request: JSON.stringify(request) }));
    return JSON.parse(json) as { tokens: number[]; pieces?: string[]; count: number; max_model_len: number };
  }

  async function onlyToken(text: string): Promise<number> {
    const { tokens } = await tokenize({ text, add_special: false });
    assert.equal(tokens.length, 1, `${text} is ${tokens.length} tokens`);
    return tokens[0]!;
  }

  describe('the answer', () => {
    test('has the prompt before the text unless it is excluded', async () => {
      const { text } = await client.post('generate', greedy(FRANCE));
      assert.deepEqual(JSON.parse(text), {
        model_name: 'smol',
        model_version: '1',
        text_output: FRANCE + FRANCE_TEXT,
      });
      assert.equal(await client.text(greedy(FRANCE)), FRANCE_TEXT);
    });

    test('of a stream comes in pieces that join to the same text', async () => {
      const extras = {
        ...{ return_finish_reason: true, return_num_input_tokens: true, return_num_output_tokens: true },
        return_timings: true,
      };
      const whole = await client.generate({ ...greedy(FRANCE), ...extras });
      const events = await client.stream({ ...greedy(FRANCE), ...extras });
      assert.equal(joined(events), FRANCE_TEXT);
      assert.equal(events.length, FRANCE_TOKENS);
      assert.deepEqual(
        events.map(({ finish_reason }) => finish_reason),
        [...Array(FRANCE_TOKENS - 1).fill('None'), 'stop'],
      );
      assert.ok(events.every(({ num_output_tokens }) => num_output_tokens === 1));
      assert.equal(whole.num_output_tokens, FRANCE_TOKENS);
      const { count } = await tokenize({ text: FRANCE });
      assert.equal(whole.num_input_tokens, count);
      assert.equal(events[0]!.num_input_tokens, count);
      assert.equal(whole.num_cached_tokens, 0);
      assert.deepEqual(
        events.map(({ timings }) => timings !== undefined),
        [...Array(FRANCE_TOKENS - 1).fill(false), true],
      );
      const timings = JSON.parse(events.at(-1)!.timings!) as Record<string, number>;
      assert.equal(timings.prompt_tokens, count);
      assert.equal(timings.completion_tokens, FRANCE_TOKENS);
      assert.ok(timings.total_ms! >= timings.time_to_first_token_ms!);
      assert.ok(timings.tokens_per_second! > 0);
    });

    test('of a stream cannot have the prompt', async () => {
      const question = { ...greedy(FRANCE), stream: true, exclude_input_in_output: false };
      assert.deepEqual(await client.error(question), {
        status: 400,
        error: 'When streaming, `exclude_input_in_output` = False is not allowed.',
      });
    });

    test('reaches curl event by event', async () => {
      const body = bodyOf({ ...greedy(FRANCE), stream: true });
      const url = `${server.httpUrl}/v2/models/smol/generate_stream`;
      const { stdout } = await promisify(execFile)('curl', ['-sN', '-i', '-d', body, url]);
      const [head, ...rest] = stdout.split('\r\n\r\n');
      assert.match(head!, /^HTTP\/1.1 200 OK\r\n[\s\S]*Content-Type: text\/event-stream; charset=utf-8\r\n/);
      assert.equal(joined(eventsOf(rest.join('\r\n\r\n'))), FRANCE_TEXT);
    });

    test('has 16 tokens at most unless the request says so, by tensor or by parameter', async () => {
      const count = async (question: Question) =>
        (await client.generate({ ...question, return_num_output_tokens: true })).num_output_tokens;
      assert.equal(await count({ text_input: STORY, sampling: { temperature: 0 } }), 16);
      assert.equal(await count({ text_input: STORY, sampling: { max_tokens: 3 } }), 3);
      assert.equal(await count({ text_input: STORY, parameters: { max_tokens: 4, temperature: 0 } }), 4);
      const { text } = await client.post('generate', {
        ...{ text_input: FRANCE, exclude_input_in_output: true },
        parameters: { temperature: 0 },
      });
      assert.equal(textOf(JSON.parse(text)), FRANCE_TEXT);
    });

    test('to tokens and to messages is the same as to their text', async () => {
      const sampling = { temperature: 0 };
      const { tokens } = await tokenize({ text: FRANCE });
      assert.equal(await client.text({ prompt_token_ids: tokens, sampling }), FRANCE_TEXT);
      const messages = [
        { role: 'system', content: 'Answer in one word.' },
        { role: 'user', content: 'What is the capital of France?' },
      ];
      const rendered = await tokenize({ messages });
      const chat = await client.generate({
        ...{ chat_request: JSON.stringify({ messages }), sampling, return_num_input_tokens: true },
      });
      assert.equal(chat.num_input_tokens, rendered.count);
      assert.equal(textOf(chat), await client.text({ prompt_token_ids: rendered.tokens, sampling }));
      assert.match(textOf(chat), /Paris/);
    });
  });

  describe('the end', () => {
    test('is a stop string, wherever tokens begin and end', async () => {
      const stop = 'nce is Pa';
      const question = { ...greedy(FRANCE, { stop }), return_finish_reason: true };
      const { text_output, finish_reason } = await client.generate(question);
      assert.deepEqual([text_output, finish_reason], ['The capital of Fra', 'stop']);
      const events = await client.stream(question);
      assert.equal(joined(events), 'The capital of Fra');
      assert.equal(events.at(-1)!.finish_reason, 'stop');
      const sampling = { stop: ['nothing like it', stop], include_stop_str_in_output: true };
      assert.equal(await client.text(greedy(FRANCE, sampling)), 'The capital of France is Pa');
    });

    test('is not what only begins like a stop string', async () => {
      const question = greedy(FRANCE, { stop: ['France is Parix', 'Paris.!'] });
      assert.equal(await client.text(question), FRANCE_TEXT);
      assert.equal(joined(await client.stream(question)), FRANCE_TEXT);
    });

    test('is a stop token, the last token allowed, or the one of the model', async () => {
      const reasons = { return_finish_reason: true, return_num_output_tokens: true };
      const stop_token_ids = [await onlyToken(' France')];
      const stopped = await client.generate({ ...greedy(FRANCE, { stop_token_ids }), ...reasons });
      assert.deepEqual([stopped.text_output, stopped.finish_reason], ['The capital of', 'stop']);
      const cut = await client.generate({ ...greedy(FRANCE, { max_tokens: 3 }), ...reasons });
      assert.deepEqual([cut.text_output, cut.finish_reason], ['The capital of', 'length']);
      const ended = await client.generate({ ...greedy(FRANCE), ...reasons });
      assert.deepEqual([ended.finish_reason, ended.num_output_tokens], ['stop', FRANCE_TOKENS]);
    });

    test('comes after min_tokens, and of ignore_eos at max_tokens', async () => {
      const counts = { return_num_output_tokens: true, return_finish_reason: true };
      const late = await client.generate({ ...greedy(FRANCE, { min_tokens: 12 }), ...counts });
      assert.ok(Number(late.num_output_tokens) >= 12, String(late.num_output_tokens));
      assert.ok(textOf(late).startsWith('The capital of France is Paris'));
      const ignored = await client.generate({ ...greedy(FRANCE, { ignore_eos: true }), ...counts });
      assert.deepEqual([ignored.num_output_tokens, ignored.finish_reason], [16, 'length']);
    });

    test('comes when the context is full, and a prompt that fills it is refused', async () => {
      const word = await onlyToken(' the');
      const long = (length: number): number[] => Array(length).fill(word);
      const full = await client.generate({
        ...{ prompt_token_ids: long(CONTEXT_LENGTH - 5), return_finish_reason: true },
        ...{ sampling: { ignore_eos: true, max_tokens: null }, return_num_output_tokens: true },
      });
      assert.deepEqual([full.num_output_tokens, full.finish_reason], [5, 'length']);
      assert.deepEqual(await client.error({ prompt_token_ids: long(CONTEXT_LENGTH) }), {
        status: 400,
        error:
          "the prompt has 256 tokens, but this model's context is 256 tokens and the answer needs at least one: " +
          "shorten the prompt, or raise the parameter 'context_length' of its config",
      });
    });
  });

  test('with context_shift an answer goes on beyond the context, as long as it is asked to', async () => {
    const endless = new LlamaClient(server, 'shifting');
    const ask = (maxTokens: number | null) =>
      endless.generate({
        ...{ ...greedy(STORY, { max_tokens: maxTokens, ignore_eos: true }), return_num_output_tokens: true },
        ...{ return_finish_reason: true, return_num_input_tokens: true },
      });
    const long = await ask(200);
    assert.deepEqual([long.num_output_tokens, long.finish_reason], [200, 'length']);
    assert.equal(await metricOf(server, 'nv_llm_preemptions_total', 'shifting'), 0);
    assert.ok(
      await waitUntil(async () => (await metricOf(server, 'nv_llm_context_shifts_total', 'shifting')) >= 5),
    );
    const short = await ask(null);
    assert.equal(short.num_output_tokens, 64 - Number(short.num_input_tokens), 'nobody asked for more');
    assert.ok(textOf(long).startsWith(textOf(short)), 'the same until the context is full');
  });

  test('a text that can never fit is refused before it is looked at', async () => {
    assert.match(
      (await client.error({ text_input: 'word '.repeat(20_000) })).error,
      /^the prompt has 100000 bytes, which are at least \d+ tokens, but this model's context is 256 tokens$/,
    );
    const messages = Array.from({ length: 300 }, () => ({ role: 'user', content: 'a' }));
    assert.match(
      (await client.error({ chat_request: JSON.stringify({ messages }) })).error,
      /^there are 300 messages, more than this model's context has tokens \(256\)$/,
    );
  });

  test('a long text is tokenized aside', async () => {
    const { error, status } = await client.error({ text_input: '<|im_start|>'.repeat(1_500) });
    assert.equal(status, 400);
    assert.match(error, /^the prompt has 1500 tokens, but this model's context is 256 tokens/);
  });

  describe('sampling', () => {
    const drawn = (sampling: Readonly<Record<string, unknown>>) =>
      client.generate({ text_input: STORY, sampling: { temperature: 1.2, max_tokens: 12, ...sampling } });

    test('with the same seed gives the same text, with another another', async () => {
      const [first, again, other] = [
        await drawn({ seed: 7 }),
        await drawn({ seed: 7 }),
        await drawn({ seed: 8 }),
      ];
      assert.equal(textOf(first), textOf(again));
      assert.notEqual(textOf(first), textOf(other));
      assert.notEqual(textOf(await drawn({})), textOf(await drawn({})));
    });

    test('narrowed to one token is greedy', async () => {
      const expected = await client.text(greedy(STORY, { max_tokens: 12 }));
      for (const narrow of [{ top_k: 1 }, { top_p: 0.0001 }, { min_p: 1 }, { temperature: 0 }]) {
        assert.equal(textOf(await drawn(narrow)), expected, JSON.stringify(narrow));
      }
    });

    test('gives n texts, each as the seed after the last would', async () => {
      const { text_output, finish_reason, num_output_tokens } = await client.generate({
        ...{
          text_input: STORY,
          sampling: { temperature: 1.2, max_tokens: 12, seed: 20, n: 3, ignore_eos: true },
        },
        ...{ return_finish_reason: true, return_num_output_tokens: true },
      });
      assert.equal(text_output.length, 3);
      assert.equal(new Set(text_output).size, 3);
      assert.deepEqual([finish_reason, num_output_tokens], [Array(3).fill('length'), [12, 12, 12]]);
      const greedily = await client.generate(greedy(STORY, { n: 2 }));
      assert.equal(greedily.text_output[0], greedily.text_output[1]);
    });

    test('of n texts streams each of them', async () => {
      const events = await client.stream({ ...greedy(FRANCE, { n: 3 }), return_finish_reason: true });
      for (const choice of [0, 1, 2]) {
        assert.equal(events.map(({ text_output }) => text_output[choice]).join(''), FRANCE_TEXT);
      }
      assert.deepEqual(events.at(-1)!.finish_reason, ['stop', 'stop', 'stop']);
    });

    test('with a logit bias forbids and forces tokens', async () => {
      const paris = await onlyToken(' Paris');
      assert.doesNotMatch(await client.text(greedy(FRANCE, { logit_bias: { [paris]: -100 } })), /Paris/);
      const forced = { logit_bias: { [await onlyToken(' banana')]: 100 }, max_tokens: 3 };
      assert.equal(await client.text(greedy(FRANCE, forced)), ' banana banana banana');
    });

    test('with penalties leaves the path that repeats itself', async () => {
      const letters = 'a b a b a b a b a b a b a b a b';
      const plain = await client.text(greedy(letters));
      assert.match(plain, /^( a b){4}/);
      for (const penalty of [{ repetition_penalty: 2 }, { presence_penalty: 2 }, { frequency_penalty: 2 }]) {
        const text = await client.text(greedy(letters, penalty));
        assert.ok(text.split(' a').length < plain.split(' a').length, `${JSON.stringify(penalty)}: ${text}`);
      }
    });
  });

  describe('log probabilities', () => {
    test("come in vLLM's form, and sum up", async () => {
      const answer = await client.generate({
        ...greedy(FRANCE, { logprobs: 2 }),
        ...{ return_logprobs: true, return_cumulative_logprob: true },
      });
      type Entry = Record<string, { logprob: number; rank: number; decoded_token: string }>;
      const entries = (JSON.parse(answer.logprobs!) as Entry[]).map((entry) => Object.values(entry));
      assert.equal(entries.length, FRANCE_TOKENS);
      const best = entries.map((tokens) => tokens.find(({ rank }) => rank === 1)!);
      assert.deepEqual(
        best
          .slice(0, -1)
          .map(({ decoded_token }) => decoded_token)
          .join(''),
        FRANCE_TEXT,
      );
      for (const tokens of entries) {
        assert.deepEqual(tokens.map(({ rank }) => rank).sort(), [1, 2]);
        const share = tokens.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
        assert.ok(share > 0 && share <= 1.0001, String(share));
      }
      const sum = best.reduce((total, { logprob }) => total + logprob, 0);
      assert.ok(Math.abs(sum - answer.cumulative_logprob!) < 1e-4, `${sum} ${answer.cumulative_logprob}`);
    });

    test("come in OpenAI's form, in pieces in a stream", async () => {
      const question = {
        ...greedy(FRANCE, { logprobs: 3, logprobs_format: 'openai' }),
        return_logprobs: true,
      };
      interface Entry {
        token: string;
        token_id: number;
        logprob: number;
        bytes: number[];
        top: { token: string; logprob: number }[];
      }
      const whole = JSON.parse((await client.generate(question)).logprobs!) as Entry[];
      assert.equal(
        Buffer.concat(whole.slice(0, -1).map(({ bytes }) => Buffer.from(bytes))).toString(),
        FRANCE_TEXT,
      );
      for (const { token, logprob, top } of whole) {
        assert.equal(top.length, 3);
        assert.deepEqual([top[0]!.token, top[0]!.logprob], [token, logprob]);
        assert.ok(top[0]!.logprob >= top[1]!.logprob && top[1]!.logprob >= top[2]!.logprob);
      }
      const events = await client.stream(question);
      const pieces = events.flatMap(({ logprobs }) => JSON.parse(logprobs!) as Entry[]);
      assert.deepEqual(
        pieces.map(({ token_id }) => token_id),
        whole.map(({ token_id }) => token_id),
      );
    });
  });

  describe('structured outputs', () => {
    const structured = async (structured_outputs: unknown, sampling: object = {}): Promise<string> =>
      client.text(greedy(FRANCE, { structured_outputs, max_tokens: 60, ...sampling }));

    test('are one of the choices, or match the expression', async () => {
      const choice = ['Berlin', 'Madrid', 'Oslo'];
      assert.ok(choice.includes(await structured({ choice })));
      assert.match(await structured({ regex: '[0-9]{4}-[0-9]{2}-[0-9]{2}' }), /^\d{4}-\d{2}-\d{2}$/);
      assert.match(
        await structured(JSON.stringify({ regex: '(Paris|Rome), [A-Z][a-z]{3,5}!' })),
        /^(Paris|Rome), [A-Z][a-z]{3,5}!$/,
      );
    });

    test('follow a grammar', async () => {
      const grammar = 'root ::= "answer: " ("yes" | "no") "!"';
      assert.match(await structured({ grammar }), /^answer: (yes|no)!$/);
      assert.match(await client.text(greedy(STORY, { grammar })), /^answer: (yes|no)!$/);
    });

    test('are JSON, and JSON of a schema, also when drawn hot', async () => {
      const schema = {
        type: 'object',
        properties: {
          city: { type: 'string', maxLength: 12 },
          population: { type: 'integer', minimum: 0, maximum: 99_999_999 },
          isCapital: { type: 'boolean' },
          tags: { type: 'array', items: { enum: ['river', 'coast'] }, minItems: 1, maxItems: 2 },
        },
        required: ['city', 'population', 'isCapital', 'tags'],
        additionalProperties: false,
      };
      for (const sampling of [{}, { temperature: 1.5, seed: 3 }]) {
        const value = JSON.parse(
          await structured({ json: schema }, { ...sampling, max_tokens: 200 }),
        ) as Record<string, unknown>;
        assert.deepEqual(Object.keys(value).sort(), ['city', 'isCapital', 'population', 'tags']);
        assert.ok(typeof value.city === 'string' && value.city.length <= 12);
        assert.ok(Number.isInteger(value.population) && typeof value.isCapital === 'boolean');
        assert.ok((value.tags as string[]).every((tag) => ['river', 'coast'].includes(tag)));
      }
      const sampling = { max_tokens: 150, logit_bias: { [await onlyToken('}')]: 20 } };
      assert.equal(typeof JSON.parse(await structured({ json_object: true }, sampling)), 'object');
    });

    test('are refused by name when they cannot be', async () => {
      const refuse = async (sampling: object) => (await client.error(greedy(FRANCE, { ...sampling }))).error;
      assert.match(
        await refuse({ structured_outputs: { xml: 1 } }),
        /'structured_outputs': unknown key 'xml'/,
      );
      assert.match(await refuse({ grammar: 'root ::= missing' }), /missing/);
      assert.match(await refuse({ structured_outputs: { json: { type: 'oddity' } } }), /oddity/);
    });
  });

  describe('characters', () => {
    const text = 'é😀日本🎉ñ👩‍🚀';

    test('are never split in a stream', async () => {
      const question = greedy(FRANCE, { structured_outputs: { choice: [text] }, max_tokens: 64 });
      const counts = { return_num_output_tokens: true };
      const events = await client.stream({ ...question, ...counts });
      for (const event of events) assert.doesNotMatch(textOf(event), /\uFFFD/);
      assert.equal(joined(events), text);
      assert.ok(
        events.some((event) => textOf(event) === ''),
        'no character had several tokens',
      );
    });

    test('that are cut off by the last token are left out', async () => {
      for (const max_tokens of [1, 2, 3, 5, 8]) {
        const question = greedy(FRANCE, { structured_outputs: { choice: [text] }, max_tokens });
        const cut = await client.text(question);
        assert.ok(text.startsWith(cut), `${max_tokens}: ${cut}`);
      }
    });
  });

  test('text becomes tokens and tokens text', async () => {
    const hello = await tokenize({ text: 'Hello wörld 😀', with_pieces: true });
    assert.equal(hello.count, hello.tokens.length);
    assert.equal(hello.pieces!.length, hello.count);
    assert.equal(hello.max_model_len, CONTEXT_LENGTH);
    const back = await client.text({ tokenize_request: JSON.stringify({ tokens: hello.tokens }) });
    assert.deepEqual(JSON.parse(back), { text: 'Hello wörld 😀' });
    const [special, plain] = [
      await tokenize({ text: '<|im_start|>' }),
      await tokenize({ text: '<|im_start|>', parse_special: false }),
    ];
    assert.equal(special.count, 1);
    assert.ok(plain.count > 1);
    const wrong = await client.error({ tokenize_request: JSON.stringify({ tokens: [1, 2 ** 30] }) });
    assert.match(wrong.error, /^1073741824 is no token of this model, which has 49152$/);
  });

  const WRONG: readonly (readonly [string, Question, string | RegExp])[] = [
    ['an unknown parameter', greedy(FRANCE, { temprature: 1 }), "unknown sampling parameter 'temprature'"],
    [
      'a temperature below zero',
      greedy(FRANCE, { temperature: -1 }),
      "sampling parameter 'temperature' must be a number of at least 0, but got -1",
    ],
    [
      'no tokens at all',
      greedy(FRANCE, { max_tokens: 0 }),
      "sampling parameter 'max_tokens' must be an integer of at least 1, but got 0",
    ],
    [
      'top_p above one',
      greedy(FRANCE, { top_p: 1.5 }),
      "sampling parameter 'top_p' must be a number above 0 and at most 1, but got 1.5",
    ],
    [
      'a wrong type',
      greedy(FRANCE, { ignore_eos: 'maybe' }),
      'sampling parameter \'ignore_eos\' must be true or false, but got "maybe"',
    ],
    [
      'prompt_logprobs',
      greedy(FRANCE, { prompt_logprobs: 1 }),
      "sampling parameter 'prompt_logprobs' is not supported",
    ],
    ['a LoRA adapter', greedy(FRANCE, { lora_name: 'x' }), 'LoRA feature is not enabled.'],
    ['a draft model', greedy(FRANCE, { speculative: 'draft' }), /the model has no draft_model$/],
    [
      'min above max',
      greedy(FRANCE, { min_tokens: 20 }),
      /'min_tokens' must be at most max_tokens, which is 16/,
    ],
    ['no JSON', { text_input: FRANCE, sampling_parameters: '{' }, 'sampling_parameters is not valid JSON'],
    ['an empty prompt', greedy(''), 'the prompt is empty'],
    [
      'no question',
      { sampling: {} },
      /must have one of the inputs text_input, chat_request,.*this one has none$/,
    ],
    [
      'two questions',
      { ...greedy(FRANCE), chat_request: '{"messages":[]}' },
      /this one has text_input and chat_request$/,
    ],
    ['no messages', { chat_request: '{}' }, /messages/],
    ['embeddings', { embedding_request: '{"input":"x"}' }, /^Model smol does not support 'embed' request/],
    [
      'reranking',
      { rerank_request: '{"query":"x","documents":["y"]}' },
      /^Model smol does not support 'rerank' request/,
    ],
  ];
  for (const [name, question, expected] of WRONG) {
    test(`${name}: refused with the reason`, async () => {
      const { status, error } = await client.error(question);
      assert.equal(status, 400, error);
      if (typeof expected === 'string') assert.equal(error, expected);
      else assert.match(error, expected);
      const stream = await client.post('generate_stream', { ...question, stream: true });
      assert.deepEqual([stream.status, eventsOf(stream.text)], [400, [{ error }]]);
    });
  }
});
