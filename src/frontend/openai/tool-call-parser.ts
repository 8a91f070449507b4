// Text of a model that comes in pieces → content and tool calls. The form is found in the text itself:
//
//   <tool_call>{"name":…,"arguments":{…}}</tool_call> …           Hermes, Qwen
//   [TOOL_CALLS][{"name":…,"arguments":{…}}, …]                    Mistral
//   <|python_tag|>{"name":…,"parameters":{…}}; {…}                 Llama 3
//   {"name":…,"parameters":{…}}; {…}   or   [{…}, …]               the same, where the text begins with it
//
// What looks like a call and is none is content. chat-choice.ts makes a parser for each choice of a request with tools.

import { randomBytes } from 'node:crypto';
import { OPENAI_TOOL_CALL_CHARS_MAX } from '../../domain/limits.ts';
import { ToolCallScanner } from './tool-call-scanner.ts';

export interface ToolCallDelta {
  /** Counts the calls of the choice. */
  readonly index: number;
  /** With the first delta of a call; later ones have arguments alone. */
  readonly id?: string;
  readonly name?: string;
  readonly arguments: string;
}

export interface ParsedText {
  content: string;
  readonly calls: ToolCallDelta[];
}

interface Form {
  readonly marker: string;
  readonly opening: string;
  readonly separator: string;
  readonly closing: string;
  readonly isBare: boolean;
}

const HERMES: Form = {
  marker: '<tool_call>',
  opening: '',
  separator: '',
  closing: '</tool_call>',
  isBare: false,
};
const MISTRAL: Form = { marker: '[TOOL_CALLS]', opening: '[', separator: ',', closing: ']', isBare: false };
const LLAMA: Form = { marker: '<|python_tag|>', opening: '', separator: ';', closing: '', isBare: false };
const MARKED: readonly Form[] = [HERMES, MISTRAL, LLAMA];
const BARE_OBJECT: Form = { marker: '', opening: '', separator: ';', closing: '', isBare: true };
const BARE_LIST: Form = { marker: '', opening: '[', separator: ',', closing: ']', isBare: true };

type Mode = 'text' | 'opening' | 'call' | 'after';

export class ToolCallParser {
  readonly #toolNames: readonly string[];
  readonly #callsMax: number;
  #mode: Mode = 'text';
  #form: Form = HERMES;
  #scanner: ToolCallScanner | undefined;
  /** Read and not given out: the beginning of a marker, or all that may be a call. */
  #held = '';
  /** The name of the call has been given out: there is no way back. */
  #isCommitted = false;
  /** Nothing but blanks so far. */
  #isStart = true;
  /** Blanks after a call belong to nobody. */
  #isAfterCall = false;
  /** Calls that were read, and those of them that were given out. */
  #callCount = 0;
  #givenCount = 0;
  #isBroken = false;

  constructor(options: { toolNames: readonly string[]; callsMax: number }) {
    this.#toolNames = options.toolNames;
    this.#callsMax = options.callsMax;
  }

  /** Calls that were given out. */
  get callCount(): number {
    return this.#givenCount;
  }

  /** A call that was given out turned out to be none. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  push(text: string): ParsedText {
    const parsed: ParsedText = { content: '', calls: [] };
    for (let rest = text; rest !== ''; ) rest = this.#read(rest, parsed);
    return parsed;
  }

  /** No more text comes. What was held back is content, unless it belongs to a call that was cut. */
  end(): ParsedText {
    const isText = this.#mode === 'text' || !this.#isCommitted;
    const rest = isText && !(this.#isAfterCall && this.#held.trim() === '') ? this.#held : '';
    this.#held = '';
    return { content: rest, calls: [] };
  }

  /** Every reader returns what it left unread. */
  #read(text: string, parsed: ParsedText): string {
    switch (this.#mode) {
      case 'text':
        return this.#readText(text, parsed);
      case 'opening':
        return this.#readOpening(text, parsed);
      case 'call':
        return this.#readCall(text, parsed);
      case 'after':
        return this.#readAfter(text);
    }
  }

