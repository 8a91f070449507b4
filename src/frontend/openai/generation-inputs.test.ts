// Which tensors models of three kinds are sent for the same request.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServedModel } from '../../core/model/served-model.ts';
import type { DataType } from '../../domain/datatype.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import { contiguous, type InputTensor } from '../../domain/tensor.ts';
import { ApiError } from './api-error.ts';
import { parseCompletionRequest } from './completion-request.ts';
import { generationInputs } from './generation-inputs.ts';
import type { Prompt } from './prepare-request.ts';
import type { JsonObject } from './read-fields.ts';
import type { TextModel } from './text-model.ts';

type Declared = Readonly<Record<string, readonly [DataType, number, ...string[]]>>;

const TRT_LLM: Declared = {
  text_input: ['BYTES', 1],
  max_tokens: ['INT32', 1, 'required'],
  stop_words: ['BYTES', -1],
  top_k: ['INT32', 1],
  top_p: ['FP32', 1],
  temperature: ['FP32', 1],
  seed: ['UINT64', 1],
  stream: ['BOOL', 1],
  guided_decoding_guide_type: ['BYTES', 1],
  guided_decoding_guide: ['BYTES', 1],
  return_num_input_tokens: ['BOOL', 1],
};
const LLMAPI: Declared = {
  text_input: ['BYTES', -1],
  streaming: ['BOOL', 1],
  sampling_param_temperature: ['FP32', 1],
  sampling_param_stop: ['BYTES', -1],
  sampling_param_exclude_input_from_output: ['BOOL', 1],
  stop: ['BOOL', 1],
};
const VLLM: Declared = {
  text_input: ['BYTES', 1],
  stream: ['BOOL', 1],
  sampling_parameters: ['BYTES', 1],
  exclude_input_in_output: ['BOOL', 1],
  return_finish_reason: ['BOOL', 1],
  return_logprobs: ['BOOL', 1],
};

function modelOf(
  declared: Declared,
  more: { maxBatchSize?: number; isDecoupled?: boolean; adapter?: string } = {},
): TextModel {
  const inputs = Object.entries(declared).map(
    ([name, [datatype, dim, required]]): TensorSpec => ({
      name,
      datatype,
      dims: [dim],
      optional: required === undefined,
    }),
  );
  const { maxBatchSize = 0, isDecoupled = true } = more;
  // Only what the conversion looks at; a whole model would need a host.
  const served = { maxBatchSize, isDecoupled } as ServedModel;
  return {
    served,
    target: { model: 'm', version: -1 },
    adapter: more.adapter,
    isChatModel: false,
    inputs: new Map(inputs.map((input) => [input.name, input])),
    hasOutput: (name) => name === 'logprobs',
  };
}

function inputsOf(
  model: TextModel,
  body: JsonObject,
  options: { choice?: number; prompt?: Prompt } = {},
): InputTensor[] {
  const settings = parseCompletionRequest({ model: 'm', prompt: 'hi', ...body });
  const { choice = 0, prompt = { kind: 'text', bytes: Buffer.from('hi') } } = options;
  return generationInputs(model, settings, { prompt, isEcho: settings.isEcho, choice });
}

/** name → shape and bytes. */
function shown(inputs: readonly InputTensor[]): Record<string, string> {
  return Object.fromEntries(
    inputs.map(({ name, datatype, shape, data }) => {
      const bytes = contiguous(data);
      const value = datatype === 'BYTES' ? bytes.toString('latin1', 4) : bytes.toString('hex');
      return [name, `${shape.join('x')} ${value}`];
    }),
  );
}

function samplingOf(inputs: readonly InputTensor[]): unknown {
  const tensor = inputs.find(({ name }) => name === 'sampling_parameters')!;
  return JSON.parse(contiguous(tensor.data).toString('utf8', 4));
}

