// A chat completion as one JSON document: collects what the choices say and writes it when all are finished.
// chat-endpoint.ts makes one per request.

import type { RoutedCall } from '../http-routes.ts';
import { usageDocument } from './answer-head.ts';
import { type ApiError, answerOf, jsonAnswer } from './api-error.ts';
import { ChatChoice } from './chat-choice.ts';
import type { ChoicePiece, GenerationListener, Usage } from './generation-run.ts';
import type { PreparedChat } from './prepare-request.ts';
import type { FinishReason } from './response-piece.ts';
import { chatLogprobs, type TokenLogprob } from './token-logprobs.ts';

interface Collected {
  readonly texts: string[];
  readonly logprobs: TokenLogprob[];
  finishReason: FinishReason;
}

export class ChatAnswer implements GenerationListener {
  readonly #call: RoutedCall;
  readonly #request: PreparedChat;
  readonly #head: string;
  readonly #choices: readonly Collected[];
  #timings: unknown;
  /** Nothing leaves before the end. */
  readonly isBehind = false;

  constructor(options: { call: RoutedCall; request: PreparedChat; head: string }) {
    this.#call = options.call;
    this.#request = options.request;
    this.#head = options.head;
    this.#choices = Array.from({ length: options.request.choiceCount }, () => ({
      texts: [],
      logprobs: [],
      finishReason: 'stop',
    }));
  }

  onPiece({ choice, text, logprobs, finishReason }: ChoicePiece): void {
    const collected = this.#choices[choice]!;
    collected.texts.push(text);
    collected.logprobs.push(...logprobs);
    if (finishReason !== undefined) collected.finishReason = finishReason;
  }

  onTimings(timings: unknown): void {
    this.#timings = timings;
  }

  onDone(usage: Usage | undefined): void {
    const rest = {
      choices: this.#choices.map((choice, index) => choiceDocument(this.#request, choice, index)),
      usage: usageDocument(usage),
      ...(this.#timings === undefined ? {} : { timings: this.#timings }),
    };
    this.#call.respond(jsonAnswer(this.#head + JSON.stringify(rest).slice(1)));
  }

  onError(error: ApiError): void {
    this.#call.respond(answerOf(error));
  }
}

function choiceDocument(request: PreparedChat, collected: Collected, index: number): object {
  const { finishReason, logprobs } = collected;
  const text = collected.texts.join('');
  const parser = new ChatChoice(request);
  const delta = parser.push({ choice: index, text, logprobs: [], finishReason });
  const calls = delta?.calls ?? [];
  const isCalling = calls.length > 0 && !parser.isBroken;
  const content = isCalling ? delta?.content || null : text;
  return {
    index,
    message: {
      role: 'assistant',
      content,
      refusal: null,
      ...(isCalling
        ? {
            tool_calls: calls.map((call) => ({
              id: call.id,
              type: 'function',
              function: { name: call.name, arguments: call.arguments },
            })),
          }
        : {}),
    },
    logprobs: request.logprobCount === undefined ? null : chatLogprobs(logprobs, request.logprobCount),
    finish_reason: isCalling ? parser.finishReason(finishReason) : finishReason,
  };
}
