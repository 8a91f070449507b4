// OpenAI messages as a chat template wants them: text parts joined, arguments of tool calls as objects, and for
// templates that know nothing of tools everything told in plain messages. Called by chat-template.ts.
import { invalidArgument } from '../../../domain/status.ts';
import type { ToolDefinition } from './tool-format.ts';

export type TemplateMessage = Readonly<Record<string, unknown>> & {
  readonly role: string;
  /** null only beside tool calls: some templates ask for just that. */
  readonly content: string | null;
};

interface ToolCall {
  readonly id: unknown;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: unknown };
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];

export function parseMessages(value: unknown): readonly TemplateMessage[] {
  if (!Array.isArray(value) || value.length === 0)
    throw invalidArgument('messages must be a list with elements');
  return value.map((message: unknown, index) => parseMessage(message, `messages[${index}]`));
}

function parseMessage(value: unknown, at: string): TemplateMessage {
  if (!isRecord(value)) throw invalidArgument(`${at} must be an object`);
  const { role } = value;
  if (typeof role !== 'string' || !ROLES.includes(role)) {
    throw invalidArgument(`${at}.role must be one of ${ROLES.join(', ')}`);
  }
  const calls = parseToolCalls(value.tool_calls, at);
  const hasContent = value.content !== undefined && value.content !== null;
  if (!hasContent && role !== 'assistant')
    throw invalidArgument(`${at}.content must be a string or a list of parts`);
  const text = hasContent ? textOf(value.content, at) : calls.length > 0 ? null : '';
  const { tool_calls: _, ...rest } = value;
  return {
    ...rest,
    // Templates know the older name.
    role: role === 'developer' ? 'system' : role,
    content: text,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function textOf(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw invalidArgument(`${at}.content must be a string or a list of parts`);
  return content
    .map((part: unknown) => {
      if (typeof part === 'string') return part;
      const type = isRecord(part) ? part.type : undefined;
      if (!isRecord(part) || (type !== 'text' && type !== 'refusal')) {
        throw invalidArgument(`only text message is supported, but got ${String(type)}`);
      }
      const text = part[type];
      if (typeof text !== 'string')
        throw invalidArgument(`${at}.content: a part of type ${type} must have a ${type}`);
      return text;
    })
    .join('');
}

function parseToolCalls(value: unknown, at: string): readonly ToolCall[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalidArgument(`${at}.tool_calls must be a list`);
  return value.map((call: unknown, index) => {
    const called = isRecord(call) ? call.function : undefined;
    const here = `${at}.tool_calls[${index}].function`;
    if (!isRecord(call) || !isRecord(called) || typeof called.name !== 'string') {
      throw invalidArgument(`${here} must have a name`);
    }
    const parsed = parseArguments(called.arguments, `${here}.arguments`);
    return {
      ...call,
      id: call.id,
      type: 'function',
      function: { ...called, name: called.name, arguments: parsed },
    };
  });
}

function parseArguments(value: unknown, at: string): unknown {
  if (value === undefined || value === null || value === '') return {};
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    throw invalidArgument(`${at} is not valid JSON`);
  }
}

/** For a template without tools: they are described in the system message, calls and their results in the text. */
export function tellToolsInText(
  messages: readonly TemplateMessage[],
  tools: readonly ToolDefinition[],
): readonly TemplateMessage[] {
  const told: TemplateMessage[] = [];
  let isAfterResult = false;
  for (const message of messages) {
    const isResult = message.role === 'tool' || message.role === 'function';
    const calls = message.tool_calls as readonly ToolCall[] | undefined;
    if (isResult) {
      const result = `<tool_response>\n${message.content ?? ''}\n</tool_response>`;
      // Results of parallel calls are one turn: many templates insist that roles take turns.
      const before = isAfterResult ? `${told.pop()?.content}\n` : '';
      told.push({ role: 'user', content: before + result });
    } else if (calls !== undefined) {
      const texts = calls.map(({ function: called }) => callText(called.name, called.arguments));
      const content = [message.content ?? '', ...texts].filter((text) => text !== '').join('\n');
      told.push({ role: message.role, content });
    } else {
      told.push(message);
    }
    isAfterResult = isResult;
  }
  return tools.length === 0 ? told : withSystemText(told, describeTools(tools));
}

function callText(name: string, callArguments: unknown): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: callArguments })}\n</tool_call>`;
}

function withSystemText(messages: readonly TemplateMessage[], text: string): readonly TemplateMessage[] {
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [{ role: 'system', content: text }, ...messages];
  return [{ ...first, content: `${first.content}\n\n${text}` }, ...rest];
}

function describeTools(tools: readonly ToolDefinition[]): string {
  const signatures = tools.map(({ name, description, parameters }) =>
    JSON.stringify({ type: 'function', function: { name, description, parameters } }),
  );
  return [
    'You may call one or more of these functions to help with the request. Their signatures are inside <tools></tools>:',
    '<tools>',
    ...signatures,
    '</tools>',
    'For each call, answer with a JSON object with its name and arguments inside <tool_call></tool_call>:',
    '<tool_call>',
    '{"name": "<function name>", "arguments": {<arguments>}}',
    '</tool_call>',
  ].join('\n');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
