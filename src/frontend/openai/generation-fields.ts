// The fields that chat and text completions have in common: how to sample, how many choices, what to tell besides the text.
// Sampling keeps vLLM's names, which are those of the `sampling_parameters` input; only what the client gave is in it.

import { OPENAI_SETTING_TOKENS_MAX, OPENAI_STRUCTURE_CHARS_MAX } from '../../domain/limits.ts';
import { invalidField } from './api-error.ts';
import {
  isObject,
  type JsonObject,
  missing,
  type NumberBounds,
  readBoolean,
  readChoice,
  readList,
  readNumber,
  readObject,
  readString,
  readStrings,
  requireString,
  TOKENS,
  wrong,
} from './read-fields.ts';

export type Sampling = Readonly<Record<string, unknown>>;

/** What the text must look like, as vLLM's structured_outputs has it, and the field that asked for it. */
export interface Structure {
  readonly param: string;
  readonly value: JsonObject;
}

export interface GenerationSettings {
  /** As the client wrote it, an adapter included. */
  readonly model: string;
  readonly isStream: boolean;
  /** A last chunk with the usage. */
  readonly hasUsageChunk: boolean;
  readonly choiceCount: number;
  /** Alternatives to report for each token; 0 reports the token alone, undefined nothing. */
  readonly logprobCount: number | undefined;
  readonly hasTimings: boolean;
  readonly sampling: Sampling;
  readonly structure: Structure | undefined;
}

const CHOICES_PER_PROMPT_MAX = 128;
/** As the engine has it. */
const STOPS_MAX = 16;
/** Nothing at all may be drawn with 0; the most likely token alone is what is meant. */
const TOP_P_MIN = 1e-6;

const NUMBERS: Readonly<Record<string, NumberBounds>> = {
  temperature: { min: 0, max: 2 },
  top_p: { min: 0, max: 1 },
  presence_penalty: { min: -2, max: 2 },
  frequency_penalty: { min: -2, max: 2 },
  repetition_penalty: { min: 0, max: 10 },
  top_k: { min: -1, isInteger: true },
  min_p: { min: 0, max: 1 },
  typical_p: { min: 0, max: 1 },
  min_tokens: { min: 0, isInteger: true },
  penalty_last_n: { min: -1, isInteger: true },
  seed: { min: -(2 ** 63), max: 2 ** 63, isInteger: true },
  priority: { isInteger: true },
};
const BOOLEANS = ['include_stop_str_in_output', 'ignore_eos', 'skip_special_tokens'];

export function readSettings(
  body: JsonObject,
  own: { readonly maxTokens: number | undefined; readonly logprobCount: number | undefined },
): GenerationSettings {
  const isStream = readBoolean(body, 'stream') ?? false;
  const streamOptions = readObject(body, 'stream_options');
  if (streamOptions !== undefined && !isStream) {
    throw invalidField(
      'stream_options',
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    );
  }
  return {
    model: requireString(body, 'model'),
    isStream,
    hasUsageChunk: readBoolean(streamOptions ?? {}, 'include_usage') ?? false,
    choiceCount: readNumber(body, 'n', { min: 1, max: CHOICES_PER_PROMPT_MAX, isInteger: true }) ?? 1,
    logprobCount: own.logprobCount,
    hasTimings: readBoolean(body, 'return_timings') ?? false,
    sampling: readSampling(body, own),
    structure: readStructure(body),
  };
}

function readSampling(
  body: JsonObject,
  own: { readonly maxTokens: number | undefined; readonly logprobCount: number | undefined },
): Sampling {
  // Null: until the context is full.
  const sampling: Record<string, unknown> = { max_tokens: own.maxTokens ?? null };
  if (own.logprobCount !== undefined) sampling.logprobs = own.logprobCount;
  for (const [name, bounds] of Object.entries(NUMBERS)) {
    const value = readNumber(body, name, bounds);
    if (value !== undefined) sampling[name] = name === 'top_p' ? Math.max(value, TOP_P_MIN) : value;
  }
  for (const name of BOOLEANS) {
    const value = readBoolean(body, name);
    if (value !== undefined) sampling[name] = value;
  }
  const stop = readStop(body);
  if (stop !== undefined) sampling.stop = stop;
  const stopTokens = readList<number>(body, 'stop_token_ids', TOKENS);
  if (stopTokens !== undefined) {
    checkCount('stop_token_ids', stopTokens.length);
    sampling.stop_token_ids = stopTokens;
  }
  const bias = readLogitBias(body);
  if (bias !== undefined) sampling.logit_bias = bias;
  const speculative = readChoice(body, 'speculative', ['off', 'draft', 'lookup']);
  if (speculative !== undefined) sampling.speculative = speculative;
  return sampling;
}

