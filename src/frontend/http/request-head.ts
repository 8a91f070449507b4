// The head of an HTTP/1.x request: request line and headers, from bytes. Strict where leniency has been exploited
// (bare line feeds, folded lines, blanks before a colon, two lengths), so that no proxy in front of us can read a
// message differently. Pure; undefined means: these bytes are not HTTP, end the connection.

export interface RequestHead {
  readonly method: string;
  /** As sent, one character per byte. */
  readonly target: string;
  /** Name, value, name, value …, in the order and the case in which they came. */
  readonly rawHeaders: readonly string[];
  /** HTTP/1.0: kept alive only when the client asks, and only if the answer says so. */
  readonly isOld: boolean;
  readonly isKeepAlive: boolean;
  /** -1: chunked. */
  readonly bodyLength: number;
  readonly isContinueExpected: boolean;
}

const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.([01])$/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FRAMING_NAME = /^(?:connection|content-length|transfer-encoding)$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;
const LENGTH_DIGITS_MAX = 16;

/** `text` is the head without its final empty line, decoded as Latin-1. */
export function parseRequestHead(text: string): RequestHead | undefined {
  const lines = text.split('\r\n');
  const match = REQUEST_LINE.exec(lines[0]!);
  if (match === null) return undefined;
  const rawHeaders: string[] = [];
  let framing: Framing = NO_FRAMING;
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i]!;
    const colon = line.indexOf(':');
    if (colon < 1) return undefined;
    const name = line.slice(0, colon);
    const value = trimBlanks(line, colon + 1);
    if (!HEADER_NAME.test(name) || BAD_VALUE.test(value)) return undefined;
    rawHeaders.push(name, value);
    const next = readFraming(framing, name, value);
    if (next === undefined) return undefined;
    framing = next;
  }
  if (framing.isChunked && framing.length !== undefined) return undefined;
  const isOld = match[3] === '0';
  // HTTP/1.0 has no chunks: whoever passed such a message on may not have understood its framing.
  if (isOld && framing.isChunked) return undefined;
  return {
    method: match[1]!,
    target: match[2]!,
    rawHeaders,
    isOld,
    isKeepAlive: framing.connection === 'close' ? false : !isOld || framing.connection === 'keep-alive',
    bodyLength: framing.isChunked ? -1 : (framing.length ?? 0),
    isContinueExpected: framing.isContinueExpected && !isOld,
  };
}

/** A trailer has the grammar of a header and is ignored; one that would frame it is an attack. */
export function isTrailerLine(line: string): boolean {
  const colon = line.indexOf(':');
  if (colon < 1 || BAD_VALUE.test(line)) return false;
  const name = line.slice(0, colon);
  return HEADER_NAME.test(name) && !FRAMING_NAME.test(name);
}

/** `name` in lower case. The first one counts; undefined when there is none. */
export function headerOf(head: RequestHead, name: string): string | undefined {
  const { rawHeaders } = head;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i]!;
    if (candidate.length === name.length && candidate.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}

/** The headers that decide where the message ends and what becomes of the connection. */
interface Framing {
  readonly length: number | undefined;
  readonly isChunked: boolean;
  readonly connection: 'close' | 'keep-alive' | undefined;
  readonly isContinueExpected: boolean;
}

const NO_FRAMING: Framing = {
  length: undefined,
  isChunked: false,
  connection: undefined,
  isContinueExpected: false,
};

/** Undefined: the message cannot be framed safely. */
function readFraming(framing: Framing, name: string, value: string): Framing | undefined {
  switch (name.length) {
    case 6:
      if (name.toLowerCase() !== 'expect') return framing;
      return { ...framing, isContinueExpected: value.toLowerCase() === '100-continue' };
    case 10:
      if (name.toLowerCase() !== 'connection') return framing;
      if (framing.connection === 'close') return framing;
      return { ...framing, connection: connectionOf(value) ?? framing.connection };
    case 14:
      if (name.toLowerCase() !== 'content-length') return framing;
      return withLength(framing, value);
    case 17:
      if (name.toLowerCase() !== 'transfer-encoding') return framing;
      return value.toLowerCase() === 'chunked' && !framing.isChunked
        ? { ...framing, isChunked: true }
        : undefined;
    default:
      return framing;
  }
}

function withLength(framing: Framing, value: string): Framing | undefined {
  if (framing.length !== undefined || !/^[0-9]+$/.test(value)) return undefined;
  const digits = value.replace(/^0+(?=[0-9])/, '');
  if (digits.length > LENGTH_DIGITS_MAX) return undefined;
  return { ...framing, length: Number(digits) };
}

function connectionOf(value: string): 'close' | 'keep-alive' | undefined {
  const options = value.toLowerCase().split(',');
  if (options.some((option) => option.trim() === 'close')) return 'close';
  return options.some((option) => option.trim() === 'keep-alive') ? 'keep-alive' : undefined;
}

/** `line` from `start` on, without blanks and tabs at either end. */
function trimBlanks(line: string, start: number): string {
  let from = start;
  let to = line.length;
  while (from < to && isBlank(line.charCodeAt(from))) from++;
  while (to > from && isBlank(line.charCodeAt(to - 1))) to--;
  return line.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
