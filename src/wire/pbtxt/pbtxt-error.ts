// The one error that parsing text format can throw: where, why, and the line itself with a caret under it.

import { StatusError } from '../../domain/status.ts';

/** A longer line is cut around the caret: a config on one line of a megabyte must not fill the log. */
const EXCERPT_CHARACTERS_MAX = 120;

export class PbtxtError extends StatusError {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 units; a tab counts as one. */
  readonly column: number;
  /** The reason alone, worded as protobuf words it. */
  readonly reason: string;

  constructor(text: string, offset: number, reason: string) {
    const place = locate(text, offset);
    super(
      'INVALID_ARG',
      `${place.line}:${place.column}: ${reason}\n${excerptAt(place.lineText, place.column)}`,
    );
    this.name = 'PbtxtError';
    this.line = place.line;
    this.column = place.column;
    this.reason = reason;
  }
}

function locate(text: string, offset: number): { line: number; column: number; lineText: string } {
  let line = 1;
  let lineStart = 0;
  for (let i = text.indexOf('\n'); i !== -1 && i < offset; i = text.indexOf('\n', i + 1)) {
    line++;
    lineStart = i + 1;
  }
  const newline = text.indexOf('\n', lineStart);
  const lineText = text.slice(lineStart, newline === -1 ? text.length : newline).replace(/\r$/, '');
  return { line, column: offset - lineStart + 1, lineText };
}

/** Two lines, indented: the text, and a caret under its column. Tabs are kept so that the caret stays aligned. */
function excerptAt(lineText: string, column: number): string {
  const start = column <= EXCERPT_CHARACTERS_MAX ? 0 : column - EXCERPT_CHARACTERS_MAX / 2;
  const shown = lineText.slice(start, start + EXCERPT_CHARACTERS_MAX);
  const before = lineText.slice(start, column - 1).replace(/[^\t]/g, ' ');
  return `  ${shown}\n  ${before}^`;
}
