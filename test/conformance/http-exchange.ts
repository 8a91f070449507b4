// One HTTP exchange on a socket of its own, byte for byte as a case says. A client library would repair what
// the cases mean to send broken, so request and answer are handled by hand here.
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { deflateSync, gzipSync, unzipSync } from 'node:zlib';
import { bytesRecord, fillBytes } from './case-bytes.ts';
import type { HttpCaseRequest } from './cases.ts';
import { isObject, type Json, type JsonObject, parseJson } from './json.ts';

const READ_MS_MAX = 30_000;
const HEADERS_KEPT = [
  'content-type',
  'content-encoding',
  'accept-encoding',
  'inference-header-content-length',
  'transfer-encoding',
  'endpoint-load-metrics',
];

interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The answer in the form the cases record it. */
export async function httpExchange(address: string, request: HttpCaseRequest): Promise<JsonObject> {
  const payload =
    request.raw_b64 === undefined ? requestBytes(request) : Buffer.from(request.raw_b64, 'base64');
  if (request.abort_after_ms !== undefined) return abort(address, payload, request.abort_after_ms);
  const method = payload.toString('latin1', 0, 16).split(' ', 1)[0] ?? '';
  const answer = await exchange(address, payload, method, request.read_timeout_ms ?? READ_MS_MAX);
  return typeof answer === 'string' ? { no_response: answer } : recordAnswer(answer);
}

function requestBody(request: HttpCaseRequest): Buffer {
  const parts = [
    request.body_b64 === undefined
      ? Buffer.from(request.body ?? '')
      : Buffer.from(request.body_b64, 'base64'),
    Buffer.from(request.binary_b64 ?? '', 'base64'),
  ];
  if (request.binary_fill !== undefined) parts.push(fillBytes(request.binary_fill));
  const body = Buffer.concat(parts);
  if (request.encode === 'gzip') return gzipSync(body);
  return request.encode === 'deflate' ? deflateSync(body) : body;
}

function requestBytes(request: HttpCaseRequest): Buffer {
  const method = request.method ?? 'GET';
  let body = requestBody(request);
  const headers = request.headers ?? [];
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  const lines = [`${method} ${request.path} HTTP/1.1`];
  if (!names.has('host')) lines.push('Host: localhost');
  lines.push(...headers.map(([name, value]) => `${name}: ${value}`));
  if (request.chunks !== undefined) {
    lines.push('Transfer-Encoding: chunked');
    body = chunkedBody(body, request.chunks);
  } else if (!names.has('content-length')) {
    if (request.length !== undefined) {
      if (request.length !== null) lines.push(`Content-Length: ${request.length}`);
    } else if (body.length > 0 || ['POST', 'PUT', 'PATCH'].includes(method)) {
      lines.push(`Content-Length: ${body.length}`);
    }
  }
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]);
}

function chunkedBody(body: Buffer, sizes: readonly number[]): Buffer {
  const out: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, body.length]) {
    const part = body.subarray(at, at + size);
    at += part.length;
    if (part.length > 0) out.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...out, Buffer.from('0\r\n\r\n')]);
}

async function abort(address: string, payload: Buffer, afterMs: number): Promise<JsonObject> {
  const [host, port] = address.split(':') as [string, string];
  const socket = connect({ host, port: Number(port) });
  // The server may close first; that is no concern of a client that leaves.
  socket.on('error', () => {});
  socket.write(payload);
  await sleep(afterMs);
  socket.destroy();
  return { aborted: true };
}

/** Resolves with the answer, or with "timeout" or "closed" when there is none. */
function exchange(
  address: string,
  payload: Buffer,
  method: string,
  readMsMax: number,
): Promise<HttpAnswer | 'timeout' | 'closed'> {
  const [host, port] = address.split(':') as [string, string];
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    let isConnected = false;
    const socket: Socket = connect({ host, port: Number(port) });
    const settle = (answer: HttpAnswer | 'timeout' | 'closed') => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(readMsMax, () => settle('timeout'));
    socket.on('connect', () => {
      isConnected = true;
      socket.write(payload);
    });
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data]);
      const answer = parseAnswer(received, method, false);
      if (answer !== undefined) settle(answer);
    });
    socket.on('end', () => settle(parseAnswer(received, method, true) ?? 'closed'));
    socket.on('error', (error) => {
      if (isConnected) settle(parseAnswer(received, method, true) ?? 'closed');
      else reject(error);
    });
  });
}

