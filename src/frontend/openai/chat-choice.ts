// One choice of a chat: the model's text becomes content and tool calls. Where text is held back because it may be a call, the
// log probabilities of its tokens wait with it. chat-answer.ts and chat-stream.ts have one per choice.

import type { ChatRequest } from './chat-request.ts';
import type { ChoicePiece } from './generation-run.ts';
import type { FinishReason } from './response-piece.ts';
import type { TokenLogprob } from './token-logprobs.ts';
import { type ToolCallDelta, ToolCallParser } from './tool-call-parser.ts';

export interface ChatDelta {
  readonly content: string;
  readonly calls: readonly ToolCallDelta[];
  readonly logprobs: readonly TokenLogprob[];
}

export type ChatFinishReason = FinishReason | 'tool_calls';

export class ChatChoice {
  readonly #parser: ToolCallParser | undefined;
  #heldLogprobs: TokenLogprob[] = [];

  constructor(request: Pick<ChatRequest, 'toolChoice' | 'toolNames' | 'isParallelTools'>) {
    const { toolChoice, toolNames, isParallelTools } = request;
    if (toolChoice !== 'none') {
      this.#parser = new ToolCallParser({ toolNames, callsMax: isParallelTools ? Infinity : 1 });
    }
  }

  /** A call that was given out turned out to be none. */
  get isBroken(): boolean {
    return this.#parser?.isBroken ?? false;
  }

  /** Undefined when there is nothing to tell yet. */
  push({ text, logprobs, finishReason }: ChoicePiece): ChatDelta | undefined {
    this.#heldLogprobs.push(...logprobs);
    const { content, calls } = this.#parse(text, finishReason !== undefined);
    const isEmpty = content === '' && calls.length === 0;
    if (isEmpty && (finishReason === undefined || this.#heldLogprobs.length === 0)) {
      // Tokens without any text, such as those that end a turn, go with what comes next.
      return undefined;
    }
    const delta = { content, calls, logprobs: this.#heldLogprobs };
    this.#heldLogprobs = [];
    return delta;
  }

  /** `length` stays: a call that was cut is not to be made. */
  finishReason(reason: FinishReason): ChatFinishReason {
    return reason === 'stop' && this.#parser !== undefined && this.#parser.callCount > 0
      ? 'tool_calls'
      : reason;
  }

  #parse(text: string, isLast: boolean): Pick<ChatDelta, 'content' | 'calls'> {
    if (this.#parser === undefined) return { content: text, calls: [] };
    const { content, calls } = this.#parser.push(text);
    return { content: isLast ? content + this.#parser.end().content : content, calls };
  }
}
