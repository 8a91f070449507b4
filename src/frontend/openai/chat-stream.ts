// A chat completion as a stream of chunks: the role of every choice first, then what the choices say as it comes, their finish
// reasons, the usage when it was asked for, [DONE]. chat-endpoint.ts makes one per request.

import type { RoutedCall } from '../http-routes.ts';
import type { ApiError } from './api-error.ts';
import { ChatChoice, type ChatDelta } from './chat-choice.ts';
import { ChunkStream } from './chunk-stream.ts';
import type { ChoicePiece, GenerationListener, Usage } from './generation-run.ts';
import type { PreparedChat } from './prepare-request.ts';
import { chatLogprobs } from './token-logprobs.ts';
import type { ToolCallDelta } from './tool-call-parser.ts';

export interface ChatStreamOptions {
  readonly call: RoutedCall;
  readonly request: PreparedChat;
  readonly head: string;
  readonly onRoom: () => void;
}

export class ChatStream implements GenerationListener {
  readonly #options: ChatStreamOptions;
  readonly #stream: ChunkStream;
  readonly #choices: readonly ChatChoice[];

  constructor(options: ChatStreamOptions) {
    this.#options = options;
    const { request, call, head, onRoom } = options;
    this.#stream = new ChunkStream({ call, head, onRoom, hasUsageChunk: request.hasUsageChunk });
    this.#choices = Array.from({ length: request.choiceCount }, () => new ChatChoice(request));
  }

  get isBehind(): boolean {
    return this.#stream.isBehind;
  }

  onPiece(piece: ChoicePiece): void {
    this.#sendRoles();
    const choice = this.#choices[piece.choice]!;
    const delta = choice.push(piece);
    if (delta !== undefined)
      this.#sendChoice(piece.choice, { delta: deltaDocument(delta), logprobs: this.#logprobs(delta) });
    if (piece.finishReason === undefined) return;
    this.#sendChoice(piece.choice, { delta: {}, finish_reason: choice.finishReason(piece.finishReason) });
  }

  onTimings(timings: unknown): void {
    this.#stream.setTimings(timings);
  }

  onDone(usage: Usage | undefined): void {
    this.#sendRoles();
    this.#stream.finish(usage);
  }

  onError(error: ApiError): void {
    this.#stream.fail(error);
  }

  #sendRoles(): void {
    if (this.#stream.isOpen) return;
    this.#choices.forEach((_, index) => {
      this.#sendChoice(index, { delta: { role: 'assistant', content: '' } });
    });
  }

  #logprobs({ logprobs }: ChatDelta): object | null {
    const { logprobCount } = this.#options.request;
    return logprobCount === undefined || logprobs.length === 0 ? null : chatLogprobs(logprobs, logprobCount);
  }

  #sendChoice(
    index: number,
    news: { delta: object; logprobs?: object | null; finish_reason?: string },
  ): void {
    const choice = {
      index,
      delta: news.delta,
      logprobs: news.logprobs ?? null,
      finish_reason: news.finish_reason ?? null,
    };
    this.#stream.pushChoice(choice, news.finish_reason !== undefined);
  }
}

function deltaDocument({ content, calls }: ChatDelta): object {
  return {
    ...(content === '' && calls.length > 0 ? {} : { content }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callDocument) }),
  };
}

function callDocument({ index, id, name, arguments: text }: ToolCallDelta): object {
  if (id === undefined) return { index, function: { arguments: text } };
  return { index, id, type: 'function', function: { name, arguments: text } };
}
