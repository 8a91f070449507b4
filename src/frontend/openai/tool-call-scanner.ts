// Reads one tool call, `{"name":…,"arguments":{…}}`, from text that comes in pieces of any size. The arguments are given out
// as they come, since a client wants to see them grow. tool-call-parser.ts makes one scanner per call.
//
//   object ─{─▶ key ─"…"─▶ colon ─:─▶ value ─…─▶ next ─}─▶ done          (bad: this is no call)
//                └◀────────────────,───────────────┘

import { OPENAI_TOOL_CALL_CHARS_MAX } from '../../domain/limits.ts';

type Phase = 'object' | 'key' | 'colon' | 'value' | 'next' | 'done' | 'bad';

const ARGUMENT_KEYS: ReadonlySet<string> = new Set(['arguments', 'parameters']);
/** What an object that nothing marks as a call may begin with to be taken for one. */
const BARE_KEYS: ReadonlySet<string> = new Set(['name', 'type', 'id', ...ARGUMENT_KEYS]);

export interface ScannerOptions {
  /** Nothing but its look says that this is a call: its keys and its name are looked at closely. */
  readonly isBare: boolean;
  readonly toolNames: readonly string[];
}

export class ToolCallScanner {
  readonly #options: ScannerOptions;
  #phase: Phase = 'object';
  #key: string | undefined;
  /** The key or value that is being read, as JSON. */
  #text = '';
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** What is being read are the arguments, to be given out as they come. */
  #isArgumentsObject = false;
  #hasArguments = false;
  #fresh = '';
  /** Known before any arguments are given out. */
  name: string | undefined;

  constructor(options: ScannerOptions) {
    this.#options = options;
  }

  get isDone(): boolean {
    return this.#phase === 'done';
  }

  get isBad(): boolean {
    return this.#phase === 'bad';
  }

  /** The arguments that came since the last call; nothing before the name is known. */
  takeArguments(): string {
    if (this.name === undefined) return '';
    const fresh = this.#fresh;
    this.#fresh = '';
    return fresh;
  }

  /** Reads from `at` until the call has ended or the text has; returns where it stopped, behind what it read. */
  scan(text: string, at: number): number {
    let i = at;
    while (i < text.length && this.#phase !== 'done' && this.#phase !== 'bad') {
      this.#step(text[i]!);
      i++;
    }
    return i;
  }

  #step(char: string): void {
    if (this.#text !== '') this.#inside(char);
    else if (isBlank(char)) return;
    else this.#between(char);
  }

  #between(char: string): void {
    switch (this.#phase) {
      case 'object':
        this.#phase = char === '{' ? 'key' : 'bad';
        return;
      case 'key':
        if (char === '"') this.#start(char);
        else if (char === '}' && this.#key === undefined) this.#close();
        else this.#phase = 'bad';
        return;
      case 'colon':
        this.#phase = char === ':' ? 'value' : 'bad';
        return;
      case 'value':
        if (char === ',' || char === '}' || char === ']') this.#phase = 'bad';
        else this.#start(char);
        return;
      case 'next':
        if (char === ',') this.#phase = 'key';
        else if (char === '}') this.#close();
        else this.#phase = 'bad';
        return;
    }
  }

  /** The first character of a key or a value. */
  #start(char: string): void {
    this.#depth = char === '{' || char === '[' ? 1 : 0;
    this.#isInString = char === '"';
    this.#isEscaped = false;
    this.#isArgumentsObject = this.#phase === 'value' && char === '{' && ARGUMENT_KEYS.has(this.#key ?? '');
    this.#add(char);
  }

  #inside(char: string): void {
    if (this.#isInString) {
      this.#add(char);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (char === '\\') this.#isEscaped = true;
      else if (char === '"') {
        this.#isInString = false;
        if (this.#depth === 0) this.#end();
      }
      return;
    }
    if (this.#depth === 0) {
      // A number, true, false or null ends before what follows it.
      if (char === ',' || char === '}' || isBlank(char)) {
        this.#end();
        if (this.#phase === 'next') this.#step(char);
      } else this.#add(char);
      return;
    }
    this.#add(char);
    if (char === '"') this.#isInString = true;
    else if (char === '{' || char === '[') this.#depth++;
    else if (char === '}' || char === ']') {
      this.#depth--;
      if (this.#depth === 0) this.#end();
    }
  }

  #add(char: string): void {
    // Long arguments are passed on all the same; they are only not checked at their end.
    if (this.#text.length < OPENAI_TOOL_CALL_CHARS_MAX) this.#text += char;
    if (this.#isArgumentsObject) this.#fresh += char;
  }

  #end(): void {
    const text = this.#text;
    const isChecked = text.length < OPENAI_TOOL_CALL_CHARS_MAX;
    const value = isChecked ? parse(text) : undefined;
    this.#text = '';
    if (isChecked && value === undefined) this.#phase = 'bad';
    else if (this.#phase === 'key') this.#endKey(value);
    else this.#endValue(value, text);
  }

  #endKey(value: unknown): void {
    const isFirst = this.#key === undefined;
    this.#key = String(value);
    const isRefused = isFirst && this.#options.isBare && !BARE_KEYS.has(this.#key);
    this.#phase = isRefused ? 'bad' : 'colon';
  }

  #endValue(value: unknown, text: string): void {
    this.#phase = 'next';
    if (this.#key === 'name') {
      const isKnown = !this.#options.isBare || this.#options.toolNames.includes(String(value));
      if (typeof value === 'string' && value !== '' && isKnown) this.name = value;
      else this.#phase = 'bad';
      return;
    }
    if (!ARGUMENT_KEYS.has(this.#key ?? '') || value === null) return;
    if (this.#hasArguments) this.#phase = 'bad';
    this.#hasArguments = true;
    // Some models write the arguments as OpenAI has them, JSON inside of a string.
    if (typeof value === 'string') this.#fresh += value.trim() === '' ? '{}' : value;
    else if (text[0] !== '{') this.#phase = 'bad';
  }

  #close(): void {
    this.#phase = this.name === undefined ? 'bad' : 'done';
    if (!this.#hasArguments) this.#fresh = '{}';
  }
}

function isBlank(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
