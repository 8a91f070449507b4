// The sampling parameters of a request, read once and checked: JSON of the input `sampling_parameters`, or the
// request's own parameters where that input is absent. Names and defaults are vLLM's, with some of ours beside them.
// The engine calls it in the host, before a request enters the scheduler.
import { invalidArgument, StatusError } from '../../../domain/status.ts';
import type { LogprobsFormat } from './logprobs.ts';
import {
  present,
  type RawParameters,
  readBoolean,
  readInteger,
  readJson,
  readNumber,
  readOneOf,
  readText,
  refused,
  toNumber,
} from './sampling-fields.ts';
import { ownGrammar, structuredOutputs } from './structured-outputs.ts';

export type Speculation = 'off' | 'draft' | 'lookup';

export interface SamplingSettings {
  /** Choices of one request. */
  readonly n: number;
  /** 0 is greedy. */
  readonly temperature: number;
  readonly topP: number;
  /** 0 is off. */
  readonly topK: number;
  readonly minP: number;
  readonly typicalP: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  readonly repetitionPenalty: number;
  /** How many of the last tokens the penalties look at; -1 is all of them. */
  readonly penaltyLastTokens: number;
  /** 32 bits; null leaves the choice to the engine. */
  readonly seed: number | null;
  readonly stop: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly isStopIncluded: boolean;
  readonly isEosIgnored: boolean;
  /** null is until the context is full. */
  readonly maxTokens: number | null;
  readonly minTokens: number;
  /** Alternatives per token; null is no logprobs at all. */
  readonly logprobs: number | null;
  readonly logprobsFormat: LogprobsFormat;
  readonly areSpecialTokensSkipped: boolean;
  readonly logitBias: ReadonlyMap<number, number>;
  readonly loraName: string | null;
  /** Lower goes first. */
  readonly priority: number;
  /** GBNF that the answer must follow. */
  readonly grammar: string | null;
  /** null is what the model's config says. */
  readonly speculative: Speculation | null;
}

const NAMES = new Set([
  ...[
    'n',
    'presence_penalty',
    'frequency_penalty',
    'repetition_penalty',
    'temperature',
    'top_p',
    'top_k',
    'min_p',
  ],
  ...[
    'typical_p',
    'seed',
    'stop',
    'stop_token_ids',
    'include_stop_str_in_output',
    'ignore_eos',
    'max_tokens',
  ],
  ...[
    'min_tokens',
    'logprobs',
    'skip_special_tokens',
    'logit_bias',
    'lora_name',
    'priority',
    'structured_outputs',
  ],
  ...['grammar', 'penalty_last_n', 'speculative', 'logprobs_format'],
]);
const NOT_SUPPORTED = ['prompt_logprobs', 'bad_words'];
/** Parameters of Triton's own, and inputs of the model that the generate endpoint repeats among the parameters. */
const RESERVED = new Set([
  ...['sequence_id', 'sequence_start', 'sequence_end', 'priority', 'timeout', 'headers', 'classification'],
  ...['binary_data', 'binary_data_output', 'binary_data_size'],
  ...['shared_memory_region', 'shared_memory_offset', 'shared_memory_byte_size'],
  ...['stream', 'exclude_input_in_output', 'text_input'],
]);
const MAX_TOKENS_DEFAULT = 16;
const STOP_COUNT_MAX = 16;
const STOP_LENGTH_MAX = 1024;
const LIST_LENGTH_MAX = 1024;
const BIAS_MAX = 100;

/** `text` is the JSON object of the input `sampling_parameters`. */
export function parseSamplingParameters(text: string): SamplingSettings {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidArgument('sampling_parameters is not valid JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidArgument('sampling_parameters must be a JSON object');
  }
  const raw = new Map<string, unknown>(Object.entries(value));
  const seed = raw.get('seed');
  if (typeof seed === 'number' && !Number.isSafeInteger(seed)) raw.set('seed', exactSeed(text, seed));
  return settingsOf(raw);
}

/** The parameters of a request that came without the input `sampling_parameters`. */
export function samplingFromRequestParameters(
  parameters: Iterable<readonly [string, string | number | bigint | boolean]>,
): SamplingSettings {
  const raw = new Map<string, unknown>();
  for (const [name, value] of parameters) if (!isReserved(name)) raw.set(name, value);
  return settingsOf(raw);
}

function isReserved(name: string): boolean {
  // Request headers may be forwarded as parameters; theirs are the names with a dash.
  return RESERVED.has(name) || name.includes('-') || /^(?:triton_|return_)/.test(name);
}

/** JSON.parse rounds integers above 53 bits; the text still has all of them. */
function exactSeed(text: string, rounded: number): unknown {
  const found = [...text.matchAll(/"seed"\s*:\s*(-?\d+)(?![\d.eE])/g)].map((match) => match[1]!);
  const exact = found.find((digits) => Number(digits) === rounded);
  return exact === undefined ? rounded : BigInt(exact);
}

