// String literals of text format in both directions. Escapes \x and \ooo are bytes, so a literal is decoded to
// bytes first and read as UTF-8 at the end.

const SIMPLE_ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  '"': 34,
  "'": 39,
  '?': 63,
  '\\': 92,
};

export interface LiteralProblem {
  readonly reason: string;
  /** Index within the literal, its opening quote being 0. */
  readonly at: number;
}

/** Appends the bytes of one literal (quotes included) to `bytes`; the problem, if it has one. */
export function unescapeLiteral(literal: string, bytes: number[]): LiteralProblem | undefined {
  const end = literal.length - 1;
  for (let at = 1; at < end; ) {
    if (literal[at] !== '\\') {
      const code = literal.codePointAt(at)!;
      pushUtf8(code, bytes);
      at += code > 0xffff ? 2 : 1;
      continue;
    }
    const length = unescapeOne(literal, at, bytes);
    if (typeof length !== 'number') return length;
    at += length;
  }
  return undefined;
}

/** One escape at `at`; its length in characters. */
function unescapeOne(literal: string, at: number, bytes: number[]): number | LiteralProblem {
  const c = literal[at + 1]!;
  const simple = Object.hasOwn(SIMPLE_ESCAPES, c) ? SIMPLE_ESCAPES[c] : undefined;
  if (simple !== undefined) {
    bytes.push(simple);
    return 2;
  }
  if (c >= '0' && c <= '7') {
    const digits = /^[0-7]{1,3}/.exec(literal.slice(at + 1, at + 4))![0];
    bytes.push(Number.parseInt(digits, 8) & 0xff);
    return 1 + digits.length;
  }
  if (c === 'x' || c === 'X') {
    const digits = /^[0-9a-fA-F]{1,2}/.exec(literal.slice(at + 2, at + 4))?.[0];
    if (digits === undefined) return { reason: 'Expected hex digits for escape sequence.', at };
    bytes.push(Number.parseInt(digits, 16));
    return 2 + digits.length;
  }
  if (c === 'u' || c === 'U') return unescapeCodePoint(literal, at, bytes);
  return { reason: 'Invalid escape sequence in string literal.', at };
}

function unescapeCodePoint(literal: string, at: number, bytes: number[]): number | LiteralProblem {
  const wide = literal[at + 1] === 'U';
  const code = hexAt(literal, at + 2, wide ? 8 : 4);
  if (code === undefined || code > 0x10ffff) {
    const expected = wide
      ? 'Expected eight hex digits up to 10ffff for \\U escape sequence'
      : 'Expected four hex digits for \\u escape sequence.';
    return { reason: expected, at };
  }
  const length = wide ? 10 : 6;
  if (code >= 0xd800 && code < 0xdc00 && literal.startsWith('\\u', at + length)) {
    const low = hexAt(literal, at + length + 2, 4);
    if (low !== undefined && low >= 0xdc00 && low < 0xe000) {
      pushUtf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), bytes);
      return length + 6;
    }
  }
  pushUtf8(code, bytes);
  return length;
}

function hexAt(text: string, at: number, digits: number): number | undefined {
  const hex = text.slice(at, at + digits);
  return hex.length === digits && /^[0-9a-fA-F]+$/.test(hex) ? Number.parseInt(hex, 16) : undefined;
}

function pushUtf8(code: number, bytes: number[]): void {
  if (code < 0x80) bytes.push(code);
  else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
  else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  else {
    const low = [0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)];
    bytes.push(0xf0 | (code >> 18), ...low);
  }
}

/** undefined when the bytes are no UTF-8: a proto3 string must be. */
export function decodeUtf8(bytes: readonly number[]): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

const PRINTED_ESCAPES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '"': '\\"',
  '\\': '\\\\',
};

/** A double-quoted literal; text beyond ASCII stays readable, control characters become octal escapes. */
export function quoteLiteral(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must be escaped.
  const escaped = text.replace(/[\u0000-\u001f"\\\u007f]/g, (c) => {
    const octal = c.charCodeAt(0).toString(8).padStart(3, '0');
    return PRINTED_ESCAPES[c] ?? `\\${octal}`;
  });
  return `"${escaped}"`;
}
