// Body of POST /v1/completions → CompletionRequest: one or several prompts, each a text or a list of tokens.
// Pure; completion-endpoint.ts calls it.

import { OPENAI_CHOICES_MAX } from '../../domain/limits.ts';
import { invalidField } from './api-error.ts';
import { type GenerationSettings, readSettings } from './generation-fields.ts';
import { type JsonObject, missing, readBoolean, readNumber, TOKENS, wrong } from './read-fields.ts';

export type CompletionPrompt =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tokens'; readonly tokens: readonly number[] };

export interface CompletionRequest extends GenerationSettings {
  readonly prompts: readonly CompletionPrompt[];
  /** The prompt comes before the text. */
  readonly isEcho: boolean;
}

/** OpenAI stops at 5; engines give more. */
const LOGPROBS_MAX = 20;

export function parseCompletionRequest(body: JsonObject): CompletionRequest {
  const maxTokens = readNumber(body, 'max_tokens', { min: 1, isInteger: true });
  const logprobCount = readNumber(body, 'logprobs', { min: 0, max: LOGPROBS_MAX, isInteger: true });
  const settings = readSettings(body, { maxTokens, logprobCount });
  const isEcho = readBoolean(body, 'echo') ?? false;
  const prompts = readPrompts(body.prompt ?? undefined);
  if (typeof body.suffix === 'string' && body.suffix !== '') {
    throw invalidField('suffix', "'suffix' is not supported.");
  }
  const bestOf = readNumber(body, 'best_of', { min: 1, isInteger: true }) ?? settings.choiceCount;
  if (bestOf !== settings.choiceCount) {
    throw invalidField('best_of', "'best_of' is not supported unless it is equal to 'n'.");
  }
  if (isEcho && logprobCount !== undefined) {
    throw invalidField('echo', "'echo' cannot be used with 'logprobs': there are none for a prompt.");
  }
  if (isEcho && settings.isStream && prompts.some(({ kind }) => kind === 'tokens')) {
    throw invalidField('echo', "'echo' of a prompt of tokens cannot be streamed.");
  }
  const total = prompts.length * settings.choiceCount;
  if (total > OPENAI_CHOICES_MAX) {
    throw invalidField(
      'prompt',
      `prompts times 'n' are ${total} choices, at most ${OPENAI_CHOICES_MAX} are allowed.`,
    );
  }
  return { ...settings, prompts, isEcho };
}

function readPrompts(prompt: unknown): readonly CompletionPrompt[] {
  if (prompt === undefined) throw missing('prompt');
  if (typeof prompt === 'string') return [textPrompt(prompt, 'prompt')];
  if (!Array.isArray(prompt) || prompt.length === 0) throw wrongPrompt(prompt);
  if (typeof prompt[0] === 'number') return [tokensPrompt(prompt, 'prompt')];
  return prompt.map((entry: unknown, i) =>
    typeof entry === 'string' ? textPrompt(entry, `prompt[${i}]`) : tokensPrompt(entry, `prompt[${i}]`),
  );
}

function textPrompt(text: string, param: string): CompletionPrompt {
  if (text === '') throw invalidField(param, `'${param}' must not be empty.`);
  return { kind: 'text', text };
}

function tokensPrompt(tokens: unknown, param: string): CompletionPrompt {
  if (!Array.isArray(tokens) || tokens.length === 0 || !tokens.every(TOKENS.check))
    throw wrongPrompt(tokens, param);
  return { kind: 'tokens', tokens };
}

function wrongPrompt(got: unknown, param = 'prompt') {
  return wrong(param, 'a string, a list of strings, a list of token ids or a list of such lists', got);
}
