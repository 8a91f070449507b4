// Reads the tensors of one request to a llama model: which of its six questions it asks, and what shall come with the
// answer. Pure; llama-instance.ts calls it.

import type { ExecuteBatch, ExecuteRequest } from '../../../backend/sdk.ts';
import { invalidArgument } from '../../../domain/status.ts';

export interface LlamaRequest {
  readonly question: Question;
  readonly isStream: boolean;
  /** JSON, or undefined where the request's parameters say it. */
  readonly samplingParameters: string | undefined;
  /** Undefined: not said. */
  readonly isInputExcluded: boolean | undefined;
  readonly extras: ReadonlySet<Extra>;
}

export type Question =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'chat'; readonly chat: Readonly<Record<string, unknown>> }
  | { readonly kind: 'tokens'; readonly tokens: readonly number[] }
  | { readonly kind: 'embed'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'rerank'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'tokenize'; readonly body: Readonly<Record<string, unknown>> };

const EXTRAS = {
  return_finish_reason: 'finishReason',
  return_cumulative_logprob: 'cumulativeLogprob',
  return_logprobs: 'logprobs',
  return_num_input_tokens: 'inputTokens',
  return_num_output_tokens: 'outputTokens',
  return_timings: 'timings',
} as const;

export type Extra = (typeof EXTRAS)[keyof typeof EXTRAS];

const QUESTIONS = {
  text_input: 'text',
  chat_request: 'chat',
  prompt_token_ids: 'tokens',
  embedding_request: 'embed',
  rerank_request: 'rerank',
  tokenize_request: 'tokenize',
} as const;

type QuestionName = keyof typeof QUESTIONS;

/** `names`: of the inputs, by their index in the config. */
export function readRequest(
  batch: ExecuteBatch,
  request: ExecuteRequest,
  names: readonly string[],
): LlamaRequest {
  const bytesOf = new Map<string, Buffer>();
  for (const { index, offset, byteLength } of request.inputs) {
    bytesOf.set(names[index]!, batch.payload.subarray(offset, offset + byteLength));
  }
  const flag = (name: string) => {
    const bytes = bytesOf.get(name);
    return bytes === undefined || bytes.length === 0 ? undefined : bytes[0] !== 0;
  };
  const extras = new Set<Extra>();
  for (const [name, extra] of Object.entries(EXTRAS)) if (flag(name) === true) extras.add(extra);
  const parameters = bytesOf.get('sampling_parameters');
  return {
    question: readQuestion(bytesOf),
    isStream: flag('stream') ?? false,
    samplingParameters: parameters === undefined ? undefined : onlyText('sampling_parameters', parameters),
    isInputExcluded: flag('exclude_input_in_output'),
    extras,
  };
}

function readQuestion(bytesOf: ReadonlyMap<string, Buffer>): Question {
  const asked = (Object.keys(QUESTIONS) as QuestionName[]).filter((name) => bytesOf.has(name));
  if (asked.length !== 1) {
    const names = Object.keys(QUESTIONS).join(', ');
    const said = asked.length === 0 ? 'none' : asked.join(' and ');
    throw invalidArgument(`a request must have one of the inputs ${names}; this one has ${said}`);
  }
  const name = asked[0]!;
  const bytes = bytesOf.get(name)!;
  switch (name) {
    case 'text_input':
      return { kind: 'text', text: onlyText(name, bytes) };
    case 'prompt_token_ids':
      return {
        kind: 'tokens',
        tokens: Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readInt32LE(i * 4)),
      };
    case 'chat_request':
      return { kind: 'chat', chat: onlyObject(name, bytes) };
    default:
      return { kind: QUESTIONS[name], body: onlyObject(name, bytes) };
  }
}

/** BYTES elements are a length and the bytes. */
function onlyText(name: string, bytes: Buffer): string {
  const isOne = bytes.length >= 4 && bytes.readUInt32LE(0) === bytes.length - 4;
  if (!isOne) throw invalidArgument(`input '${name}' must have one element`);
  return bytes.toString('utf8', 4);
}

function onlyObject(name: string, bytes: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(onlyText(name, bytes));
  } catch (error) {
    throw invalidArgument(`input '${name}' is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidArgument(`input '${name}' must be a JSON object`);
  }
  return value as Readonly<Record<string, unknown>>;
}
