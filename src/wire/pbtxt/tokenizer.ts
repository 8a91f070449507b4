// Cuts text format into tokens, as protobuf's own tokenizer does for TextFormat: `#` comments, no space
// needed after a number, strings may span lines. Pure; called by the parser alone. It never throws: what is
// no token becomes an `error` token, so that an earlier mistake in the grammar is reported first.

export interface Token {
  readonly kind: 'identifier' | 'integer' | 'float' | 'string' | 'symbol' | 'end' | 'error';
  /** As written; the reason for an `error` token. */
  readonly text: string;
  /** Index of the first character (for an error, of the place it names). */
  readonly offset: number;
}

export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  // A byte order mark is no content.
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  for (;;) {
    at = skipBlank(text, at);
    if (at >= text.length) break;
    const token = scanToken(text, at);
    tokens.push(token);
    if (token.kind === 'error') return tokens;
    at += token.text.length;
  }
  tokens.push({ kind: 'end', text: '', offset: text.length });
  return tokens;
}

function scanToken(text: string, at: number): Token {
  const c = text[at]!;
  if (isIdentifierStart(c)) return slice(text, at, endOfIdentifier(text, at), 'identifier');
  if (isDigit(c) || (c === '.' && isDigit(text[at + 1]))) return scanNumber(text, at);
  if (c === '"' || c === "'") return scanString(text, at);
  const code = text.codePointAt(at)!;
  if (code < 0x20 || code === 0x7f) return failed(at, 'Invalid control characters encountered in text.');
  if (code > 0x7f) return failed(at, `Interpreting non ascii codepoint ${code}.`);
  return slice(text, at, at + 1, 'symbol');
}

function skipBlank(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    const c = text[at]!;
    if (c === '#') {
      const newline = text.indexOf('\n', at);
      at = newline === -1 ? text.length : newline + 1;
    } else if (c === ' ' || c === '\n' || c === '\t' || c === '\r' || c === '\v' || c === '\f') at++;
    else break;
  }
  return at;
}

function endOfIdentifier(text: string, from: number): number {
  let at = from + 1;
  while (isIdentifierStart(text[at]) || isDigit(text[at])) at++;
  return at;
}

function scanNumber(text: string, from: number): Token {
  const isLeadingZero = text[from] === '0';
  if (isLeadingZero && (text[from + 1] === 'x' || text[from + 1] === 'X')) {
    const end = endOf(text, from + 2, isHexDigit);
    if (end === from + 2) return failed(end, '"0x" must be followed by hex digits.');
    return slice(text, from, end, 'integer');
  }
  if (isLeadingZero && isDigit(text[from + 1])) {
    const end = endOf(text, from + 1, isOctalDigit);
    if (isDigit(text[end])) return failed(end, 'Numbers starting with leading zero must be in octal.');
    if (text[end] === '.') return failed(end, 'Hex and octal numbers must be integers.');
    return slice(text, from, end, 'integer');
  }
  return scanDecimal(text, from);
}

function scanDecimal(text: string, from: number): Token {
  let end = endOf(text, from, isDigit);
  let isFloat = false;
  if (text[end] === '.') {
    isFloat = true;
    end = endOf(text, end + 1, isDigit);
  }
  if (text[end] === 'e' || text[end] === 'E') {
    isFloat = true;
    const sign = text[end + 1] === '-' || text[end + 1] === '+' ? 1 : 0;
    const digits = end + 1 + sign;
    end = endOf(text, digits, isDigit);
    if (end === digits) return failed(end, '"e" must be followed by exponent.');
  }
  if (text[end] === 'f' || text[end] === 'F') {
    isFloat = true;
    end++;
  }
  if (text[end] === '.' && isFloat) {
    return failed(end, "Already saw decimal point or exponent; can't have another one.");
  }
  return slice(text, from, end, isFloat ? 'float' : 'integer');
}

function scanString(text: string, from: number): Token {
  const quote = text[from];
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === quote) return slice(text, from, at + 1, 'string');
  }
  return failed(from, 'Unexpected end of string.');
}

function endOf(text: string, from: number, belongs: (c: string | undefined) => boolean): number {
  let at = from;
  while (belongs(text[at])) at++;
  return at;
}

function slice(text: string, from: number, to: number, kind: Token['kind']): Token {
  return { kind, text: text.slice(from, to), offset: from };
}

function failed(offset: number, reason: string): Token {
  return { kind: 'error', text: reason, offset };
}

function isDigit(c: string | undefined): boolean {
  return c !== undefined && c >= '0' && c <= '9';
}

function isOctalDigit(c: string | undefined): boolean {
  return c !== undefined && c >= '0' && c <= '7';
}

function isHexDigit(c: string | undefined): boolean {
  return c !== undefined && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
}

function isIdentifierStart(c: string | undefined): boolean {
  return c !== undefined && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c === '_');
}
