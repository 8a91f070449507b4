// Body of a chat or text completion → what its endpoint works with: settings as values, prompts as the bytes and tokens that the
// model is sent. So a large body costs the event loop nothing more once it is prepared on the thread for JSON. Pure.

import { type ChatRequest, parseChatRequest } from './chat-request.ts';
import {
  type CompletionPrompt,
  type CompletionRequest,
  parseCompletionRequest,
} from './completion-request.ts';
import type { JsonObject } from './read-fields.ts';

/** Texts in UTF-8. */
export type Prompt =
  | { readonly kind: 'text'; readonly bytes: Uint8Array }
  | { readonly kind: 'tokens'; readonly tokens: Int32Array }
  /** The document of the input `chat_request`. */
  | { readonly kind: 'chat'; readonly bytes: Uint8Array };

export interface PreparedChat extends Omit<ChatRequest, 'messages' | 'tools' | 'templateOptions'> {
  /** As the input `chat_request` has it; see ChatDocument. */
  readonly chat: Uint8Array;
}

export interface PreparedCompletion extends Omit<CompletionRequest, 'prompts'> {
  readonly prompts: readonly Prompt[];
}

/** The input `chat_request`. With `none` the model does not hear of the tools, and so cannot call one. */
export interface ChatDocument {
  readonly messages: readonly JsonObject[];
  readonly tools?: readonly JsonObject[];
  readonly tool_choice?: unknown;
  readonly parallel_tool_calls?: boolean;
  readonly chat_template_kwargs?: JsonObject;
}

export function prepareChat(body: JsonObject): PreparedChat {
  const { messages, tools, templateOptions, ...rest } = parseChatRequest(body);
  const { toolChoice, isParallelTools } = rest;
  const choice =
    typeof toolChoice === 'string' ? toolChoice : { type: 'function', function: { name: toolChoice.name } };
  const document: ChatDocument = {
    messages,
    ...(toolChoice === 'none' ? {} : { tools, tool_choice: choice, parallel_tool_calls: isParallelTools }),
    ...(templateOptions === undefined ? {} : { chat_template_kwargs: templateOptions }),
  };
  return { ...rest, chat: Buffer.from(JSON.stringify(document)) };
}

export function prepareCompletion(body: JsonObject): PreparedCompletion {
  const request = parseCompletionRequest(body);
  return { ...request, prompts: request.prompts.map(preparePrompt) };
}

function preparePrompt(prompt: CompletionPrompt): Prompt {
  if (prompt.kind === 'tokens') return { kind: 'tokens', tokens: Int32Array.from(prompt.tokens) };
  return { kind: 'text', bytes: Buffer.from(prompt.text) };
}