/** Undefined while more bytes are needed; at the end of the stream what is there is taken. */
function parseAnswer(data: Buffer, method: string, isEnd: boolean): HttpAnswer | undefined {
  const headEnd = data.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const lines = data.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(lines[0]?.split(' ')[1]);
  const rest = data.subarray(headEnd + 4);
  if (status === 100) return parseAnswer(rest, method, isEnd);
  const headers: Record<string, string> = {};
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  const body = answerBody(rest, headers, {
    isBodyless: method === 'HEAD' || [204, 304].includes(status),
    isEnd,
  });
  return body === undefined ? undefined : { status, headers, body };
}

function answerBody(
  data: Buffer,
  headers: Readonly<Record<string, string>>,
  { isBodyless, isEnd }: { isBodyless: boolean; isEnd: boolean },
): Buffer | undefined {
  if (isBodyless) return Buffer.alloc(0);
  if (headers['transfer-encoding']?.toLowerCase().includes('chunked')) return unchunk(data, isEnd);
  if (headers['content-length'] !== undefined) {
    const length = Number(headers['content-length']);
    return data.length >= length || isEnd ? data.subarray(0, length) : undefined;
  }
  return isEnd ? data : undefined;
}

function unchunk(data: Buffer, isEnd: boolean): Buffer | undefined {
  const parts: Buffer[] = [];
  let at = 0;
  while (true) {
    const lineEnd = data.indexOf('\r\n', at);
    if (lineEnd < 0) return isEnd ? Buffer.concat(parts) : undefined;
    const size = Number.parseInt(data.toString('latin1', at, lineEnd).split(';')[0] || '0', 16);
    if (size === 0) return Buffer.concat(parts);
    parts.push(data.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (at > data.length && !isEnd) return undefined;
  }
}

function recordAnswer({ status, headers, body }: HttpAnswer): JsonObject {
  const kept = HEADERS_KEPT.filter((name) => headers[name] !== undefined);
  const out: JsonObject = {
    status: BigInt(status),
    headers: Object.fromEntries(kept.map((name) => [name, headers[name] ?? ''])),
  };
  let plain = body;
  if (['gzip', 'deflate'].includes(headers['content-encoding'] ?? '')) {
    try {
      plain = unzipSync(body);
    } catch (error) {
      out.bad_encoding = String(error);
    }
  }
  const headLength = headers['inference-header-content-length'];
  if (headLength !== undefined && /^\d+$/.test(headLength) && Number(headLength) <= plain.length) {
    const doc = tryParse(plain.toString('utf8', 0, Number(headLength)));
    if (doc !== undefined) {
      out.json = doc;
      return { ...out, ...bytesRecord('binary', plain.subarray(Number(headLength))) };
    }
  }
  const text = utf8(plain);
  if (text === undefined) return { ...out, ...bytesRecord('body', plain) };
  const events = headers['content-type']?.startsWith('text/event-stream') ? parseEvents(text) : undefined;
  if (events !== undefined) return { ...out, events };
  const doc = text === '' ? undefined : tryParse(text);
  if (doc !== undefined) out.json = doc;
  else out.text = text;
  return out;
}

/** Undefined when the text is not a whole list of "data: {json}" events. */
function parseEvents(text: string): Json[] | undefined {
  const pieces = text.split('\n\n');
  if (pieces.pop() !== '' || !pieces.every((piece) => piece.startsWith('data: '))) return undefined;
  const events = pieces.map((piece) => tryParse(piece.slice('data: '.length)));
  return events.every((event) => event !== undefined) ? events : undefined;
}

function tryParse(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined; // not JSON is an ordinary answer here
  }
}

function utf8(data: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return undefined; // bytes are an ordinary answer here
  }
}

/** The JSON body of a recorded or received answer. */
export function answerJson(answer: JsonObject): Json | undefined {
  if (answer.json !== undefined) return answer.json;
  return typeof answer.json_text === 'string' ? parseJson(answer.json_text) : undefined;
}

export function answerHeaders(answer: JsonObject): JsonObject {
  return isObject(answer.headers) ? answer.headers : {};
}
