// POST /v1/completions: one or several prompts, each with its choices, numbered over all of them.

import type { RoutedCall } from '../http-routes.ts';
import { toBuffer } from '../json-thread.ts';
import { createHead, usageDocument } from './answer-head.ts';
import { type ApiCall, modelOf, startGeneration } from './api-call.ts';
import { type ApiError, answerOf, jsonAnswer } from './api-error.ts';
import { ChunkStream } from './chunk-stream.ts';
import { ColumnText } from './column-text.ts';
import { canEcho } from './generation-inputs.ts';
import type { ChoicePiece, GenerationListener, Usage } from './generation-run.ts';
import type { PreparedCompletion } from './prepare-request.ts';
import type { FinishReason } from './response-piece.ts';
import { completionLogprobs, type LogprobColumns, type TokenLogprob } from './token-logprobs.ts';

interface ListenerOptions {
  readonly call: RoutedCall;
  readonly request: PreparedCompletion;
  readonly head: string;
  /** The prompt of each choice, for us to write before its text; empty where it is not wanted or the model does it. */
  readonly echoes: readonly string[];
}

export function completions(api: ApiCall, request: PreparedCompletion): void {
  const model = modelOf(api, request.model);
  const { call } = api;
  const isModelEcho = request.isEcho && !request.isStream && canEcho(model);
  const head = createHead(model, { idPrefix: 'cmpl', object: 'text_completion', asked: request.model });
  const echoes = request.prompts.flatMap((prompt) => {
    const isOurs = request.isEcho && !isModelEcho && prompt.kind === 'text';
    const echo = isOurs ? toBuffer(prompt.bytes).toString() : '';
    return Array.from({ length: request.choiceCount }, () => echo);
  });
  const options: ListenerOptions = { call, request, head, echoes };
  const plan = { model, settings: request, prompts: request.prompts, isEcho: isModelEcho };
  startGeneration(api, plan, (onRoom) =>
    request.isStream ? new CompletionStream(options, onRoom) : new CompletionAnswer(options),
  );
}

/** One chunk for each piece of text. */
class CompletionStream implements GenerationListener {
  readonly #options: ListenerOptions;
  readonly #stream: ChunkStream;
  readonly #echoes: string[];
  /** Characters of each choice that have been sent. */
  readonly #sentChars: number[];

  constructor(options: ListenerOptions, onRoom: () => void) {
    this.#options = options;
    const { call, head, request } = options;
    this.#stream = new ChunkStream({ call, head, onRoom, hasUsageChunk: request.hasUsageChunk });
    this.#echoes = [...options.echoes];
    this.#sentChars = options.echoes.map(() => 0);
  }

  get isBehind(): boolean {
    return this.#stream.isBehind;
  }

  onPiece({ choice, text, logprobs, finishReason }: ChoicePiece): void {
    const whole = this.#echoes[choice]! + text;
    this.#echoes[choice] = '';
    const document = {
      index: choice,
      text: whole,
      logprobs: logprobsDocument(this.#options.request, logprobs, this.#sentChars[choice]!),
      finish_reason: finishReason ?? null,
    };
    this.#sentChars[choice]! += whole.length;
    this.#stream.pushChoice(document, finishReason !== undefined);
  }

  onTimings(timings: unknown): void {
    this.#stream.setTimings(timings);
  }

  onDone(usage: Usage | undefined): void {
    this.#stream.finish(usage);
  }

  onError(error: ApiError): void {
    this.#stream.fail(error);
  }
}

class CompletionAnswer implements GenerationListener {
  readonly #options: ListenerOptions;
  readonly #texts: string[][];
  readonly #logprobs: readonly ColumnText[];
  /** Where the next token of each choice begins. */
  readonly #offsets: number[];
  readonly #reasons: (FinishReason | null)[];
  #timings: unknown;
  /** Nothing leaves before the end. */
  readonly isBehind = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#texts = options.echoes.map((echo) => [echo]);
    this.#logprobs = options.echoes.map(() => new ColumnText());
    this.#offsets = options.echoes.map(() => 0);
    this.#reasons = options.echoes.map(() => null);
  }

  onPiece({ choice, text, logprobs, finishReason }: ChoicePiece): void {
    this.#texts[choice]!.push(text);
    const textOffset = this.#offsets[choice]!;
    const columns = logprobsDocument(this.#options.request, logprobs, textOffset);
    if (columns !== null) this.#logprobs[choice]!.add(columns);
    this.#offsets[choice] = logprobs.reduce((offset, { token }) => offset + token.length, textOffset);
    if (finishReason !== undefined) this.#reasons[choice] = finishReason;
  }

  onTimings(timings: unknown): void {
    this.#timings = timings;
  }

  onDone(usage: Usage | undefined): void {
    const { call, head, request } = this.#options;
    const choices = this.#texts.map((texts, index) => {
      const said = JSON.stringify({ index, text: texts.join('') });
      const columns = request.logprobCount === undefined ? 'null' : this.#logprobs[index]!.text;
      const reason = JSON.stringify(this.#reasons[index]);
      return `${said.slice(0, -1)},"logprobs":${columns},"finish_reason":${reason}}`;
    });
    const rest = JSON.stringify({
      usage: usageDocument(usage),
      ...(this.#timings === undefined ? {} : { timings: this.#timings }),
    });
    call.respond(jsonAnswer(`${head}"choices":[${choices.join(',')}],${rest.slice(1)}`));
  }

  onError(error: ApiError): void {
    this.#options.call.respond(answerOf(error));
  }
}

function logprobsDocument(
  request: PreparedCompletion,
  entries: readonly TokenLogprob[],
  textOffset: number,
): LogprobColumns | null {
  const { logprobCount: count } = request;
  return count === undefined ? null : completionLogprobs(entries, { count, textOffset });
}