function settingsOf(raw: RawParameters): SamplingSettings {
  for (const [name, value] of raw) {
    if (NOT_SUPPORTED.includes(name) && value !== null) {
      throw invalidArgument(`sampling parameter '${name}' is not supported`);
    }
    if (!NAMES.has(name) && !NOT_SUPPORTED.includes(name)) {
      throw invalidArgument(`unknown sampling parameter '${name}'`);
    }
  }
  const maxTokens =
    raw.get('max_tokens') === null ? null : readInteger(raw, 'max_tokens', MAX_TOKENS_DEFAULT, { min: 1 });
  const minTokens = readInteger(raw, 'min_tokens', 0, { min: 0 });
  if (maxTokens !== null && minTokens > maxTokens) {
    throw refused('min_tokens', `at most max_tokens, which is ${maxTokens}`, minTokens);
  }
  const penalty = { min: -2, max: 2 };
  const fraction = { min: 0, max: 1, isAboveMin: true };
  return {
    n: readInteger(raw, 'n', 1, { min: 1, max: 128 }),
    temperature: readNumber(raw, 'temperature', 1, { min: 0 }),
    topP: readNumber(raw, 'top_p', 1, fraction),
    topK: Math.max(0, readInteger(raw, 'top_k', 0, { min: -1 })),
    minP: readNumber(raw, 'min_p', 0, { min: 0, max: 1 }),
    typicalP: readNumber(raw, 'typical_p', 1, fraction),
    presencePenalty: readNumber(raw, 'presence_penalty', 0, penalty),
    frequencyPenalty: readNumber(raw, 'frequency_penalty', 0, penalty),
    repetitionPenalty: readNumber(raw, 'repetition_penalty', 1, { min: 0, isAboveMin: true }),
    penaltyLastTokens: readInteger(raw, 'penalty_last_n', -1, { min: -1 }),
    seed: readSeed(raw),
    stop: readStop(raw),
    stopTokenIds: readTokenIds(raw),
    isStopIncluded: readBoolean(raw, 'include_stop_str_in_output', false),
    isEosIgnored: readBoolean(raw, 'ignore_eos', false),
    maxTokens,
    minTokens,
    logprobs: readInteger(raw, 'logprobs', null, { min: 0, max: 20 }),
    logprobsFormat: readOneOf(raw, 'logprobs_format', ['vllm', 'openai']) ?? 'vllm',
    areSpecialTokensSkipped: readBoolean(raw, 'skip_special_tokens', true),
    logitBias: readLogitBias(raw),
    loraName: readText(raw, 'lora_name'),
    priority: readInteger(raw, 'priority', 0),
    grammar: readGrammar(raw),
    speculative: readOneOf(raw, 'speculative', ['off', 'draft', 'lookup']),
  };
}

/** Any int64, of which 32 bits count. -1 is no seed, as in vLLM. */
function readSeed(raw: RawParameters): number | null {
  const value = present(raw, 'seed');
  if (value === undefined) return null;
  const number = toNumber(value);
  if (number === undefined || !Number.isInteger(number) || Math.abs(number) > 2 ** 64) {
    throw refused('seed', 'an integer of 64 bits', value);
  }
  const isDigits = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value);
  const exact = typeof value === 'bigint' ? value : BigInt(isDigits ? value.trim().replace('+', '') : number);
  if (exact === -1n) return null;
  if (BigInt.asIntN(64, exact) !== exact && BigInt.asUintN(64, exact) !== exact) {
    throw refused('seed', 'an integer of 64 bits', value);
  }
  return Number(BigInt.asUintN(32, exact));
}

function readStop(raw: RawParameters): readonly string[] {
  const value = present(raw, 'stop');
  if (value === undefined) return [];
  const list = Array.isArray(value) ? value : [value];
  const isRight =
    list.length <= STOP_COUNT_MAX &&
    list.every((stop) => typeof stop === 'string' && stop !== '' && stop.length <= STOP_LENGTH_MAX);
  if (!isRight) {
    const rule = `a string or at most ${STOP_COUNT_MAX} strings, each of 1 to ${STOP_LENGTH_MAX} characters`;
    throw refused('stop', rule, value);
  }
  return list;
}

function readTokenIds(raw: RawParameters): readonly number[] {
  const value = readJson(raw, 'stop_token_ids');
  if (value === undefined) return [];
  const isRight = Array.isArray(value) && value.length <= LIST_LENGTH_MAX && value.every(isTokenId);
  if (!isRight) throw refused('stop_token_ids', `a list of at most ${LIST_LENGTH_MAX} token ids`, value);
  return value;
}

function readLogitBias(raw: RawParameters): ReadonlyMap<number, number> {
  const value = readJson(raw, 'logit_bias');
  if (value === undefined) return new Map();
  const rule = `an object of at most ${LIST_LENGTH_MAX} token ids with numbers from -${BIAS_MAX} to ${BIAS_MAX}`;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refused('logit_bias', rule, value);
  const biases = new Map<number, number>();
  for (const [key, bias] of Object.entries(value)) {
    const number = toNumber(bias);
    const isRight =
      /^\d+$/.test(key) && isTokenId(Number(key)) && number !== undefined && Math.abs(number) <= BIAS_MAX;
    if (!isRight || biases.size >= LIST_LENGTH_MAX) throw refused('logit_bias', rule, value);
    biases.set(Number(key), number);
  }
  return biases;
}

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 31;
}

function readGrammar(raw: RawParameters): string | null {
  const own = present(raw, 'grammar');
  const structured = named('structured_outputs', () => structuredOutputs(raw.get('structured_outputs')));
  if (own === undefined) return structured ?? null;
  if (structured !== undefined) {
    throw invalidArgument("sampling parameters 'grammar' and 'structured_outputs' cannot both be given");
  }
  return named('grammar', () => ownGrammar(own, 'it'));
}

/** What is refused inside a parameter is refused in its name, which clients look for. */
function named<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    const { message } = StatusError.from(thrown);
    throw new StatusError('INVALID_ARG', `sampling parameter '${name}': ${message}`, { cause: thrown });
  }
}
