// Reads the regular expressions that can be a grammar: literals, classes, groups, alternation, quantifiers, and
// anchors at the ends. What a grammar cannot say (look-around, back references, word borders) is refused by name.
// Called by regex-grammar.ts only.
import { invalidArgument } from '../../../domain/status.ts';
import {
  type CharacterSet,
  complement,
  DIGITS,
  NOT_LINE_END,
  setOf,
  toCharacterSet,
  WHITE_SPACE,
  WORD,
} from './character-set.ts';
import { type CodeRange, REPETITIONS_MAX } from './gbnf.ts';

export type RegexNode =
  | { readonly kind: 'set'; readonly set: CharacterSet }
  | { readonly kind: 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'repeat'; readonly item: RegexNode; readonly min: number; readonly max: number | null };

/** One alternative of the whole expression, with the anchors it has. */
export interface RegexBranch {
  readonly node: RegexNode;
  readonly isStartAnchored: boolean;
  readonly isEndAnchored: boolean;
}

const PATTERN_LENGTH_MAX = 4096;
const DEPTH_MAX = 100;
const CLASS_ESCAPES: Readonly<Record<string, CharacterSet>> = {
  d: DIGITS,
  D: complement(DIGITS),
  w: WORD,
  W: complement(WORD),
  s: WHITE_SPACE,
  S: complement(WHITE_SPACE),
};
const CONTROL_ESCAPES: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };

export function parseRegex(pattern: string): readonly RegexBranch[] {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    throw invalidArgument(`a regular expression may have at most ${PATTERN_LENGTH_MAX} characters`);
  }
  return new RegexReader(pattern).readBranches();
}

/** Lives for one pattern. */
class RegexReader {
  readonly #pattern: string;
  #at = 0;
  #depth = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  readBranches(): RegexBranch[] {
    const branches: RegexBranch[] = [];
    do {
      const isStartAnchored = this.#take(/\^+/y) !== undefined;
      const node = this.#sequence();
      const isEndAnchored = this.#take(/\$+/y) !== undefined;
      branches.push({ node, isStartAnchored, isEndAnchored });
    } while (this.#take(/\|/y) !== undefined);
    if (this.#at < this.#pattern.length) this.#refuse(`'${this.#pattern[this.#at]}' is not supported here`);
    return branches;
  }

  #choice(): RegexNode {
    const items = [this.#sequence()];
    while (this.#take(/\|/y) !== undefined) items.push(this.#sequence());
    return items.length === 1 ? items[0]! : { kind: 'choice', items };
  }

  #sequence(): RegexNode {
    const items: RegexNode[] = [];
    while (this.#at < this.#pattern.length && !/[|)$^]/.test(this.#pattern[this.#at]!)) {
      items.push(this.#quantified(this.#atom()));
    }
    return items.length === 1 ? items[0]! : { kind: 'sequence', items };
  }

  #quantified(item: RegexNode): RegexNode {
    // A lazy or possessive mark changes what is taken first, not what is matched.
    const mark = this.#take(/(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?/y);
    if (mark === undefined) return item;
    if (mark.startsWith('*')) return { kind: 'repeat', item, min: 0, max: null };
    if (mark.startsWith('+')) return { kind: 'repeat', item, min: 1, max: null };
    if (mark.startsWith('?')) return { kind: 'repeat', item, min: 0, max: 1 };
    const [min = 0, max] = [...mark.matchAll(/\d+/g)].map(Number);
    const last = mark.includes(',') ? (max ?? null) : min;
    if (last !== null && last < min) this.#refuse(`the quantifier '${mark}' is out of order`);
    if (Math.max(min, last ?? 0) > REPETITIONS_MAX) this.#refuse(`the quantifier '${mark}' is too large`);
    return { kind: 'repeat', item, min, max: last };
  }

  #atom(): RegexNode {
    const next = this.#pattern[this.#at]!;
    if (next === '(') return this.#group();
    if (next === '[') return { kind: 'set', set: this.#class() };
    if (next === '.') {
      this.#at++;
      return { kind: 'set', set: NOT_LINE_END };
    }
    if (next === '\\') return { kind: 'set', set: this.#escape(false) };
    if (/[*+?]/.test(next)) this.#refuse(`there is nothing to repeat before '${next}'`);
    return { kind: 'set', set: setOf(this.#character()) };
  }

  #group(): RegexNode {
    if (++this.#depth > DEPTH_MAX) this.#refuse(`groups are nested more than ${DEPTH_MAX} levels deep`);
    if (this.#take(/\((?:\?:|\?P?<[A-Za-z_]\w*>)?(?!\?)/y) === undefined) {
      this.#refuse(`'${this.#pattern.slice(this.#at, this.#at + 4)}' is not supported`);
    }
    const node = this.#choice();
    if (this.#take(/\)/y) === undefined) {
      const found = this.#pattern[this.#at];
      this.#refuse(found === undefined ? "')' is missing" : `'${found}' inside a group is not supported`);
    }
    this.#depth--;
    return node;
  }

  #class(): CharacterSet {
    this.#at++;
    const isNegated = this.#take(/\^/y) !== undefined;
    const ranges: CodeRange[] = [];
    while (this.#take(/\]/y) === undefined) {
      const low = this.#classItem();
      if (low.length !== 1 || low[0]![0] !== low[0]![1] || this.#take(/-(?!\])/y) === undefined) {
        ranges.push(...low);
        continue;
      }
      const high = this.#classItem();
      const [first, last] = [low[0]![0], high[0]?.[1] ?? 0];
      if (high.length !== 1 || last < first) this.#refuse('a range of a class is out of order');
      ranges.push([first, last]);
    }
    const set = toCharacterSet(ranges);
    return isNegated ? complement(set) : set;
  }

  #classItem(): CharacterSet {
    if (this.#at >= this.#pattern.length) this.#refuse("']' is missing");
    return this.#pattern[this.#at] === '\\' ? this.#escape(true) : setOf(this.#character());
  }

  #escape(isInClass: boolean): CharacterSet {
    this.#at++;
    const coded = this.#take(/x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}/y);
    if (coded !== undefined) return [codeRange(Number.parseInt(coded.replace(/[ux{}]/g, ''), 16))];
    if (this.#at >= this.#pattern.length) this.#refuse("a '\\' stands at the end");
    const letter = this.#character();
    const set = CLASS_ESCAPES[letter];
    if (set !== undefined) return set;
    const control = letter === 'b' && isInClass ? 8 : CONTROL_ESCAPES[letter];
    if (control !== undefined) return [codeRange(control)];
    if (/[A-Za-z0-9]/.test(letter)) this.#refuse(`'\\${letter}' is not supported`);
    return setOf(letter);
  }

  #character(): string {
    const character = String.fromCodePoint(this.#pattern.codePointAt(this.#at)!);
    this.#at += character.length;
    return character;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#pattern)?.[0];
    if (match !== undefined) this.#at += match.length;
    return match;
  }

  #refuse(reason: string): never {
    throw invalidArgument(`regular expression '${this.#pattern}': ${reason}`);
  }
}

function codeRange(code: number): CodeRange {
  return [code, code];
}
