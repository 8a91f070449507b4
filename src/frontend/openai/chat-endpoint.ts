// POST /v1/chat/completions. Models that render chats get the messages, others a prompt made of them.

import { createHead } from './answer-head.ts';
import { type ApiCall, modelOf, startGeneration } from './api-call.ts';
import { ChatAnswer } from './chat-answer.ts';
import { renderPrompt } from './chat-prompt.ts';
import { ChatStream } from './chat-stream.ts';
import type { PreparedChat, Prompt } from './prepare-request.ts';

export async function chatCompletions(api: ApiCall, request: PreparedChat): Promise<void> {
  const model = modelOf(api, request.model);
  const prompt: Prompt = model.isChatModel
    ? { kind: 'chat', bytes: request.chat }
    : { kind: 'text', bytes: await renderPrompt(api.services, model, request) };
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