describe('a model with a tensor for each setting', () => {
  test('gets those it declares, batched', () => {
    const model = modelOf(TRT_LLM, { maxBatchSize: 4 });
    const body = {
      max_tokens: 3,
      top_k: 5,
      seed: 6,
      stop: ['a'],
      min_p: 0.5,
      presence_penalty: 1,
      stream: true,
    };
    assert.deepEqual(shown(inputsOf(model, body, { choice: 2 })), {
      text_input: '1x1 hi',
      stream: '1x1 01',
      max_tokens: '1x1 03000000',
      stop_words: '1x1 a',
      top_k: '1x1 05000000',
      seed: '1x1 0800000000000000',
      return_num_input_tokens: '1x1 01',
    });
  });

  test('is told a limit that it must have, and not to stream when it cannot', () => {
    const model = modelOf(TRT_LLM, { isDecoupled: false });
    const inputs = shown(inputsOf(model, { stream: true }));
    assert.equal(inputs.max_tokens, '1 00020000');
    assert.equal(inputs.stream, '1 00');
  });

  test('gets a schema in its own way', () => {
    const schema = { type: 'object' };
    const inputs = shown(inputsOf(modelOf(TRT_LLM), { guided_json: schema }));
    assert.equal(inputs.guided_decoding_guide_type, '1 json_schema');
    assert.equal(inputs.guided_decoding_guide, '1 {"type":"object"}');
    const any = shown(inputsOf(modelOf(TRT_LLM), { response_format: { type: 'json_object' } }));
    assert.deepEqual([any.guided_decoding_guide_type, any.guided_decoding_guide], ['1 json', undefined]);
  });

  test('under other names', () => {
    assert.deepEqual(shown(inputsOf(modelOf(LLMAPI), { temperature: 0.5, stop: 'x', echo: true })), {
      text_input: '1 hi',
      streaming: '1 00',
      sampling_param_exclude_input_from_output: '1 00',
      sampling_param_temperature: '1 0000003f',
      sampling_param_stop: '1 x',
    });
  });
});

describe('a model with sampling_parameters', () => {
  test('gets one object, one choice at a time', () => {
    const model = modelOf(VLLM, { adapter: 'pirate' });
    const body = { n: 3, seed: 6, temperature: 0, logprobs: 2, stop: 'x', guided_regex: 'a+' };
    const inputs = inputsOf(model, body, { choice: 1 });
    assert.deepEqual(samplingOf(inputs), {
      max_tokens: null,
      n: 1,
      seed: 7,
      temperature: 0,
      logprobs: 2,
      stop: ['x'],
      lora_name: 'pirate',
      structured_outputs: '{"regex":"a+"}',
    });
    const { sampling_parameters: _, ...others } = shown(inputs);
    assert.deepEqual(others, {
      text_input: '1 hi',
      // In pieces, since log probabilities are wanted.
      stream: '1 01',
      exclude_input_in_output: '1 01',
      return_finish_reason: '1 01',
      return_logprobs: '1 01',
    });
  });
});

describe('what a model cannot do is refused', () => {
  const CASES: readonly [string, Declared, JsonObject, Prompt | undefined][] = [
    ['logprobs', TRT_LLM, { logprobs: 1 }, undefined],
    ['logit_bias', TRT_LLM, { logit_bias: { 1: 1 } }, undefined],
    ['return_timings', VLLM, { return_timings: true }, undefined],
    ['guided_regex', TRT_LLM, { guided_regex: 'a' }, undefined],
    ['response_format', LLMAPI, { response_format: { type: 'json_object' } }, undefined],
    ['prompt', VLLM, {}, { kind: 'tokens', tokens: Int32Array.of(1) }],
  ];
  for (const [param, declared, body, prompt] of CASES) {
    test(param, () => {
      assert.throws(
        () => inputsOf(modelOf(declared), body, prompt === undefined ? {} : { prompt }),
        (error) => error instanceof ApiError && error.detail.param === param,
      );
    });
  }
});
