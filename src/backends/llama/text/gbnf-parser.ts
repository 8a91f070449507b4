// Reads GBNF and finds what libllama would refuse with nothing but a line on stderr: wrong syntax, undefined rules,
// left recursion. Called for grammars that come from a client, and by the tests, which match texts with the result.
import { invalidArgument } from '../../../domain/status.ts';
import type { CodeRange } from './gbnf.ts';

export type GrammarNode =
  | { readonly kind: 'characters'; readonly ranges: readonly CodeRange[]; readonly isNegated: boolean }
  | { readonly kind: 'rule'; readonly name: string }
  /** A token by name or number; only libllama knows its text. */
  | { readonly kind: 'token'; readonly text: string }
  | { readonly kind: 'sequence'; readonly items: readonly GrammarNode[] }
  | { readonly kind: 'choice'; readonly items: readonly GrammarNode[] }
  | {
      readonly kind: 'repeat';
      readonly item: GrammarNode;
      readonly min: number;
      readonly max: number | null;
    };

export type Grammar = ReadonlyMap<string, GrammarNode>;

/** Enough for any grammar written by hand; libllama's own work grows with it. */
const GRAMMAR_LENGTH_MAX = 256 * 1024;
const REPEAT_MAX = 2000;
const DEPTH_MAX = 200;

/** Throws INVALID_ARG when the text is no grammar that libllama can use. */
export function checkGrammar(text: string): void {
  if (text.length > GRAMMAR_LENGTH_MAX) throw wrong(`it is longer than ${GRAMMAR_LENGTH_MAX} characters`);
  const grammar = parseGrammar(text);
  const loop = findLeftRecursion(grammar);
  if (loop !== undefined)
    throw wrong(`rule '${loop}' begins with itself, and left recursion is not supported`);
  const empty = emptyRules(grammar);
  for (const [name, node] of grammar) {
    if (hasEndlessEmpty(node, empty)) throw wrong(`rule '${name}' repeats without end what may be empty`);
  }
}

export function parseGrammar(text: string): Grammar {
  const reader = new GrammarReader(text);
  const grammar = reader.readRules();
  if (!grammar.has('root')) throw wrong("rule 'root' is missing");
  for (const node of grammar.values()) checkNames(node, grammar);
  return grammar;
}

/** The name of a rule that can come back to itself before any character; undefined when there is none. */
export function findLeftRecursion(grammar: Grammar): string | undefined {
  const empty = emptyRules(grammar);
  const isEmpty = (node: GrammarNode): boolean => canBeEmpty(node, empty);
  const done = new Set<string>();
  const open = new Set<string>();
  // A stack of our own: a chain of rules may be longer than the stack of calls.
  for (const start of grammar.keys()) {
    const path: { name: string; next: string[] }[] = [];
    const enter = (name: string): void => {
      open.add(name);
      path.push({ name, next: firstNames(grammar.get(name)!, isEmpty) });
    };
    if (!done.has(start)) enter(start);
    while (path.length > 0) {
      const here = path[path.length - 1]!;
      const name = here.next.pop();
      if (name === undefined) {
        open.delete(here.name);
        done.add(here.name);
        path.pop();
      } else if (open.has(name)) {
        return name;
      } else if (!done.has(name)) {
        enter(name);
      }
    }
  }
  return undefined;
}

/** Rules that match the empty text, by a fixed point. */
function emptyRules(grammar: Grammar): ReadonlySet<string> {
  const empty = new Set<string>();
  for (let sizeBefore = -1; sizeBefore !== empty.size; ) {
    sizeBefore = empty.size;
    for (const [name, node] of grammar) if (canBeEmpty(node, empty)) empty.add(name);
  }
  return empty;
}

function canBeEmpty(node: GrammarNode, empty: ReadonlySet<string>): boolean {
  switch (node.kind) {
    case 'characters':
    case 'token':
      return false;
    case 'rule':
      return empty.has(node.name);
    case 'sequence':
      return node.items.every((item) => canBeEmpty(item, empty));
    case 'choice':
      return node.items.some((item) => canBeEmpty(item, empty));
    case 'repeat':
      return node.min === 0 || canBeEmpty(node.item, empty);
  }
}

/** The rules with which a node may begin. */
function firstNames(node: GrammarNode, isEmpty: (node: GrammarNode) => boolean): string[] {
  switch (node.kind) {
    case 'characters':
    case 'token':
      return [];
    case 'rule':
      return [node.name];
    case 'choice':
      return node.items.flatMap((item) => firstNames(item, isEmpty));
    case 'sequence': {
      const stop = node.items.findIndex((item) => !isEmpty(item));
      const leading = stop < 0 ? node.items : node.items.slice(0, stop + 1);
      return leading.flatMap((item) => firstNames(item, isEmpty));
    }
    case 'repeat':
      return firstNames(node.item, isEmpty);
  }
}

/** To libllama that is left recursion, too. */
function hasEndlessEmpty(node: GrammarNode, empty: ReadonlySet<string>): boolean {
  if (node.kind === 'sequence' || node.kind === 'choice') {
    return node.items.some((item) => hasEndlessEmpty(item, empty));
  }
  if (node.kind !== 'repeat') return false;
  return (node.max === null && canBeEmpty(node.item, empty)) || hasEndlessEmpty(node.item, empty);
}

