// The chat template of a model: Jinja, compiled once at load and rendered per request. The engine calls it for
// `chat_request`. A model without a template gets a plain one: "User: …", "Assistant: …" lines that any text model
// can follow, with the stop string that ends its turn.
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import { invalidArgument, StatusError } from '../../../domain/status.ts';
import { parseMessages, type TemplateMessage, tellToolsInText } from './chat-messages.ts';
import { strftime } from './strftime.ts';
import { parseTools } from './tool-format.ts';

export interface ChatTemplateSource {
  /** `tokenizer.chat_template` of the GGUF, or a file; undefined where the model has none. */
  readonly text: string | undefined;
  /** `tokenizer.chat_template.tool_use`, used for requests with tools where a model has it. */
  readonly toolUseText?: string | undefined;
  readonly bosToken: string;
  readonly eosToken: string;
}

export interface ChatInput {
  readonly messages: unknown;
  readonly tools?: unknown;
  /** `chat_template_kwargs`: further variables of the template. */
  readonly kwargs?: unknown;
  /** For templates that write the day. */
  readonly now?: Date;
}

export interface ChatTemplate {
  /** Whether templates or the plain form know tools themselves. */
  readonly hasToolSupport: boolean;
  /** Strings that end the assistant's turn where no token does. */
  readonly stopStrings: readonly string[];
  /** The prompt. It may begin with the BOS text, which must then not be added a second time. */
  render(input: ChatInput): string;
}

type Program = ReturnType<typeof parse>;

/** Variables that are ours; `add_generation_prompt` is not among them: a client may turn it off. */
const OWN_VARIABLES = [
  'messages',
  'tools',
  'bos_token',
  'eos_token',
  'raise_exception',
  'strftime_now',
  'range',
];
const RANGE_LENGTH_MAX = 100_000;

/** What `raise_exception` throws, told apart from defects of a template. */
class TemplateRefusal extends Error {}

/** Throws INVALID_ARG when a template does not parse. */
export function compileChatTemplate(source: ChatTemplateSource): ChatTemplate {
  if (source.text === undefined) return plainTemplate();
  const main = compile(source.text);
  const forTools = source.toolUseText === undefined ? main : compile(source.toolUseText);
  const hasToolSupport = /\btools\b/.test(source.toolUseText ?? source.text);

  function render(input: ChatInput): string {
    const messages = parseMessages(input.messages);
    const tools = parseTools(input.tools);
    const told = hasToolSupport ? messages : tellToolsInText(messages, tools);
    const variables = new Map<string, unknown>([
      ['add_generation_prompt', true],
      ...parseKwargs(input.kwargs),
      ['messages', told],
      ['bos_token', source.bosToken],
      ['eos_token', source.eosToken],
      ...globals(input.now ?? new Date()),
    ]);
    // Undefined and not empty: templates ask `if tools`, and some `tools is defined`.
    if (tools.length > 0 && hasToolSupport) variables.set('tools', input.tools);
    return run(tools.length > 0 ? forTools : main, variables);
  }

  return { hasToolSupport, stopStrings: [], render };
}

function compile(text: string): Program {
  try {
    return parse(tokenize(text, { lstrip_blocks: true, trim_blocks: true }));
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new StatusError('INVALID_ARG', `the chat template is not valid: ${reason}`, { cause: thrown });
  }
}

function run(program: Program, variables: ReadonlyMap<string, unknown>): string {
  const environment = new Environment();
  for (const [name, value] of variables) environment.set(name, value);
  try {
    const result = new Interpreter(environment).run(program) as { readonly value: unknown };
    return String(result.value);
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    const text =
      thrown instanceof TemplateRefusal ? reason : `the chat template could not be rendered: ${reason}`;
    throw new StatusError('INVALID_ARG', text, { cause: thrown });
  }
}

function globals(now: Date): readonly [string, unknown][] {
  const constants = [
    ['true', true],
    ['false', false],
    ['none', null],
    ['True', true],
    ['False', false],
    ['None', null],
  ] as const;
  return [
    ...constants.map(([name, value]): [string, unknown] => [name, value]),
    [
      'raise_exception',
      (text: unknown) => {
        throw new TemplateRefusal(String(text));
      },
    ],
    ['strftime_now', (format: string) => strftime(now, format)],
    ['range', range],
  ];
}

/** Python's range. */
function range(first: number, end?: number, step = 1): number[] {
  const [from, to] = end === undefined || end === null ? [0, first] : [first, end];
  const length = Math.max(0, Math.ceil((to - from) / step));
  if (!(length <= RANGE_LENGTH_MAX)) throw new RangeError('range is too long');
  return Array.from({ length }, (_, index) => from + index * step);
}

function parseKwargs(value: unknown): readonly [string, unknown][] {
  if (value === undefined || value === null) return [];
  if (typeof value !== 'object' || Array.isArray(value))
    throw invalidArgument('chat_template_kwargs must be an object');
  return Object.entries(value).filter(([name]) => !OWN_VARIABLES.includes(name));
}

function plainTemplate(): ChatTemplate {
  const speakers: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant' };
  const line = ({ role, content }: TemplateMessage) => {
    const speaker = speakers[role];
    return speaker === undefined ? `${content}\n` : `${speaker}: ${content}`;
  };
  return {
    hasToolSupport: false,
    stopStrings: ['\nUser:'],
    render({ messages, tools }) {
      const told = tellToolsInText(parseMessages(messages), parseTools(tools));
      return `${told.map(line).join('\n')}\nAssistant:`;
    },
  };
}
