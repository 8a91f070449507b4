// Every sampling parameter: its default, its cast, its range and the text that refuses it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StatusError } from '../../../domain/status.ts';
import { createMatcher } from './gbnf-matcher.ts';
import {
  parseSamplingParameters,
  type SamplingSettings,
  samplingFromRequestParameters,
} from './sampling-parameters.ts';

const parse = (value: unknown) => parseSamplingParameters(JSON.stringify(value));

function refuses(value: unknown, text: string | RegExp): void {
  assert.throws(
    () => (typeof value === 'string' ? parseSamplingParameters(value) : parse(value)),
    (thrown) => {
      assert.ok(thrown instanceof StatusError);
      assert.equal(thrown.code, 'INVALID_ARG');
      if (typeof text === 'string') assert.equal(thrown.message, text);
      else assert.match(thrown.message, text);
      return true;
    },
  );
}

const DEFAULTS: SamplingSettings = {
  n: 1,
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  typicalP: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  repetitionPenalty: 1,
  penaltyLastTokens: -1,
  seed: null,
  stop: [],
  stopTokenIds: [],
  isStopIncluded: false,
  isEosIgnored: false,
  maxTokens: 16,
  minTokens: 0,
  logprobs: null,
  logprobsFormat: 'vllm',
  areSpecialTokensSkipped: true,
  logitBias: new Map(),
  loraName: null,
  priority: 0,
  grammar: null,
  speculative: null,
};

