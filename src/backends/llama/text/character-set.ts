// Sets of Unicode code points as sorted ranges. The regular expression grammar keeps its classes in them.
import type { CodeRange } from './gbnf.ts';

export type CharacterSet = readonly CodeRange[];

const CODE_MAX = 0x10ffff;
/** Halves of UTF-16 pairs are no characters. */
const SURROGATES: CodeRange = [0xd800, 0xdfff];

/** Sorted, without overlap, neighbours joined. */
export function toCharacterSet(ranges: readonly CodeRange[]): CharacterSet {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0]);
  const result: [number, number][] = [];
  for (const [low, high] of sorted) {
    const last = result[result.length - 1];
    if (last !== undefined && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else result.push([low, high]);
  }
  return result;
}

/** Every character that is not in the set. */
export function complement(set: CharacterSet): CharacterSet {
  const result: CodeRange[] = [];
  let next = 0;
  for (const [low, high] of toCharacterSet([...set, SURROGATES])) {
    if (low > next) result.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= CODE_MAX) result.push([next, CODE_MAX]);
  return result;
}

export function without(set: CharacterSet, removed: CharacterSet): CharacterSet {
  return complement(toCharacterSet([...complement(set), ...removed]));
}

export function hasCode(set: CharacterSet, code: number): boolean {
  return set.some(([low, high]) => low <= code && code <= high);
}

export function setOf(characters: string): CharacterSet {
  return toCharacterSet(
    [...characters].map((character) => [character.codePointAt(0)!, character.codePointAt(0)!]),
  );
}

export const DIGITS: CharacterSet = [[0x30, 0x39]];
export const WORD: CharacterSet = toCharacterSet([...DIGITS, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]]);
export const WHITE_SPACE: CharacterSet = toCharacterSet([
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
/** What the dot matches. */
export const NOT_LINE_END: CharacterSet = complement(setOf('\n\r\u2028\u2029'));
