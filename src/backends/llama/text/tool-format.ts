// How a model writes tool calls, told from its chat template, and grammars that force it to call. The engine calls
// it for requests with tools; the OpenAI frontend reads the same formats from the text.
import { invalidArgument, StatusError } from '../../../domain/status.ts';
import { createGrammarBuilder, type GrammarBuilder, literal } from './gbnf.ts';
import { addJsonRules, type JsonRules } from './json-grammar.ts';
import { addJsonSchema } from './json-schema-grammar.ts';

/**
 * hermes:  <tool_call>{"name": …, "arguments": {…}}</tool_call>, one after the other
 * mistral: [TOOL_CALLS][{"name": …, "arguments": {…}}, …]
 * llama3:  {"name": …, "parameters": {…}}; {…}
 */
export type ToolFormat = 'hermes' | 'mistral' | 'llama3';

export interface ToolDefinition {
  readonly name: string;
  readonly description: string | undefined;
  /** A JSON schema; undefined is a function without arguments. */
  readonly parameters: unknown;
}

export type ToolChoice = 'none' | 'auto' | 'required' | { readonly name: string };

/** Models that once began to call do not always find an end. */
const PARALLEL_CALLS_MAX = 16;
const TOOLS_MAX = 128;

export function toolFormatOf(template: string | undefined): ToolFormat {
  if (template === undefined) return 'hermes';
  if (template.includes('<tool_call>')) return 'hermes';
  if (template.includes('[TOOL_CALLS]')) return 'mistral';
  if (template.includes('<|python_tag|>') || /"parameters":\s*dictionary of argument/.test(template))
    return 'llama3';
  return 'hermes';
}

/** Texts of special tokens that belong to a call: they must reach the client even where special tokens are left out. */
export function toolMarkers(format: ToolFormat): readonly string[] {
  if (format === 'hermes') return ['<tool_call>', '</tool_call>'];
  return format === 'mistral' ? ['[TOOL_CALLS]'] : ['<|python_tag|>'];
}

/** OpenAI's `tools`. Undefined or empty is none. */
export function parseTools(value: unknown): readonly ToolDefinition[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalidArgument('tools must be a list');
  if (value.length > TOOLS_MAX) throw invalidArgument(`tools must be at most ${TOOLS_MAX}`);
  const tools = value.map((tool: unknown, index) => {
    const described = isRecord(tool) && tool.type === 'function' ? tool.function : undefined;
    if (!isRecord(described))
      throw invalidArgument(`tools[${index}] must have the type 'function' and a 'function'`);
    const { name, description, parameters } = described;
    if (typeof name !== 'string' || name === '')
      throw invalidArgument(`tools[${index}].function.name must be a string`);
    return {
      name,
      description: typeof description === 'string' ? description : undefined,
      parameters: parameters ?? undefined,
    };
  });
  const twice = tools.find(({ name }, index) => tools.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) throw invalidArgument(`tools has two functions of the name '${twice.name}'`);
  return tools;
}

/** OpenAI's `tool_choice`; absent is auto. */
export function parseToolChoice(value: unknown, tools: readonly ToolDefinition[]): ToolChoice {
  if (value === undefined || value === null) return tools.length === 0 ? 'none' : 'auto';
  if (value === 'none' || value === 'auto') return value;
  if (value === 'required') {
    if (tools.length === 0) throw invalidArgument("tool_choice 'required' needs tools");
    return value;
  }
  const described = isRecord(value) && value.type === 'function' ? value.function : undefined;
  const name = isRecord(described) ? described.name : undefined;
  if (typeof name !== 'string') {
    throw invalidArgument("tool_choice must be 'none', 'auto', 'required' or name a function");
  }
  if (!tools.some((tool) => tool.name === name)) {
    throw invalidArgument(`Tool '${name}' has not been passed in \`tools\`.`);
  }
  return { name };
}

export interface ToolGrammarOptions {
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: ToolChoice;
  readonly isParallel: boolean;
  readonly format: ToolFormat;
}

/** The grammar of one or several valid calls; undefined where the model is free to call or not. */
export function toolGrammar(options: ToolGrammarOptions): string | undefined {
  const { tools, toolChoice, format } = options;
  if (toolChoice === 'none' || toolChoice === 'auto') return undefined;
  const grammar = createGrammarBuilder();
  const json = addJsonRules(grammar);
  const allowed = toolChoice === 'required' ? tools : tools.filter(({ name }) => name === toolChoice.name);
  const calls = allowed.map((tool) => {
    const rule = addArguments(grammar, json, tool);
    return grammar.rule(`call-${tool.name}`, callBody(tool.name, rule, format, json));
  });
  const call = grammar.rule('call', calls.join(' | '));
  // A function that was asked for by name is called once.
  const more = options.isParallel && toolChoice === 'required' ? PARALLEL_CALLS_MAX - 1 : 0;
  const several = (first: string, separator: string) => {
    if (more === 0) return first;
    return `${first} ${grammar.repeat(grammar.rule('next-call', `${separator} ${first}`), 0, more)}`;
  };
  switch (format) {
    case 'hermes': {
      const wrapped = grammar.rule('wrapped', `"<tool_call>" "\\n"? ${call} "\\n"? "</tool_call>"`);
      return grammar.print(several(wrapped, '"\\n"?'));
    }
    case 'mistral':
      return grammar.print(`"[TOOL_CALLS]" " "? "[" ${several(call, '"," " "?')} "]"`);
    case 'llama3':
      return grammar.print(several(call, '"; "'));
  }
}

function addArguments(
  grammar: GrammarBuilder,
  json: JsonRules,
  { name, parameters }: ToolDefinition,
): string {
  try {
    return addJsonSchema(grammar, json, argumentsSchema(parameters));
  } catch (thrown) {
    const { code, message } = StatusError.from(thrown);
    throw new StatusError(code, `the parameters of function '${name}': ${message}`, { cause: thrown });
  }
}

/** Arguments are an object, also where the schema forgets to say so. */
function argumentsSchema(parameters: unknown): unknown {
  if (parameters === undefined) return { type: 'object', properties: {} };
  const isTyped =
    isRecord(parameters) && ['type', '$ref', 'allOf', 'anyOf', 'oneOf'].some((word) => word in parameters);
  return isTyped || !isRecord(parameters) ? parameters : { ...parameters, type: 'object' };
}

function callBody(name: string, rule: string, format: ToolFormat, json: JsonRules): string {
  const key = format === 'llama3' ? 'parameters' : 'arguments';
  const head = `"{" " "? ${literal('"name"')} ${json.colon} ${literal(JSON.stringify(name))}`;
  return `${head} "," " "? ${literal(`"${key}"`)} ${json.colon} ${rule} " "? "}"`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
