// What the thread for JSON does for large-json.ts. The thread imports it by its URL.

import { type TaskModule, type TaskOutcome, toBuffer } from '../json-thread.ts';
import { ApiError } from './api-error.ts';
import { writeDocument } from './document-answers.ts';
import type { OpenAiTask, OpenAiTaskValue } from './large-json.ts';
import { type RequestName, type RequestOf, readRequest } from './read-request.ts';
import { renderChat } from './render-chat.ts';

export const runTask: TaskModule['runTask'] = (options) => {
  try {
    const { value, made } = run(options as OpenAiTask);
    return { value: { isRefused: false, value } satisfies OpenAiTaskValue, made };
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown;
    const { message, detail } = thrown;
    return { value: { isRefused: true, message, detail } satisfies OpenAiTaskValue, made: [] };
  }
};

function run(task: OpenAiTask): TaskOutcome {
  switch (task.kind) {
    case 'read': {
      const value = readRequest(task.name, task.body.map(toBuffer));
      return { value, made: madeOf(value) };
    }
    case 'write': {
      const value = writeDocument(Buffer.concat(task.answer), task.form);
      return { value, made: [value] };
    }
    case 'render': {
      const value = Buffer.from(renderChat(task.options));
      return { value, made: [value] };
    }
  }
}

/** The bytes of a request's prompts and documents. */
function madeOf(request: RequestOf<RequestName>): Uint8Array[] {
  if ('chat' in request) return [request.chat];
  if ('document' in request) return [request.document];
  return request.prompts.map((prompt) =>
    prompt.kind === 'tokens' ? new Uint8Array(prompt.tokens.buffer) : prompt.bytes,
  );
}
