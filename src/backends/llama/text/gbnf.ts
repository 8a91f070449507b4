// Writes grammars in GBNF, the notation of libllama: rules with unique names, literals, character classes and
// repetition. All makers of grammars in this folder build on it; it knows nothing of JSON or regular expressions.
import { invalidArgument } from '../../../domain/status.ts';

/** Inclusive code points. */
export type CodeRange = readonly [low: number, high: number];

export interface GrammarBuilder {
  /** Adds a rule and returns its name. An equal body that came before is used again. */
  rule(hint: string, body: string): string;
  /** A name for a rule that is defined later, for recursion. */
  reserve(hint: string): string;
  define(name: string, body: string): void;
  /** `item` is a rule name, a class or any expression; `max` null is without end. */
  repeat(item: string, min: number, max: number | null): string;
  print(root: string): string;
}

/** More rules than any sensible schema needs; libllama walks them at every token. */
const RULES_MAX = 20_000;
/** libllama refuses more than 2000 repetitions, and takes a larger maximum as none at all. */
const BLOCK_LENGTH = 1000;
export const REPETITIONS_MAX = 100_000;

export function createGrammarBuilder(): GrammarBuilder {
  const rules = new Map<string, string>();
  const namesByBody = new Map<string, string>();
  const counts = new Map<string, number>();

  function reserve(hint: string): string {
    const stem = hint.replace(/[^a-zA-Z0-9]+/g, '-').slice(0, 40) || 'rule';
    const count = (counts.get(stem) ?? 0) + 1;
    counts.set(stem, count);
    // The second of a stem ends in its number, so a stem that ends so itself could collide.
    const name = count === 1 && !/-\d+$/.test(stem) && stem !== 'root' ? stem : `${stem}-${count}`;
    if (rules.has(name)) return reserve(hint);
    if (rules.size >= RULES_MAX) throw invalidArgument('the grammar is too large');
    rules.set(name, '');
    return name;
  }

  function define(name: string, body: string): void {
    rules.set(name, body);
  }

  function rule(hint: string, body: string): string {
    const known = namesByBody.get(body);
    if (known !== undefined) return known;
    const name = reserve(hint);
    define(name, body);
    namesByBody.set(body, name);
    return name;
  }

  function repeat(item: string, min: number, max: number | null): string {
    if (min > REPETITIONS_MAX || (max !== null && max > REPETITIONS_MAX)) {
      throw invalidArgument(`a grammar cannot count further than ${REPETITIONS_MAX}`);
    }
    // Of a group libllama counts the rules inside against its bound; of a name or class it does not.
    const atom = /^(?:[a-zA-Z0-9-]+|\[(?:[^\]\\]|\\.)*\])$/.test(item) ? item : rule('item', item);
    const required = exactly(atom, min);
    if (max === null) return joined(required, `${atom}*`);
    return joined(required, max > min ? upTo(atom, max - min) : '');
  }

  function exactly(atom: string, count: number): string {
    if (count === 0) return '';
    if (count === 1) return atom;
    if (count <= BLOCK_LENGTH) return `${atom}{${count}}`;
    const block = rule('block', `${atom}{${BLOCK_LENGTH}}`);
    return joined(exactly(block, Math.floor(count / BLOCK_LENGTH)), exactly(atom, count % BLOCK_LENGTH));
  }

  /** Whole blocks, then less than one, so that at any place only two readings are open. */
  function upTo(atom: string, count: number): string {
    if (count === 1) return `${atom}?`;
    if (count <= BLOCK_LENGTH) return `${atom}{0,${count}}`;
    const block = rule('block', `${atom}{${BLOCK_LENGTH}}`);
    const less = rule('less', `${atom}{0,${BLOCK_LENGTH - 1}}`);
    const rest = count % BLOCK_LENGTH;
    let name = rest === 0 ? '' : rule('rest', upTo(atom, rest));
    for (let level = Math.floor(count / BLOCK_LENGTH); level > 0; level--) {
      name = rule('blocks', `${joined(block, name)} | ${less}`);
    }
    return name;
  }

  function print(root: string): string {
    const lines = [...rules].map(([name, body]) => `${name} ::= ${body}\n`);
    return `root ::= ${root}\n${lines.join('')}`;
  }

  return { rule, reserve, define, repeat, print };
}

/** A sequence without the parts that are empty. */
export function joined(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(' ');
}

/** Alternatives that can stand inside a sequence. */
export function either(alternatives: readonly string[]): string {
  return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join(' | ')})`;
}

export function literal(text: string): string {
  const escaped = [...text].map((character) => escapeCode(character.codePointAt(0)!, /["\\]/)).join('');
  return `"${escaped}"`;
}

export function characterClass(ranges: readonly CodeRange[]): string {
  const special = /[[\]\\^-]/;
  const inside = ranges.map(([low, high]) => {
    const first = escapeCode(low, special);
    return low === high ? first : `${first}-${escapeCode(high, special)}`;
  });
  return `[${inside.join('')}]`;
}

function escapeCode(code: number, special: RegExp): string {
  const character = String.fromCodePoint(code);
  if (character === '\n') return '\\n';
  if (character === '\r') return '\\r';
  if (character === '\t') return '\\t';
  // GBNF has no escape for the caret, hence the number.
  if (character === '^' && special.test('^')) return '\\x5E';
  if (special.test(character)) return `\\${character}`;
  if (code >= 0x20 && code < 0x7f) return character;
  if (code <= 0xff) return `\\x${code.toString(16).toUpperCase().padStart(2, '0')}`;
  if (code <= 0xffff) return `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
  return `\\U${code.toString(16).toUpperCase().padStart(8, '0')}`;
}