function checkNames(node: GrammarNode, grammar: Grammar): void {
  if (node.kind === 'rule' && !grammar.has(node.name)) throw wrong(`rule '${node.name}' is not defined`);
  if (node.kind === 'sequence' || node.kind === 'choice') {
    for (const item of node.items) checkNames(item, grammar);
  }
  if (node.kind === 'repeat') checkNames(node.item, grammar);
}

function wrong(reason: string) {
  return invalidArgument(`the grammar is not valid: ${reason}`);
}

/** Lives for one text. */
class GrammarReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  readRules(): Map<string, GrammarNode> {
    const grammar = new Map<string, GrammarNode>();
    this.#skipSpace(true);
    while (this.#at < this.#text.length) {
      const name = this.#take(/[a-zA-Z0-9-]+/y) ?? this.#fail('a rule name');
      this.#skipSpace(false);
      if (this.#take(/::=/y) === undefined) this.#fail("'::='");
      this.#skipSpace(true);
      grammar.set(name, this.#choice(false));
      if (this.#at < this.#text.length && this.#take(/\r?\n|\r/y) === undefined)
        this.#fail('the end of the rule');
      this.#skipSpace(true);
    }
    return grammar;
  }

  #choice(isNested: boolean): GrammarNode {
    const items = [this.#sequence(isNested)];
    while (this.#take(/\|/y) !== undefined) {
      this.#skipSpace(true);
      items.push(this.#sequence(isNested));
    }
    return items.length === 1 ? items[0]! : { kind: 'choice', items };
  }

  #sequence(isNested: boolean): GrammarNode {
    const items: GrammarNode[] = [];
    for (;;) {
      const node = this.#atom();
      if (node === undefined) break;
      this.#skipSpace(isNested);
      items.push(this.#repetitions(node, isNested));
    }
    return items.length === 1 ? items[0]! : { kind: 'sequence', items };
  }

  #repetitions(node: GrammarNode, isNested: boolean): GrammarNode {
    let result = node;
    for (;;) {
      const mark = this.#take(/[*+?]|\{[ \t]*\d+[ \t]*(?:,[ \t]*\d*[ \t]*)?\}/y);
      if (mark === undefined) return result;
      const [min = 0, max] = [...mark.matchAll(/\d+/g)].map(Number);
      if (min > REPEAT_MAX) throw wrong(`it repeats more than ${REPEAT_MAX} times`);
      if (mark === '*') result = { kind: 'repeat', item: result, min: 0, max: null };
      else if (mark === '+') result = { kind: 'repeat', item: result, min: 1, max: null };
      else if (mark === '?') result = { kind: 'repeat', item: result, min: 0, max: 1 };
      else result = { kind: 'repeat', item: result, min, max: mark.includes(',') ? (max ?? null) : min };
      this.#skipSpace(isNested);
    }
  }

  #atom(): GrammarNode | undefined {
    const next = this.#text[this.#at];
    if (next === '"') return this.#literal();
    if (next === '[') return this.#class();
    if (next === '(') return this.#group();
    if (next === '.') {
      this.#at++;
      return { kind: 'characters', ranges: [], isNegated: true };
    }
    if (next === '<' || next === '!') {
      const text = this.#take(/!?<[^>]*>/y) ?? this.#fail('a token');
      return { kind: 'token', text };
    }
    const name = this.#take(/[a-zA-Z0-9-]+/y);
    return name === undefined ? undefined : { kind: 'rule', name };
  }

  #group(): GrammarNode {
    if (++this.#depth > DEPTH_MAX) throw wrong(`it is nested more than ${DEPTH_MAX} levels deep`);
    this.#at++;
    this.#skipSpace(true);
    const node = this.#choice(true);
    if (this.#take(/\)/y) === undefined) this.#fail("')'");
    this.#depth--;
    return node;
  }

  #literal(): GrammarNode {
    const items: GrammarNode[] = [];
    this.#at++;
    while (this.#take(/"/y) === undefined) {
      const code = this.#character();
      items.push({ kind: 'characters', ranges: [[code, code]], isNegated: false });
    }
    return items.length === 1 ? items[0]! : { kind: 'sequence', items };
  }

  #class(): GrammarNode {
    this.#at++;
    const isNegated = this.#take(/\^/y) !== undefined;
    const ranges: CodeRange[] = [];
    while (this.#take(/\]/y) === undefined) {
      const low = this.#character();
      ranges.push([low, this.#take(/-(?!\])/y) === undefined ? low : this.#character()]);
    }
    return { kind: 'characters', ranges, isNegated };
  }

  #character(): number {
    const escaped = this.#take(/\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[trn\\"[\]-])/y);
    if (escaped === undefined) {
      const code = this.#text.codePointAt(this.#at);
      if (code === undefined || code === 0x5c) this.#fail('a character');
      this.#at += code > 0xffff ? 2 : 1;
      return code;
    }
    const simple = { t: 9, r: 13, n: 10 }[escaped[1]!];
    if (simple !== undefined) return simple;
    return escaped.length === 2 ? escaped.charCodeAt(1) : Number.parseInt(escaped.slice(2), 16);
  }

  #skipSpace(isNewlineSpace: boolean): void {
    this.#take(isNewlineSpace ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y);
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    if (match !== undefined) this.#at += match.length;
    return match;
  }

  #fail(expected: string): never {
    const line = this.#text.slice(0, this.#at).split('\n').length;
    const found = this.#text.slice(this.#at, this.#at + 20).split('\n')[0];
    throw wrong(`line ${line} has '${found}' in place of ${expected}`);
  }
}
