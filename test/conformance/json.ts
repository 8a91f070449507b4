// A JSON reader for comparing answers: integers become bigint and everything else numeric a number, so that
// 1 and 1.0 differ and 64-bit values keep their digits; NaN and Infinity are read, as Triton writes them.
// Used by the replay alone; the server has its own.

export type Json = null | boolean | string | bigint | number | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Throws SyntaxError on what is not JSON. Of duplicate keys the last one wins. */
export function parseJson(text: string): Json {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

/**
 * The same value with ordinary numbers, for parts that are read and not compared. An integer that a number cannot
 * hold becomes decimal text, which proto JSON takes for 64-bit fields.
 */
export function toPlain(value: Json): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (Array.isArray(value)) return value.map(toPlain);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, toPlain(v)]));
  return value;
}

export function showJson(value: unknown): string {
  const text =
    JSON.stringify(value, (_, v: unknown) => {
      if (typeof v === 'bigint') return `${v}n`;
      return typeof v === 'number' && !Number.isFinite(v) ? String(v) : v;
    }) ?? String(value);
  return text.length <= 400 ? text : `${text.slice(0, 400)}... (${text.length} characters)`;
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const WORDS: ReadonlyArray<readonly [string, Json]> = [
  ['true', true],
  ['false', false],
  ['null', null],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
];

class Reader {
  #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  end(): void {
    this.#space();
    if (this.#at !== this.#text.length) this.#fail('extra data');
  }

  value(): Json {
    this.#space();
    const char = this.#text[this.#at];
    if (char === '{') return this.#object();
    if (char === '[') return this.#array();
    if (char === '"') return this.#string();
    for (const [word, value] of WORDS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (match === null) return this.#fail('no value');
    this.#at += match[0].length;
    return match[1] === undefined && match[2] === undefined ? BigInt(match[0]) : Number(match[0]);
  }

  #object(): JsonObject {
    const out: JsonObject = {};
    this.#at++;
    if (this.#takes('}')) return out;
    do {
      this.#space();
      if (this.#text[this.#at] !== '"') this.#fail('no key');
      const key = this.#string();
      if (!this.#takes(':')) this.#fail('no colon');
      out[key] = this.value();
    } while (this.#takes(','));
    if (!this.#takes('}')) this.#fail('object not closed');
    return out;
  }

  #array(): Json[] {
    const out: Json[] = [];
    this.#at++;
    if (this.#takes(']')) return out;
    do out.push(this.value());
    while (this.#takes(','));
    if (!this.#takes(']')) this.#fail('array not closed');
    return out;
  }

  /** Finds the end of the string and leaves escapes to the built-in parser. */
  #string(): string {
    let end = this.#at + 1;
    while (end < this.#text.length && this.#text[end] !== '"') end += this.#text[end] === '\\' ? 2 : 1;
    const quoted = this.#text.slice(this.#at, end + 1);
    this.#at = end + 1;
    return JSON.parse(quoted) as string;
  }

  #takes(char: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? 'x')) this.#at++;
  }

  #fail(what: string): never {
    throw new SyntaxError(`${what} at ${this.#at}`);
  }
}
