// The sampling parameter `structured_outputs` as a grammar: a JSON schema, any JSON object, a list of choices, a
// regular expression, or a grammar of the client's own. Called when the sampling parameters are read.
import { invalidArgument } from '../../../domain/status.ts';
import { createGrammarBuilder, literal } from './gbnf.ts';
import { checkGrammar } from './gbnf-parser.ts';
import { jsonObjectGrammar } from './json-grammar.ts';
import { jsonSchemaGrammar } from './json-schema-grammar.ts';
import { regexGrammar } from './regex-grammar.ts';

const KINDS = ['json', 'json_object', 'grammar', 'regex', 'choice'];
const CHOICES_MAX = 1024;

/** The grammar that the answer must follow; undefined where the value asks for none. */
export function structuredOutputs(value: unknown): string | undefined {
  const wanted = typeof value === 'string' ? parseJson(value, 'it') : value;
  if (wanted === null || wanted === undefined) return undefined;
  if (typeof wanted !== 'object' || Array.isArray(wanted)) throw wrong('must be a JSON object');
  const given = Object.entries(wanted).filter(([, part]) => part !== null && part !== undefined);
  const unknown = given.find(([kind]) => !KINDS.includes(kind));
  if (unknown !== undefined) throw wrong(`unknown key '${unknown[0]}'`);
  const [only, second] = given;
  if (only === undefined || second !== undefined) {
    throw wrong(`must have exactly one of ${KINDS.join(', ')}`);
  }
  return grammarOf(only[0], only[1]);
}

function grammarOf(kind: string, value: unknown): string | undefined {
  switch (kind) {
    case 'json':
      return jsonSchemaGrammar(typeof value === 'string' ? parseJson(value, 'json') : value);
    case 'json_object':
      if (typeof value !== 'boolean') throw wrong('json_object must be a boolean');
      return value ? jsonObjectGrammar() : undefined;
    case 'regex':
      return regexGrammar(textOf(value, 'regex'));
    case 'grammar':
      return ownGrammar(value, 'grammar');
    default:
      return choiceGrammar(value);
  }
}

/** A grammar that a client wrote; wrong ones are refused here, where the reason can be told. */
export function ownGrammar(value: unknown, field: string): string {
  const text = textOf(value, field);
  checkGrammar(text);
  return text;
}

export function choiceGrammar(choices: unknown): string {
  const isList = Array.isArray(choices) && choices.length > 0 && choices.length <= CHOICES_MAX;
  if (!isList || !choices.every((choice) => typeof choice === 'string' && choice !== '')) {
    throw wrong(`choice must be a list of 1 to ${CHOICES_MAX} strings that are not empty`);
  }
  const alternatives = [...new Set<string>(choices)].map((choice) => literal(choice));
  return createGrammarBuilder().print(alternatives.join(' | '));
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '') throw wrong(`${field} must be a string that is not empty`);
  return value;
}

function parseJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(`${field} is not valid JSON`);
  }
}

function wrong(reason: string) {
  return invalidArgument(reason);
}
