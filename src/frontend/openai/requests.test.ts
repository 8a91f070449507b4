// What bodies of chat and text completions are taken for, and which field a refusal names.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiError } from './api-error.ts';
import { parseChatRequest } from './chat-request.ts';
import { parseCompletionRequest } from './completion-request.ts';
import type { JsonObject } from './read-fields.ts';

const USER = { role: 'user', content: 'hi' };
const ADD = { type: 'function', function: { name: 'add' } };
const chat = (more: JsonObject) => parseChatRequest({ model: 'm', messages: [USER], ...more });
const complete = (more: JsonObject) => parseCompletionRequest({ model: 'm', prompt: 'p', ...more });

function paramOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (thrown) {
    assert.ok(thrown instanceof ApiError, String(thrown));
    assert.equal(thrown.detail.status, 400);
    assert.ok(thrown.message.length > 10);
    return thrown.detail.param;
  }
  assert.fail('nothing was refused');
}

describe('a chat request', () => {
  test('that says little', () => {
    const request = chat({ temperature: null, stop: null, tools: null, response_format: { type: 'text' } });
    assert.deepEqual(request.sampling, { max_tokens: null });
    assert.deepEqual([request.choiceCount, request.isStream, request.toolChoice], [1, false, 'none']);
    assert.equal(request.logprobCount, undefined);
    assert.equal(request.structure, undefined);
  });

  test('that says much', () => {
    const { sampling, structure, logprobCount } = chat({
      max_completion_tokens: 7,
      max_tokens: 8,
      top_p: 0,
      top_k: -1,
      stop: 'end',
      stop_token_ids: [2],
      logit_bias: { 1: 2 },
      logprobs: true,
      seed: -5,
      speculative: 'lookup',
      priority: -3,
      guided_json: '{"type":"array"}',
    });
    assert.deepEqual(sampling, {
      max_tokens: 7,
      logprobs: 0,
      top_p: 1e-6,
      top_k: -1,
      stop: ['end'],
      stop_token_ids: [2],
      logit_bias: { 1: 2 },
      seed: -5,
      speculative: 'lookup',
      priority: -3,
    });
    assert.deepEqual(structure, { param: 'guided_json', value: { json: { type: 'array' } } });
    assert.equal(logprobCount, 0);
  });

  test('messages have one form', () => {
    const { messages } = chat({
      messages: [
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'add', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'c', content: '1' },
      ],
    });
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content]),
      [
        ['system', 'a\nb'],
        ['assistant', null],
        ['tool', '1'],
      ],
    );
  });

  const REFUSED: readonly [JsonObject, string][] = [
    [{ model: 5 }, 'model'],
    [{ model: undefined }, 'model'],
    [{ messages: [] }, 'messages'],
    [{ messages: 'hi' }, 'messages'],
    [{ messages: ['hi'] }, 'messages[0]'],
    [{ messages: [{ role: 'robot', content: 'a' }] }, 'messages[0].role'],
    [{ messages: [USER, { role: 'user' }] }, 'messages[1].content'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0].type'],
    [{ messages: [{ role: 'assistant', tool_calls: [{}] }] }, 'messages[0].tool_calls[0].function'],
    [{ temperature: 2.1 }, 'temperature'],
    [{ temperature: '1' }, 'temperature'],
    [{ top_p: -0.1 }, 'top_p'],
    [{ presence_penalty: 3 }, 'presence_penalty'],
    [{ frequency_penalty: -3 }, 'frequency_penalty'],
    [{ n: 0 }, 'n'],
    [{ n: 1.5 }, 'n'],
    [{ n: 129 }, 'n'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_completion_tokens: -1 }, 'max_completion_tokens'],
    [{ min_tokens: -1 }, 'min_tokens'],
    [{ ignore_eos: 123 }, 'ignore_eos'],
    [{ stream: 'yes' }, 'stream'],
    [{ stream_options: { include_usage: true } }, 'stream_options'],
    [{ stop: ['a', ''] }, 'stop'],
    [{ stop: Array(17).fill('a') }, 'stop'],
    [{ stop: [5] }, 'stop[0]'],
    [{ logit_bias: { a: 1 } }, 'logit_bias'],
    [{ logit_bias: { 1: 101 } }, 'logit_bias.1'],
    [{ logprobs: 1 }, 'logprobs'],
    [{ top_logprobs: 2 }, 'top_logprobs'],
    [{ logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
    [{ tools: [{ type: 'web' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name'],
    [
      { tools: [{ type: 'function', function: { name: 'a', parameters: [] } }] },
      'tools[0].function.parameters',
    ],
    [{ tool_choice: 'required' }, 'tool_choice'],
    [{ tools: [ADD], tool_choice: 'add' }, 'tool_choice'],
    [{ tools: [ADD], tool_choice: { type: 'function', function: { name: 'no' } } }, 'tool_choice'],
    [{ response_format: { type: 'xml' } }, 'response_format.type'],
    [{ response_format: {} }, 'response_format.type'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [{ guided_json: 'no' }, 'guided_json'],
    [{ grammar: 'root ::= "a"', guided_regex: 'a' }, 'grammar'],
    [{ speculative: 'maybe' }, 'speculative'],
  ];
  for (const [body, param] of REFUSED) {
    test(`${JSON.stringify(body)} is refused for ${param}`, () =>
      assert.equal(
        paramOf(() => chat(body)),
        param,
      ));
  }

  test('tool_choice', () => {
    assert.equal(chat({ tools: [ADD] }).toolChoice, 'auto');
    assert.equal(chat({ tool_choice: 'auto' }).toolChoice, 'none');
    assert.equal(chat({ tools: [ADD], tool_choice: 'required' }).toolChoice, 'required');
    const named = chat({ tools: [ADD], tool_choice: { type: 'function', function: { name: 'add' } } });
    assert.deepEqual(named.toolChoice, { name: 'add' });
  });
});

describe('a completion request', () => {
  test('prompts of every kind', () => {
    const kinds = (prompt: unknown) => complete({ prompt }).prompts;
    assert.deepEqual(kinds('a'), [{ kind: 'text', text: 'a' }]);
    assert.deepEqual(kinds([1, 2]), [{ kind: 'tokens', tokens: [1, 2] }]);
    assert.deepEqual(kinds(['a', [3]]), [
      { kind: 'text', text: 'a' },
      { kind: 'tokens', tokens: [3] },
    ]);
    assert.deepEqual(
      [complete({ best_of: 2, n: 2 }).choiceCount, complete({ logprobs: 0 }).logprobCount],
      [2, 0],
    );
  });

  const REFUSED: readonly [JsonObject, string][] = [
    [{ prompt: undefined }, 'prompt'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: [] }, 'prompt'],
    [{ prompt: ['a', ''] }, 'prompt[1]'],
    [{ prompt: [1, 'a'] }, 'prompt'],
    [{ prompt: [1.5] }, 'prompt'],
    [{ prompt: [[1], []] }, 'prompt[1]'],
    [{ prompt: [-1] }, 'prompt'],
    [{ prompt: Array(9).fill('a'), n: 128 }, 'prompt'],
    [{ suffix: 'x' }, 'suffix'],
    [{ best_of: 3, n: 2 }, 'best_of'],
    [{ logprobs: true }, 'logprobs'],
    [{ logprobs: 1, echo: true }, 'echo'],
    [{ prompt: [1], echo: true, stream: true }, 'echo'],
  ];
  for (const [body, param] of REFUSED) {
    test(`${JSON.stringify(body).slice(0, 60)} is refused for ${param}`, () =>
      assert.equal(
        paramOf(() => complete(body)),
        param,
      ));
  }
});
