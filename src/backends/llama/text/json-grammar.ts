// The JSON rules that every JSON grammar shares: strings, numbers, any value, and white space with a bound, since
// models fall into endless runs of it. Called by the makers of grammars in this folder.
import { createGrammarBuilder, type GrammarBuilder, joined } from './gbnf.ts';

export interface JsonRules {
  /** Nothing, a blank, or a new line with indentation. */
  readonly space: string;
  /** Between a key and its value. */
  readonly colon: string;
  readonly comma: string;
  /** One character of a string, escaped where JSON wants it. */
  readonly character: string;
  readonly string: string;
  readonly number: string;
  readonly integer: string;
  readonly boolean: string;
  readonly null: string;
  readonly object: string;
  readonly array: string;
  readonly value: string;
}

/** A double holds 15 to 17 digits; more of them are noise, or a loop of the model. */
export const DIGITS_MAX = 16;

/** Adds the rules to a grammar. Those that are not used in the end do no harm. */
export function addJsonRules(grammar: GrammarBuilder): JsonRules {
  const space = grammar.rule('space', '| " " | "\\n" [ \\t]{0,20}');
  const colon = grammar.rule('colon', '":" " "?');
  const comma = grammar.rule('comma', `"," ${space}`);
  const hex = grammar.rule('hex', '[0-9a-fA-F]');
  // A surrogate comes with its partner: alone it is no character.
  const escaped = grammar.rule(
    'escape',
    `["\\\\/bfnrt] | "u" ([0-9a-cefA-CEF] ${hex}{3} | [dD] [0-7] ${hex}{2} | ` +
      `[dD] [89abAB] ${hex}{2} "\\\\u" [dD] [c-fC-F] ${hex}{2})`,
  );
  const character = grammar.rule('character', `[^"\\\\\\x00-\\x1F] | "\\\\" ${escaped}`);
  const string = grammar.rule('string', `"\\"" ${character}* "\\""`);
  const digits = `[0-9]{0,${DIGITS_MAX - 1}}`;
  const integer = grammar.rule('integer', `"-"? ("0" | [1-9] ${digits})`);
  // Two digits of exponent keep the number finite.
  const number = grammar.rule('number', `${integer} ("." [0-9] ${digits})? ([eE] [+-]? [0-9]{1,2})?`);
  const boolean = grammar.rule('boolean', '"true" | "false"');
  const nothing = grammar.rule('null', '"null"');
  const value = grammar.reserve('value');
  const array = grammar.rule('array', listOf({ open: '[', item: value, close: ']', space, comma }));
  const member = grammar.rule('member', joined(string, colon, value));
  const object = grammar.rule('object', listOf({ open: '{', item: member, close: '}', space, comma }));
  grammar.define(value, [object, array, string, number, boolean, nothing].join(' | '));
  return {
    space,
    colon,
    comma,
    character,
    string,
    number,
    integer,
    boolean,
    null: nothing,
    object,
    array,
    value,
  };
}

interface List {
  readonly open: string;
  readonly item: string;
  readonly close: string;
  readonly space: string;
  readonly comma: string;
}

function listOf({ open, item, close, space, comma }: List): string {
  return `"${open}" ${space} ("${close}" | ${item} (${comma} ${item})* ${space} "${close}")`;
}

/** Any JSON object. */
export function jsonObjectGrammar(): string {
  const grammar = createGrammarBuilder();
  return grammar.print(addJsonRules(grammar).object);
}
