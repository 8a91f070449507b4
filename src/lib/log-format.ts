// How a log line and a start-up table look; Triton's two formats, pure.
//   default  I1115 04:12:40.874978 9600 http_server:1] "the message"
//   ISO8601  2026-11-15T04:12:40Z I 9600 http_server:1] "the message"
// A message may quote a client's bytes, so no format lets a control character through: a line cannot be forged.

export type LogFormat = 'default' | 'ISO8601';
export type LogLetter = 'I' | 'W' | 'E';

export interface LogLine {
  readonly letter: LogLetter;
  readonly wallMs: number;
  readonly pid: number;
  readonly component: string;
  /** Already escaped. */
  readonly text: string;
}

/** Log parsers expect `file:line]`. Finding the true line costs a stack trace per message, so it is always 1. */
const LINE_NUMBER = 1;

export function formatLogLine(format: LogFormat, line: LogLine): string {
  const place = `${line.pid} ${line.component}:${LINE_NUMBER}]`;
  if (format === 'ISO8601') {
    return `${new Date(line.wallMs).toISOString().slice(0, 19)}Z ${line.letter} ${place} ${line.text}\n`;
  }
  // 2026-11-15T04:12:40.874Z
  const iso = new Date(line.wallMs).toISOString();
  const microseconds = Math.floor((line.wallMs % 1) * 1000);
  const time = `${iso.slice(11, 23)}${String(microseconds).padStart(3, '0')}`;
  return `${line.letter}${iso.slice(5, 7)}${iso.slice(8, 10)} ${time} ${place} ${line.text}\n`;
}

/** Triton's own hardening: the message as a JSON string, quotes included. */
export function quoteMessage(message: string): string {
  return escapeUnicodeBreaks(JSON.stringify(message));
}

// C0, DEL, C1 and the two Unicode line separators: what a terminal or a reader of lines acts upon
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;
const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Raw text, but for control characters, which are shown as escapes. */
export function escapeControl(message: string): string {
  return message.replace(CONTROL, (c) => SHORT_ESCAPES[c] ?? codeEscape(c));
}

/** JSON leaves DEL, C1 and line separators as they are. */
function escapeUnicodeBreaks(json: string): string {
  return json.replace(CONTROL, codeEscape);
}

function codeEscape(c: string): string {
  return `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** A cell wider than this is broken over several lines, as Triton does for a console of unknown width. */
const TABLE_WIDTH_MAX = 500;

/** Triton's start-up table, without the log prefix: borders, header, rows; every line ends with a newline. */
export function formatTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => columns.map((_, i) => escapeControl(row[i] ?? '')));
  const wanted = columns.map((name, i) => {
    let width = name.length;
    for (const row of cells) width = Math.max(width, row[i]!.length);
    return width;
  });
  const widths = fairShare(wanted);
  const border = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+\n`;
  const body = cells.map((row) => formatRow(row, widths)).join('');
  return `${border}${formatRow(columns, widths)}${border}${body}${border}`;
}

function formatRow(row: readonly string[], widths: readonly number[]): string {
  const lineCount = Math.max(1, ...row.map((cell, i) => Math.ceil(cell.length / widths[i]!)));
  let text = '';
  for (let line = 0; line < lineCount; line++) {
    const parts = row.map((cell, i) => {
      const width = widths[i]!;
      return cell.slice(line * width, (line + 1) * width).padEnd(width);
    });
    text += `| ${parts.join(' | ')} |\n`;
  }
  return text;
}

/** Columns share the width equally; what narrow ones do not use goes to the wider ones. */
function fairShare(wanted: readonly number[]): number[] {
  const count = wanted.length;
  const shares: number[] = new Array(count).fill(Math.floor((TABLE_WIDTH_MAX - 3 * count - 1) / count));
  const byWidth = wanted.map((_, i) => i).sort((a, b) => wanted[a]! - wanted[b]!);
  byWidth.forEach((column, position) => {
    const excess = shares[column]! - wanted[column]!;
    if (excess <= 0) return;
    shares[column] = wanted[column]!;
    const rest = byWidth.slice(position + 1);
    for (const wider of rest) shares[wider] = shares[wider]! + excess / rest.length;
  });
  return shares.map((share) => Math.max(1, Math.floor(share)));
}
