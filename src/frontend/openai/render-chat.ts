// A chat and a Jinja template → the prompt, for models that do not render chats themselves. Pure but for the templates that it
// keeps; chat-prompt.ts calls it, for a large chat on the thread for JSON.

import { Template } from '@huggingface/jinja';
import { internal, StatusError } from '../../domain/status.ts';
import { toBuffer } from '../json-thread.ts';
import { invalidField } from './api-error.ts';
import type { ChatDocument } from './prepare-request.ts';
import type { JsonObject } from './read-fields.ts';

export interface RenderOptions {
  /** Whose template it is, for the error. */
  readonly model: string;
  /** Undefined: the messages are joined. */
  readonly template: string | undefined;
  /** A ChatDocument. */
  readonly chat: Uint8Array;
  readonly beginText: string;
  readonly endText: string;
}

export function renderChat(options: RenderOptions): string {
  const chat = JSON.parse(toBuffer(options.chat).toString()) as ChatDocument;
  if (options.template === undefined) return joinMessages(chat.messages);
  const template = compile(options.model, options.template);
  try {
    return template.render({
      ...chat.chat_template_kwargs,
      messages: chat.messages.map(withParsedArguments),
      ...(chat.tools === undefined ? {} : { tools: chat.tools }),
      add_generation_prompt: true,
      bos_token: options.beginText,
      eos_token: options.endText,
    });
  } catch (thrown) {
    // Templates refuse conversations they cannot write, in their own words.
    throw invalidField('messages', `the chat template: ${StatusError.from(thrown).message}`);
  }
}

function joinMessages(messages: readonly JsonObject[]): string {
  const lines = messages.map(
    ({ role, content }) => `${String(role)}: ${typeof content === 'string' ? content : ''}\n`,
  );
  return `${lines.join('')}assistant:`;
}

/** Source → template; those of more models than this are compiled again. */
const compiled = new Map<string, Template>();
const COMPILED_MAX = 64;

function compile(model: string, source: string): Template {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  try {
    const template = new Template(source);
    if (compiled.size >= COMPILED_MAX) compiled.clear();
    compiled.set(source, template);
    return template;
  } catch (thrown) {
    throw internal(`the chat template of model '${model}' is wrong: ${StatusError.from(thrown).message}`);
  }
}

/** Templates write arguments as objects, clients send them as text. */
function withParsedArguments(message: JsonObject): JsonObject {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  const parsed = calls.map((call: JsonObject & { function: { arguments: string } }) => ({
    ...call,
    function: { ...call.function, arguments: parseArguments(call.function.arguments) },
  }));
  return { ...message, tool_calls: parsed };
}

function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
