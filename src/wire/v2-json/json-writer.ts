// JSON text as rapidjson writes it: strings, doubles, and a growing buffer for long arrays.
// Pure formatting; who calls it decides what goes where.

/** Quote, backslash and control characters. */
const ESCAPABLE = String.raw`["\\\u0000-\u001f]`;
const ANY_ESCAPABLE = new RegExp(ESCAPABLE);
const EVERY_ESCAPABLE = new RegExp(ESCAPABLE, 'g');

/** Indexed by byte; empty for a byte that stands for itself. Control characters have upper-case hex digits. */
const ESCAPES: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x22) return '\\"';
  if (byte === 0x5c) return '\\\\';
  if (byte >= 0x20) return '';
  const short = { 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r' }[byte];
  return short ?? `\\u00${byte.toString(16).toUpperCase().padStart(2, '0')}`;
});

export function quoteJson(text: string): string {
  if (!ANY_ESCAPABLE.test(text)) return `"${text}"`;
  return `"${text.replace(EVERY_ESCAPABLE, (char) => ESCAPES[char.charCodeAt(0)]!)}"`;
}

/** The shortest text of a double: `1.0`, `1e21`, `-0.0`, and `NaN` or `Infinity` bare. */
export function doubleText(value: number): string {
  if (Number.isInteger(value)) {
    if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
    // JavaScript and rapidjson agree on where the exponent starts, not on its plus sign.
    return Math.abs(value) < 1e21 ? `${value}.0` : String(value).replace('+', '');
  }
  return String(value);
}

/** Text and bytes one after the other; doubles its buffer when full. */
export class JsonWriter {
  #buffer = Buffer.allocUnsafe(4096);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Text of code units below 0x80 only: the cheap way for numbers and literals. */
  ascii(text: string): void {
    this.#reserve(text.length);
    this.#length += this.#buffer.write(text, this.#length, 'latin1');
  }

  text(text: string): void {
    this.#reserve(text.length * 3);
    this.#length += this.#buffer.write(text, this.#length, 'utf8');
  }

  /** A quoted string whose bytes are kept as they are, valid UTF-8 or not. */
  quotedBytes(bytes: Buffer): void {
    // Every byte may become `\u00XX`.
    this.#reserve(bytes.length * 6 + 2);
    const buffer = this.#buffer;
    let pos = this.#length;
    buffer[pos++] = 0x22;
    for (const byte of bytes) {
      const escaped = ESCAPES[byte]!;
      if (escaped === '') buffer[pos++] = byte;
      else pos += buffer.write(escaped, pos, 'latin1');
    }
    buffer[pos++] = 0x22;
    this.#length = pos;
  }

  /** What was written so far. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #reserve(byteLength: number): void {
    const needed = this.#length + byteLength;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