  #readText(text: string, parsed: ParsedText): string {
    let whole = this.#held + text;
    this.#held = '';
    if (this.#isStart || this.#isAfterCall) {
      const body = whole.trimStart();
      if (body === '' || isMarkerStart(body)) {
        this.#held = whole;
        return '';
      }
      if (this.#isAfterCall) whole = body;
      else if (this.#beginBare(whole, body)) return body.slice(1);
    }
    const found = firstMarker(whole);
    if (found === undefined) {
      const heldChars = markerStartChars(whole);
      this.#emit(whole.slice(0, whole.length - heldChars), parsed);
      this.#held = whole.slice(whole.length - heldChars);
      return '';
    }
    const { form, at } = found;
    const before = whole.slice(0, at);
    if (before.trim() !== '' || !this.#isStart) this.#emit(before, parsed);
    this.#begin(form, form.marker);
    return whole.slice(at + form.marker.length);
  }

  /** At the beginning of the text an object or a list may be a call; its first character is then read. */
  #beginBare(whole: string, body: string): boolean {
    const isList = body[0] === '[' && !body.startsWith(MISTRAL.marker);
    if (body[0] !== '{' && !isList) return false;
    this.#begin(isList ? BARE_LIST : BARE_OBJECT, whole.slice(0, whole.length - body.length + 1));
    if (!isList) this.#scanner?.scan('{', 0);
    return true;
  }

  #begin(form: Form, held: string): void {
    this.#form = form;
    this.#held = held;
    this.#isCommitted = false;
    this.#mode = form.opening === '' || form.isBare ? 'call' : 'opening';
    this.#scanner = this.#createScanner();
  }

  #createScanner(): ToolCallScanner {
    return new ToolCallScanner({ isBare: this.#form.isBare, toolNames: this.#toolNames });
  }

  #readOpening(text: string, parsed: ParsedText): string {
    const char = text[0]!;
    this.#held += char;
    if (char === this.#form.opening) this.#mode = 'call';
    else if (char.trim() !== '') this.#giveUp(parsed);
    return text.slice(1);
  }

  #readCall(text: string, parsed: ParsedText): string {
    const scanner = this.#scanner!;
    const end = scanner.scan(text, 0);
    if (!this.#isCommitted) this.#held += text.slice(0, end);
    if (scanner.isBad || this.#held.length > OPENAI_TOOL_CALL_CHARS_MAX) this.#giveUp(parsed);
    else {
      this.#emitCall(scanner, parsed);
      if (scanner.isDone) {
        this.#callCount++;
        this.#mode = 'after';
      }
    }
    return text.slice(end);
  }

  #emitCall(scanner: ToolCallScanner, parsed: ParsedText): void {
    const { name } = scanner;
    if (name === undefined) return;
    const index = this.#callCount;
    const fresh = scanner.takeArguments();
    const isMuted = index >= this.#callsMax;
    if (!this.#isCommitted) {
      this.#isCommitted = true;
      this.#isStart = false;
      this.#held = '';
      if (isMuted) return;
      this.#givenCount++;
      parsed.calls.push({ index, id: createCallId(), name, arguments: fresh });
    } else if (fresh !== '' && !isMuted) parsed.calls.push({ index, arguments: fresh });
  }

  /** What comes after a call: another one, or the end of the calls. */
  #readAfter(text: string): string {
    const char = text[0]!;
    const { separator, closing } = this.#form;
    if (this.#held === '' && char.trim() === '') return text.slice(1);
    if (char === separator) {
      this.#mode = 'call';
      this.#isCommitted = false;
      this.#scanner = this.#createScanner();
      return text.slice(1);
    }
    const seen = this.#held + char;
    if (closing.startsWith(seen)) {
      this.#held = seen === closing ? '' : seen;
      if (seen === closing) this.#leaveCalls();
      return text.slice(1);
    }
    // No closing: the text goes on here, with what looked like one.
    const rest = this.#held + text;
    this.#held = '';
    this.#leaveCalls();
    return rest;
  }

  #leaveCalls(): void {
    this.#mode = 'text';
    this.#isAfterCall = true;
  }

  /** This is no call: what was held back is content, and so is what follows. */
  #giveUp(parsed: ParsedText): void {
    this.#mode = 'text';
    if (this.#isCommitted) {
      this.#isBroken = true;
      this.#callCount++;
    }
    this.#emit(this.#held, parsed);
    this.#held = '';
  }

  #emit(content: string, parsed: ParsedText): void {
    if (content === '') return;
    this.#isStart = false;
    this.#isAfterCall = false;
    parsed.content += content;
  }
}

function firstMarker(text: string): { form: Form; at: number } | undefined {
  let first: { form: Form; at: number } | undefined;
  for (const form of MARKED) {
    const at = text.indexOf(form.marker);
    if (at >= 0 && (first === undefined || at < first.at)) first = { form, at };
  }
  return first;
}

function isMarkerStart(text: string): boolean {
  return MARKED.some(({ marker }) => marker.startsWith(text) && marker !== text);
}

/** How many characters at the end may become a marker. */
function markerStartChars(text: string): number {
  let longest = 0;
  for (const { marker } of MARKED) {
    for (let length = Math.min(marker.length - 1, text.length); length > longest; length--) {
      if (text.endsWith(marker.slice(0, length))) longest = length;
    }
  }
  return longest;
}

const ID_BYTES = 12;

export function createCallId(): string {
  return `call_${randomBytes(ID_BYTES).toString('hex')}`;
}
