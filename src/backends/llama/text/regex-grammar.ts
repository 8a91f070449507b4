// Regular expressions as grammars: for a whole answer (structured output "regex") and inside a JSON string (the
// schema keyword "pattern"), where each character is written as JSON escapes it.
import { invalidArgument } from '../../../domain/status.ts';
import { type CharacterSet, hasCode, without } from './character-set.ts';
import {
  characterClass,
  createGrammarBuilder,
  either,
  type GrammarBuilder,
  joined,
  literal,
} from './gbnf.ts';
import { parseRegex, type RegexNode } from './regex-parser.ts';

interface Writer {
  readonly grammar: GrammarBuilder;
  /** The expression of one character out of a set. */
  readonly character: (set: CharacterSet) => string;
}

/** The whole answer matches; anchors at the ends change nothing. */
export function regexGrammar(pattern: string): string {
  const grammar = createGrammarBuilder();
  const writer: Writer = { grammar, character: plainCharacter };
  const branches = parseRegex(pattern).map(({ node }) => grammar.rule('branch', bodyOf(node, writer)));
  return grammar.print(branches.join(' | '));
}

/**
 * The inside of a JSON string. As JSON schema has it, a side without anchor may have anything beside the match;
 * `anyCharacter` is the rule for that.
 */
export function addJsonPattern(grammar: GrammarBuilder, pattern: string, anyCharacter: string): string {
  const writer: Writer = { grammar, character: jsonCharacter };
  const branches = parseRegex(pattern).map(({ node, isStartAnchored, isEndAnchored }) => {
    const body = grammar.rule('match', bodyOf(node, writer));
    return joined(isStartAnchored ? '' : `${anyCharacter}*`, body, isEndAnchored ? '' : `${anyCharacter}*`);
  });
  return grammar.rule('pattern', branches.join(' | '));
}

/** Fit for a rule: an empty expression needs something to stand there. */
function bodyOf(node: RegexNode, writer: Writer): string {
  const body = write(node, writer);
  return body === '' ? '""' : body;
}

function write(node: RegexNode, writer: Writer): string {
  switch (node.kind) {
    case 'set':
      return writer.character(node.set);
    case 'sequence':
      return joined(...node.items.map((item) => write(item, writer)));
    case 'choice': {
      const bodies = node.items.map((item) => write(item, writer));
      const filled = bodies.filter((body) => body !== '');
      if (filled.length === 0) return '';
      return filled.length < bodies.length ? writer.grammar.repeat(either(filled), 0, 1) : either(filled);
    }
    case 'repeat':
      return writeRepeat(node.item, node.min, node.max, writer);
  }
}

/** libllama cannot repeat without end what may be empty, and is slow with a bound; so only what is not empty repeats. */
function writeRepeat(item: RegexNode, min: number, max: number | null, writer: Writer): string {
  const isEmpty = canBeEmpty(item);
  const repeated = isEmpty ? withoutEmpty(item) : item;
  if (repeated === undefined || max === 0) return '';
  return writer.grammar.repeat(write(repeated, writer), isEmpty ? 0 : min, max);
}

function canBeEmpty(node: RegexNode): boolean {
  switch (node.kind) {
    case 'set':
      return false;
    case 'sequence':
      return node.items.every(canBeEmpty);
    case 'choice':
      return node.items.some(canBeEmpty);
    case 'repeat':
      return node.min === 0 || canBeEmpty(node.item);
  }
}

/** What a node matches besides the empty text; undefined is nothing. */
function withoutEmpty(node: RegexNode): RegexNode | undefined {
  if (!canBeEmpty(node)) return node;
  switch (node.kind) {
    case 'set':
      return node;
    case 'choice':
      return choiceOf(node.items.map(withoutEmpty));
    case 'repeat': {
      const item = withoutEmpty(node.item);
      return item === undefined || node.max === 0
        ? undefined
        : { kind: 'repeat', item, min: 1, max: node.max };
    }
    case 'sequence': {
      // One of the parts is the first that is not empty; those after it are free.
      const starts = node.items.map((item, index): RegexNode | undefined => {
        const first = withoutEmpty(item);
        return first && { kind: 'sequence', items: [first, ...node.items.slice(index + 1)] };
      });
      return choiceOf(starts);
    }
  }
}

function choiceOf(nodes: readonly (RegexNode | undefined)[]): RegexNode | undefined {
  const items = nodes.filter((node) => node !== undefined);
  return items.length === 0 ? undefined : { kind: 'choice', items };
}

function plainCharacter(set: CharacterSet): string {
  if (set.length === 0) throw invalidArgument('a class of the regular expression is empty');
  const [first] = set;
  if (set.length === 1 && first![0] === first![1]) return literal(String.fromCodePoint(first![0]));
  return characterClass(set);
}

/** Characters that JSON writes as a backslash and a letter. */
const JSON_ESCAPES: ReadonlyMap<number, string> = new Map([
  [0x22, '"'],
  [0x5c, '\\'],
  [0x08, 'b'],
  [0x0c, 'f'],
  [0x0a, 'n'],
  [0x0d, 'r'],
  [0x09, 't'],
]);
const JSON_ESCAPED: CharacterSet = [
  [0x00, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
];

/** Control characters that have no letter are left out of classes: nobody asks a model for them. */
function jsonCharacter(set: CharacterSet): string {
  const plain = without(set, JSON_ESCAPED);
  const escapes = [...JSON_ESCAPES].filter(([code]) => hasCode(set, code)).map(([, letter]) => letter);
  const alternatives: string[] = [];
  if (plain.length > 0) alternatives.push(plainCharacter(plain));
  if (escapes.length > 0) alternatives.push(escapes.map((letter) => literal(`\\${letter}`)).join(' | '));
  if (alternatives.length === 0) {
    throw invalidArgument('a regular expression in a JSON string cannot ask for a control character');
  }
  return alternatives.length === 1 && escapes.length <= 1
    ? alternatives[0]!
    : `(${alternatives.join(' | ')})`;
}
