// Body of POST /v1/chat/completions → ChatRequest. Messages are brought to one form: text parts joined, `developer` as
// `system`, which chat templates know. Pure; chat-endpoint.ts calls it.

import { type ApiError, invalidField } from './api-error.ts';
import { type GenerationSettings, readSettings } from './generation-fields.ts';
import {
  isObject,
  type JsonObject,
  missing,
  OBJECTS,
  readBoolean,
  readList,
  readNumber,
  readObject,
  readString,
  wrong,
} from './read-fields.ts';

/** `none`: the model may see the tools, but its text is not looked at for calls. */
export type ToolChoice = 'none' | 'auto' | 'required' | { readonly name: string };

export interface ChatRequest extends GenerationSettings {
  readonly messages: readonly JsonObject[];
  /** Empty when there are none. */
  readonly tools: readonly JsonObject[];
  readonly toolNames: readonly string[];
  readonly toolChoice: ToolChoice;
  readonly isParallelTools: boolean;
  readonly templateOptions: JsonObject | undefined;
}

const TOP_LOGPROBS_MAX = 20;

export function parseChatRequest(body: JsonObject): ChatRequest {
  const maxTokens =
    readNumber(body, 'max_completion_tokens', { min: 1, isInteger: true }) ??
    readNumber(body, 'max_tokens', { min: 1, isInteger: true });
  const settings = readSettings(body, { maxTokens, logprobCount: readLogprobs(body) });
  const tools = readTools(body);
  const toolNames = tools.map((tool) => (tool.function as { name: string }).name);
  return {
    ...settings,
    messages: readMessages(body),
    tools,
    toolNames,
    toolChoice: readToolChoice(body, toolNames),
    isParallelTools: readBoolean(body, 'parallel_tool_calls') ?? true,
    templateOptions: readObject(body, 'chat_template_kwargs'),
  };
}

function readLogprobs(body: JsonObject): number | undefined {
  const isWanted = readBoolean(body, 'logprobs') ?? false;
  const top = readNumber(body, 'top_logprobs', { min: 0, max: TOP_LOGPROBS_MAX, isInteger: true });
  if (top !== undefined && top > 0 && !isWanted) {
    throw invalidField('top_logprobs', "'top_logprobs' needs 'logprobs' to be true.");
  }
  return isWanted ? (top ?? 0) : undefined;
}

const ROLES: ReadonlySet<unknown> = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/** Also the messages of tokenize. */
export function readMessages(body: JsonObject): readonly JsonObject[] {
  const messages = readList<JsonObject>(body, 'messages', OBJECTS);
  if (messages === undefined) throw missing('messages');
  if (messages.length === 0) throw wrong('messages', 'at least one message', messages);
  return messages.map((message, i) => readMessage(message, `messages[${i}]`));
}

function readMessage(message: JsonObject, param: string): JsonObject {
  const { role } = message;
  if (!ROLES.has(role)) throw wrong(`${param}.role`, `one of ${[...ROLES].join(', ')}`, role);
  const content = readContent(message.content ?? undefined, `${param}.content`);
  const calls = message.tool_calls ?? undefined;
  if (calls !== undefined) checkToolCalls(calls, `${param}.tool_calls`);
  if (content === undefined && role !== 'assistant') throw missing(`${param}.content`);
  return { ...message, role: role === 'developer' ? 'system' : role, content: content ?? null };
}

function readContent(content: unknown, param: string): string | undefined {
  if (content === undefined || typeof content === 'string') return content;
  if (!Array.isArray(content)) throw wrong(param, 'a string or a list of parts', content);
  return content
    .map((part: unknown, i) => {
      if (!isObject(part)) throw wrong(`${param}[${i}]`, 'a part with a type', part);
      const text = part.type === 'refusal' ? part.refusal : part.text;
      if ((part.type === 'text' || part.type === 'refusal') && typeof text === 'string') return text;
      throw invalidField(
        `${param}[${i}].type`,
        `only text message is supported, but got ${String(part.type)}`,
      );
    })
    .join('\n');
}

function checkToolCalls(calls: unknown, param: string): void {
  if (!Array.isArray(calls)) throw wrong(param, 'a list of tool calls', calls);
  calls.forEach((call: unknown, i) => {
    const called = isObject(call) && isObject(call.function) ? call.function : undefined;
    if (typeof called?.name !== 'string' || typeof called.arguments !== 'string') {
      throw wrong(`${param}[${i}].function`, 'a name and arguments, both strings', call);
    }
  });
}

function readTools(body: JsonObject): readonly JsonObject[] {
  const tools = readList<JsonObject>(body, 'tools', OBJECTS) ?? [];
  tools.forEach((tool, i) => {
    if (tool.type !== 'function') throw wrong(`tools[${i}].type`, "'function'", tool.type);
    if (!isObject(tool.function)) throw missing(`tools[${i}].function`);
    const name = readString(tool.function, 'name');
    if (name === undefined || !/^[A-Za-z0-9_.:-]{1,64}$/.test(name)) {
      throw wrong(`tools[${i}].function.name`, 'a name of letters, digits, _, - and .', name);
    }
    const parameters = tool.function.parameters ?? undefined;
    if (parameters !== undefined && !isObject(parameters)) {
      throw wrong(`tools[${i}].function.parameters`, 'a JSON schema', parameters);
    }
  });
  return tools;
}

function readToolChoice(body: JsonObject, names: readonly string[]): ToolChoice {
  const choice = body.tool_choice ?? undefined;
  if (choice === undefined) return names.length > 0 ? 'auto' : 'none';
  if (choice === 'none') return choice;
  if (choice === 'auto') return names.length > 0 ? 'auto' : 'none';
  if (choice === 'required') {
    if (names.length === 0) throw toolsNeeded();
    return choice;
  }
  const named =
    isObject(choice) && choice.type === 'function' && isObject(choice.function) ? choice.function : {};
  if (typeof named.name !== 'string') {
    throw wrong('tool_choice', 'none, auto, required or {"type":"function","function":{"name":…}}', choice);
  }
  if (names.length === 0) throw toolsNeeded();
  if (!names.includes(named.name)) {
    throw invalidField('tool_choice', `Tool '${named.name}' has not been passed in 'tools'.`);
  }
  return { name: named.name };
}

function toolsNeeded(): ApiError {
  return invalidField('tool_choice', "'tool_choice' is only allowed when 'tools' are specified.");
}
