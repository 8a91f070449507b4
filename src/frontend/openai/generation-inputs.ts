// A request to generate → the inputs of a model, those that it declares and no others. Models that take `sampling_parameters`
// (vLLM's way) get one JSON object, others one tensor for each setting (TensorRT-LLM's way). What a client asked for and the
// model cannot do is refused by name where ignoring it would give a wrong answer. Pure.

import type { TensorSpec } from '../../domain/model-view.ts';
import type { InputTensor } from '../../domain/tensor.ts';
import { invalidField } from './api-error.ts';
import type { GenerationSettings } from './generation-fields.ts';
import { type TensorValue, type TensorValues, tensorOf } from './input-tensors.ts';
import type { Prompt } from './prepare-request.ts';
import type { JsonObject } from './read-fields.ts';
import { TEXT_INPUT, type TextModel } from './text-model.ts';

export interface PromptOptions {
  /** The model shall put the prompt before its text; it can, see `canEcho`. */
  readonly isEcho: boolean;
  /** Which of the choices that are requests of their own. */
  readonly choice: number;
}

/** For a model that must be told a limit, when the client named none. */
const MAX_TOKENS_IF_REQUIRED = 512;

const STREAM = ['stream', 'streaming'];
const EXCLUDE_PROMPT = ['exclude_input_in_output', 'sampling_param_exclude_input_from_output'];

/** setting → the tensors that carry it. */
const SETTING_TENSORS: Readonly<Record<string, readonly string[]>> = {
  max_tokens: ['max_tokens', 'sampling_param_max_tokens'],
  min_tokens: ['min_tokens'],
  temperature: ['temperature', 'sampling_param_temperature'],
  top_p: ['top_p', 'sampling_param_top_p'],
  top_k: ['top_k', 'sampling_param_top_k'],
  repetition_penalty: ['repetition_penalty'],
  presence_penalty: ['presence_penalty', 'sampling_param_presence_penalty'],
  frequency_penalty: ['frequency_penalty', 'sampling_param_frequency_penalty'],
  seed: ['seed', 'random_seed', 'sampling_param_seed'],
  stop: ['stop_words', 'sampling_param_stop'],
};

/** Whether one request of this model gives all choices; otherwise each is a request of its own. */
export function hasManyChoices(model: TextModel): boolean {
  return model.isChatModel;
}

export function canEcho(model: TextModel): boolean {
  return findInput(model, EXCLUDE_PROMPT) !== undefined;
}

function findInput(model: TextModel, names: readonly string[]): TensorSpec | undefined {
  for (const name of names) {
    const spec = model.inputs.get(name);
    if (spec !== undefined) return spec;
  }
  return undefined;
}

export function generationInputs(
  model: TextModel,
  settings: GenerationSettings,
  asked: PromptOptions & { readonly prompt: Prompt },
): InputTensor[] {
  const inputs: InputTensor[] = [];
  const add = (names: readonly string[], values: TensorValues, param: string): void => {
    const spec = findInput(model, names);
    if (spec !== undefined) inputs.push(tensorOf(model.served, spec, { values, param }));
  };
  checkSupported(model, settings, asked.prompt);
  addPrompt(add, asked.prompt);
  // A model that is not decoupled has one answer; some refuse to be asked for more. Log probabilities are asked for piece by
  // piece: those of a whole answer are megabytes of JSON, which would hold up the event loop.
  const isPieces = settings.isStream || settings.logprobCount !== undefined;
  add(STREAM, [isPieces && model.served.isDecoupled], 'stream');
  add(EXCLUDE_PROMPT, [!asked.isEcho], 'echo');
  if (model.inputs.has('sampling_parameters')) {
    add(['sampling_parameters'], [JSON.stringify(samplingDocument(model, settings, asked.choice))], 'model');
  } else {
    addSettings(add, model, { settings, choice: asked.choice });
  }
  add(['return_finish_reason'], [true], 'model');
  add(['return_num_input_tokens'], [true], 'model');
  add(['return_num_output_tokens'], [true], 'model');
  if (settings.logprobCount !== undefined) add(['return_logprobs'], [true], 'logprobs');
  if (settings.hasTimings) add(['return_timings'], [true], 'return_timings');
  return inputs;
}