function readStop(body: JsonObject): readonly string[] | undefined {
  const stop = readStrings(body, 'stop');
  if (stop === undefined || stop.length === 0) return undefined;
  if (stop.length > STOPS_MAX) throw wrong('stop', `at most ${STOPS_MAX} strings`, stop);
  if (stop.includes('')) throw wrong('stop', 'strings that are not empty', body.stop);
  return stop;
}

function checkCount(param: string, count: number): void {
  if (count <= OPENAI_SETTING_TOKENS_MAX) return;
  const most = `at most ${OPENAI_SETTING_TOKENS_MAX} are allowed`;
  throw invalidField(param, `'${param}' has ${count} tokens, ${most}.`);
}

function readLogitBias(body: JsonObject): JsonObject | undefined {
  const bias = readObject(body, 'logit_bias');
  if (bias === undefined) return undefined;
  checkCount('logit_bias', Object.keys(bias).length);
  for (const [token, value] of Object.entries(bias)) {
    if (!/^[0-9]+$/.test(token)) throw wrong('logit_bias', 'token ids as keys', token);
    readNumber({ [`logit_bias.${token}`]: value }, `logit_bias.${token}`, { min: -100, max: 100 });
  }
  return Object.keys(bias).length === 0 ? undefined : bias;
}

/** `response_format`, or one of the names that vLLM and llama.cpp have for the same. */
function readStructure(body: JsonObject): Structure | undefined {
  const found: Structure[] = [];
  const add = (param: string, value: JsonObject | undefined): void => {
    if (value !== undefined) found.push({ param, value });
  };
  add('response_format', readResponseFormat(body));
  add('structured_outputs', readObject(body, 'structured_outputs'));
  const json = body.guided_json ?? undefined;
  add('guided_json', json === undefined ? undefined : { json: parseSchema('guided_json', json) });
  add('guided_regex', wrapped('regex', readString(body, 'guided_regex')));
  add('guided_choice', wrapped('choice', readStrings(body, 'guided_choice')));
  add('guided_grammar', wrapped('grammar', readString(body, 'guided_grammar')));
  add('grammar', wrapped('grammar', readString(body, 'grammar')));
  const [first, second] = found;
  if (second !== undefined) {
    throw invalidField(second.param, `'${second.param}' cannot be used together with '${first!.param}'.`);
  }
  if (first !== undefined && JSON.stringify(first.value).length > OPENAI_STRUCTURE_CHARS_MAX) {
    throw invalidField(
      first.param,
      `'${first.param}' is longer than ${OPENAI_STRUCTURE_CHARS_MAX} characters of JSON.`,
    );
  }
  return first;
}

function wrapped(key: string, value: unknown): JsonObject | undefined {
  return value === undefined ? undefined : { [key]: value };
}

function readResponseFormat(body: JsonObject): JsonObject | undefined {
  const format = readObject(body, 'response_format');
  if (format === undefined) return undefined;
  const { type: given } = format;
  const field = 'response_format.type';
  const type = readChoice({ [field]: given }, field, ['text', 'json_object', 'json_schema']);
  if (type === undefined) throw missing('response_format.type');
  if (type === 'text') return undefined;
  if (type === 'json_object') return { json_object: true };
  const { json_schema: described } = format;
  if (!isObject(described)) throw missing('response_format.json_schema');
  const schema = described.schema ?? undefined;
  if (schema === undefined) return { json_object: true };
  return { json: parseSchema('response_format.json_schema.schema', schema) };
}

/** vLLM takes a schema as text too. */
function parseSchema(param: string, value: unknown): JsonObject {
  if (isObject(value)) return value;
  if (typeof value === 'string') {
    try {
      const parsed: unknown = JSON.parse(value);
      if (isObject(parsed)) return parsed;
    } catch {
      // Named below.
    }
  }
  throw wrong(param, 'a JSON schema', value);
}
