// A chat completion as one JSON document: collects what the choices say and writes it when all are finished.
// chat-endpoint.ts makes one per request.

import type { RoutedCall } from '../http-routes.ts';
import { usageDocument } from './answer-head.ts';
import { type ApiError, answerOf, jsonAnswer } from './api-error.ts';
import { ChatChoice } from './chat-choice.ts';
import { ColumnText } from './column-text.ts';
import type { ChoicePiece, GenerationListener, Usage } from './generation-run.ts';
import type { PreparedChat } from './prepare-request.ts';
import type { FinishReason } from './response-piece.ts';
import { chatLogprobs } from './token-logprobs.ts';

interface Collected {
  readonly texts: string[];
  readonly logprobs: ColumnText;
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
      logprobs: new ColumnText(),
      finishReason: 'stop',
    }));
  }

  onPiece({ choice, text, logprobs, finishReason }: ChoicePiece): void {
    const collected = this.#choices[choice]!;
    collected.texts.push(text);
    const { logprobCount } = this.#request;
    if (logprobCount !== undefined) collected.logprobs.add(chatLogprobs(logprobs, logprobCount));
    if (finishReason !== undefined) collected.finishReason = finishReason;
  }

  onTimings(timings: unknown): void {
    this.#timings = timings;
  }

  onDone(usage: Usage | undefined): void {
    const choices = this.#choices.map((choice, index) => choiceText(this.#request, choice, index));
    const rest = JSON.stringify({
      usage: usageDocument(usage),
      ...(this.#timings === undefined ? {} : { timings: this.#timings }),
    });
    this.#call.respond(jsonAnswer(`${this.#head}"choices":[${choices.join(',')}],${rest.slice(1)}`));
  }

  onError(error: ApiError): void {
    this.#call.respond(answerOf(error));
  }
}

function choiceText(request: PreparedChat, collected: Collected, index: number): string {
  const { finishReason, logprobs } = collected;
  const text = collected.texts.join('');
  const parser = new ChatChoice(request);
  const delta = parser.push({ choice: index, text, logprobs: [], finishReason });
  const calls = delta?.calls ?? [];
  const isCalling = calls.length > 0 && !parser.isBroken;
  const content = isCalling ? delta?.content || null : text;
  const said = JSON.stringify({
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
  });
  const columns = request.logprobCount === undefined ? 'null' : logprobs.text;
  const reason = isCalling ? parser.finishReason(finishReason) : finishReason;
  return `${said.slice(0, -1)},"logprobs":${columns},"finish_reason":${JSON.stringify(reason)}}`;
}