function addPrompt(
  add: (names: readonly string[], values: TensorValues, param: string) => void,
  prompt: Prompt,
): void {
  if (prompt.kind === 'text') add([TEXT_INPUT], [prompt.bytes], 'prompt');
  else if (prompt.kind === 'tokens') add(['prompt_token_ids'], prompt.tokens, 'prompt');
  else add(['chat_request'], [prompt.bytes], 'messages');
}

function samplingDocument(model: TextModel, settings: GenerationSettings, choice: number): JsonObject {
  const { sampling, choiceCount, structure, logprobCount } = settings;
  const hasOurLogprobs = logprobCount !== undefined && model.isChatModel;
  const { seed } = sampling;
  return {
    ...sampling,
    n: hasManyChoices(model) ? choiceCount : 1,
    // Choices with one seed would all be the same.
    ...(typeof seed === 'number' && choice > 0 ? { seed: seed + choice } : {}),
    ...(structure === undefined ? {} : { structured_outputs: JSON.stringify(structure.value) }),
    ...(model.adapter === undefined ? {} : { lora_name: model.adapter }),
    ...(hasOurLogprobs ? { logprobs_format: 'openai' } : {}),
  };
}

function addSettings(
  add: (names: readonly string[], values: readonly TensorValue[], param: string) => void,
  model: TextModel,
  { settings, choice }: { settings: GenerationSettings; choice: number },
): void {
  for (const [name, tensors] of Object.entries(SETTING_TENSORS)) {
    const value = settings.sampling[name] ?? fallbackOf(model, name, tensors);
    if (value === undefined) continue;
    if (Array.isArray(value)) add(tensors, value as TensorValue[], name);
    // Choices with one seed would all be the same.
    else if (name === 'seed') add(tensors, [BigInt(value as number) + BigInt(choice)], name);
    else add(tensors, [value as TensorValue], name);
  }
  const { structure } = settings;
  if (structure === undefined) return;
  const { json } = structure.value;
  add(['guided_decoding_guide_type'], [json === undefined ? 'json' : 'json_schema'], structure.param);
  if (json !== undefined) add(['guided_decoding_guide'], [JSON.stringify(json)], structure.param);
}

function fallbackOf(model: TextModel, name: string, tensors: readonly string[]): number | undefined {
  const isRequired = name === 'max_tokens' && findInput(model, tensors)?.optional === false;
  return isRequired ? MAX_TOKENS_IF_REQUIRED : undefined;
}

function checkSupported(model: TextModel, settings: GenerationSettings, prompt: Prompt): void {
  const refuse = (param: string, what: string): never => {
    throw invalidField(param, `The model '${settings.model}' does not support ${what}.`);
  };
  const { structure, logprobCount } = settings;
  if (prompt.kind === 'tokens' && !model.inputs.has('prompt_token_ids'))
    refuse('prompt', 'prompts of tokens');
  if (logprobCount !== undefined && !(model.inputs.has('return_logprobs') && model.hasOutput('logprobs'))) {
    refuse('logprobs', "'logprobs'");
  }
  if (settings.hasTimings && !model.inputs.has('return_timings'))
    refuse('return_timings', "'return_timings'");
  if (model.inputs.has('sampling_parameters')) return;
  if (settings.sampling.logit_bias !== undefined) refuse('logit_bias', "'logit_bias'");
  if (structure === undefined) return;
  const isGuide = structure.value.json !== undefined || structure.value.json_object === true;
  if (!isGuide || !model.inputs.has('guided_decoding_guide_type'))
    refuse(structure.param, `'${structure.param}'`);
}
