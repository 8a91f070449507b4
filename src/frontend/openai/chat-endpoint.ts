// POST /v1/chat/completions. Models that render chats get the messages, others a prompt made of them.

import { createHead } from './answer-head.ts';
import { type ApiCall, modelOf, startGeneration } from './api-call.ts';
import { ChatAnswer } from './chat-answer.ts';
import { renderPrompt } from './chat-prompt.ts';
import { type ChatRequest, parseChatRequest } from './chat-request.ts';
import { ChatStream } from './chat-stream.ts';
import type { Prompt } from './generation-inputs.ts';
import type { JsonObject } from './read-fields.ts';

export async function chatCompletions(api: ApiCall): Promise<void> {
  const request = parseChatRequest(api.body);
  const model = modelOf(api, request.model);
  const prompt: Prompt = model.isChatModel
    ? { kind: 'chat', chat: chatDocument(request) }
    : { kind: 'text', text: await renderPrompt(api.services, model, request) };
  const head = createHead(model, {
    idPrefix: 'chatcmpl',
    object: request.isStream ? 'chat.completion.chunk' : 'chat.completion',
    asked: request.model,
  });
  const { call } = api;
  startGeneration(api, { model, settings: request, prompts: [prompt], isEcho: false }, (onRoom) =>
    request.isStream
      ? new ChatStream({ call, request, head, onRoom })
      : new ChatAnswer({ call, request, head }),
  );
}

/** The input `chat_request`. With `none` the model does not hear of the tools, and so cannot call one. */
function chatDocument(request: ChatRequest): JsonObject {
  const { messages, tools, toolChoice, isParallelTools, templateOptions } = request;
  const choice =
    typeof toolChoice === 'string' ? toolChoice : { type: 'function', function: { name: toolChoice.name } };
  return {
    messages,
    ...(toolChoice === 'none' ? {} : { tools, tool_choice: choice, parallel_tool_calls: isParallelTools }),
    ...(templateOptions === undefined ? {} : { chat_template_kwargs: templateOptions }),
  };
}
