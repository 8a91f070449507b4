// A place in the token list of one text: what the parser looks at, takes, and complains about.

import { PbtxtError } from './pbtxt-error.ts';
import { type Token, tokenize } from './tokenizer.ts';

const SHOWN_CHARACTERS_MAX = 80;

export interface Cursor {
  readonly text: string;
  readonly tokens: readonly Token[];
  index: number;
}

export function createCursor(text: string): Cursor {
  return { text, tokens: tokenize(text), index: 0 };
}

/** The next token; a piece of text that is none is thrown as the error that it is. */
export function peek(cursor: Cursor): Token {
  const token = cursor.tokens[cursor.index]!;
  if (token.kind === 'error') throw new PbtxtError(cursor.text, token.offset, token.text);
  return token;
}

export function take(cursor: Cursor): Token {
  const token = peek(cursor);
  if (token.kind !== 'end') cursor.index++;
  return token;
}

export function isAt(cursor: Cursor, symbol: string): boolean {
  const token = peek(cursor);
  return token.kind === 'symbol' && token.text === symbol;
}

export function tryTake(cursor: Cursor, symbol: string): boolean {
  if (!isAt(cursor, symbol)) return false;
  cursor.index++;
  return true;
}

export function expectSymbol(cursor: Cursor, symbol: string): void {
  if (!tryTake(cursor, symbol)) throw fail(cursor, `Expected "${symbol}", found "${shown(peek(cursor))}".`);
}

/** A token as an error shows it; a string of a megabyte is cut. */
export function shown(token: Token): string {
  if (token.kind === 'end') return 'end of text';
  return token.text.length <= SHOWN_CHARACTERS_MAX
    ? token.text
    : `${token.text.slice(0, SHOWN_CHARACTERS_MAX)}...`;
}

/** The error at a token; by default the next one. */
export function fail(cursor: Cursor, reason: string, at: Token = peek(cursor)): PbtxtError {
  return new PbtxtError(cursor.text, at.offset, reason);
}