describe('sampling parameters', () => {
  test('have vLLM’s defaults', () => {
    assert.deepEqual(parse({}), DEFAULTS);
    assert.deepEqual(parse({ temperature: null, stop: null, seed: null, prompt_logprobs: null }), DEFAULTS);
  });

  test('are read, each into its field', () => {
    const settings = parse({
      n: 2,
      presence_penalty: -2,
      frequency_penalty: 2,
      repetition_penalty: 1.1,
      temperature: 0,
      top_p: 0.9,
      top_k: -1,
      min_p: 0.05,
      typical_p: 0.5,
      seed: 7,
      stop: 'x',
      stop_token_ids: [2, 3],
      include_stop_str_in_output: true,
      ignore_eos: true,
      max_tokens: null,
      min_tokens: 5,
      logprobs: 0,
      skip_special_tokens: false,
      logit_bias: { '5': -100, '6': 1.5 },
      lora_name: 'mine',
      priority: -3,
      penalty_last_n: 64,
      speculative: 'lookup',
      logprobs_format: 'openai',
    });
    assert.deepEqual(settings, {
      ...DEFAULTS,
      n: 2,
      presencePenalty: -2,
      frequencyPenalty: 2,
      repetitionPenalty: 1.1,
      temperature: 0,
      topP: 0.9,
      topK: 0,
      minP: 0.05,
      typicalP: 0.5,
      seed: 7,
      stop: ['x'],
      stopTokenIds: [2, 3],
      isStopIncluded: true,
      isEosIgnored: true,
      maxTokens: null,
      minTokens: 5,
      logprobs: 0,
      areSpecialTokensSkipped: false,
      logitBias: new Map([
        [5, -100],
        [6, 1.5],
      ]),
      loraName: 'mine',
      priority: -3,
      penaltyLastTokens: 64,
      speculative: 'lookup',
      logprobsFormat: 'openai',
    });
  });

  test('given as text are cast', () => {
    const settings = parse({
      n: '3',
      temperature: '0.5',
      ignore_eos: 'True',
      max_tokens: ' 20 ',
      skip_special_tokens: '0',
    });
    assert.equal(settings.n, 3);
    assert.equal(settings.temperature, 0.5);
    assert.equal(settings.isEosIgnored, true);
    assert.equal(settings.maxTokens, 20);
    assert.equal(settings.areSpecialTokensSkipped, false);
  });

  test('outside their range are refused by name', () => {
    refuses(
      { temperature: -1 },
      "sampling parameter 'temperature' must be a number of at least 0, but got -1",
    );
    refuses({ top_p: 0 }, "sampling parameter 'top_p' must be a number above 0 and at most 1, but got 0");
    refuses({ top_p: 1.1 }, /'top_p'/);
    refuses(
      { min_p: 2 },
      "sampling parameter 'min_p' must be a number of at least 0 and at most 1, but got 2",
    );
    refuses({ presence_penalty: 3 }, /'presence_penalty' must be a number of at least -2 and at most 2/);
    refuses({ frequency_penalty: -2.1 }, /'frequency_penalty'/);
    refuses(
      { repetition_penalty: 0 },
      "sampling parameter 'repetition_penalty' must be a number above 0, but got 0",
    );
    refuses({ n: 0 }, "sampling parameter 'n' must be an integer of at least 1 and at most 128, but got 0");
    refuses({ n: 129 }, /'n'/);
    refuses({ n: 1.5 }, /'n'/);
    refuses({ top_k: -2 }, /'top_k' must be an integer of at least -1/);
    refuses({ max_tokens: 0 }, /'max_tokens' must be an integer of at least 1/);
    refuses(
      { min_tokens: 17 },
      "sampling parameter 'min_tokens' must be at most max_tokens, which is 16, but got 17",
    );
    refuses({ logprobs: 21 }, /'logprobs'/);
    refuses({ typical_p: 0 }, /'typical_p'/);
    refuses({ penalty_last_n: -2 }, /'penalty_last_n'/);
    refuses({ logit_bias: { 5: 101 } }, /'logit_bias'/);
  });

  test('of a wrong type are refused by name', () => {
    refuses(
      { temperature: 'hot' },
      `sampling parameter 'temperature' must be a number of at least 0, but got "hot"`,
    );
    refuses({ temperature: [] }, /'temperature'/);
    refuses({ temperature: true }, /'temperature'/);
    refuses(
      { ignore_eos: 'maybe' },
      `sampling parameter 'ignore_eos' must be true or false, but got "maybe"`,
    );
    refuses({ stop: '' }, /'stop' must be a string or at most 16 strings/);
    refuses({ stop: ['a', 5] }, /'stop'/);
    refuses({ stop: Array.from({ length: 17 }, () => 'a') }, /'stop'/);
    refuses({ stop_token_ids: [-1] }, /'stop_token_ids'/);
    refuses({ logit_bias: { a: 1 } }, /'logit_bias'/);
    refuses({ logit_bias: [1] }, /'logit_bias'/);
    refuses({ lora_name: 5 }, /'lora_name'/);
    refuses({ speculative: 'yes' }, /'speculative' must be one of off, draft, lookup/);
    refuses({ logprobs_format: 'x' }, /'logprobs_format'/);
    refuses({ seed: 1.5 }, /'seed' must be an integer of 64 bits/);
    refuses({ seed: 'a' }, /'seed'/);
  });

  test('that are unknown or not supported are refused by name', () => {
    refuses({ temprature: 1 }, "unknown sampling parameter 'temprature'");
    refuses({ bad_words: ['a'] }, "sampling parameter 'bad_words' is not supported");
    refuses({ prompt_logprobs: 1 }, "sampling parameter 'prompt_logprobs' is not supported");
    refuses('{', 'sampling_parameters is not valid JSON');
    refuses('[]', 'sampling_parameters must be a JSON object');
  });

  test('take seeds of 64 bits', () => {
    assert.equal(parseSamplingParameters('{"seed": 9223372036854775807}').seed, 0xffffffff);
    assert.equal(parseSamplingParameters('{"seed": -9223372036854775807}').seed, 1);
    assert.equal(parseSamplingParameters('{"seed": 18446744073709551615}').seed, 0xffffffff);
    assert.equal(parse({ seed: '4294967297' }).seed, 1);
    assert.equal(parse({ seed: -2 }).seed, 0xfffffffe);
    assert.equal(parse({ seed: -1 }).seed, null);
    refuses('{"seed": 36893488147419103232}', /'seed'/);
  });

  test('make the grammar of structured outputs', () => {
    const byText = parse({ structured_outputs: '{"choice": ["yes", "no"]}' }).grammar;
    const matches = createMatcher(byText!);
    assert.deepEqual(['yes', 'no', 'maybe'].map(matches), [true, true, false]);
    assert.equal(parse({ structured_outputs: { choice: ['yes', 'no'] } }).grammar, byText);
    assert.equal(parse({ grammar: 'root ::= "a"' }).grammar, 'root ::= "a"');
    refuses(
      { grammar: 'root ::= x' },
      "sampling parameter 'grammar': the grammar is not valid: rule 'x' is not defined",
    );
    refuses({ grammar: 'root ::= "a"', structured_outputs: { regex: 'a' } }, /cannot both be given/);
    refuses({ structured_outputs: { json: {}, regex: 'a' } }, /exactly one of/);
    refuses(
      { structured_outputs: { xml: {} } },
      "sampling parameter 'structured_outputs': unknown key 'xml'",
    );
    refuses({ structured_outputs: '{' }, "sampling parameter 'structured_outputs': it is not valid JSON");
  });
});

test('request parameters are read, Triton’s own are not', () => {
  const settings = samplingFromRequestParameters(
    new Map<string, string | bigint | boolean | number>([
      ['temperature', 0n],
      ['max_tokens', 5n],
      ['top_p', '0.5'],
      ['seed', 2n ** 40n + 3n],
      ['stop_token_ids', '[1,2]'],
      ['logit_bias', '{"3": 1}'],
      ['stop', '["a"]'],
      ['priority', 9n],
      ['timeout', 100n],
      ['sequence_id', 1n],
      ['binary_data_output', true],
      ['triton_enable_empty_final_response', true],
      ['stream', true],
      ['x-request-id', 'a'],
    ]),
  );
  assert.deepEqual(settings, {
    ...DEFAULTS,
    temperature: 0,
    maxTokens: 5,
    topP: 0.5,
    seed: 3,
    stopTokenIds: [1, 2],
    logitBias: new Map([[3, 1]]),
    stop: ['["a"]'],
  });
  assert.throws(
    () => samplingFromRequestParameters([['nonsense', 1]]),
    /unknown sampling parameter 'nonsense'/,
  );
});
