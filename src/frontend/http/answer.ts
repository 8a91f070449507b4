// An HTTP answer as data, and its bytes. Triton sends errors of the transport and of execution as text/plain and
// those of parsing as application/json; the body is the same JSON either way.

import type { StatusCode, StatusError } from '../../domain/status.ts';
import { readVersion } from '../../lib/version.ts';
import { errorDocument } from '../../wire/v2-json/documents.ts';

/** All of an answer but its body. */
export interface HttpAnswerHead {
  readonly status: number;
  readonly type: string;
  /** Further header lines, each with its line end. */
  readonly headers?: string;
}

export interface HttpAnswer extends HttpAnswerHead {
  readonly parts: readonly Buffer[];
  readonly byteLength: number;
}

/** HTTP/1.1 keeps a connection without a word; HTTP/1.0 must be told. */
export type ConnectionOption = 'close' | 'keep-alive' | '';

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain';
export const BINARY_TYPE = 'application/octet-stream';
export const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';

/** Our own version; /v2 names the Triton version that clients check. */
const SERVER = `Server: nereid/${readVersion()}\r\n`;

const HTTP_STATUS: Readonly<Record<StatusCode, number>> = {
  UNKNOWN: 400,
  INTERNAL: 500,
  NOT_FOUND: 404,
  INVALID_ARG: 400,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
};

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
};

/** Below this one copy and one write beat several writes. */
const SINGLE_WRITE_BYTES_MAX = 64 * 1024;

export function textAnswer(
  status: number,
  text: string,
  options: { type: string; headers?: string },
): HttpAnswer {
  const body = Buffer.from(text);
  return { status, ...options, parts: [body], byteLength: body.length };
}

export function jsonAnswer(document: string): HttpAnswer {
  return textAnswer(200, document, { type: JSON_TYPE });
}

export function emptyAnswer(status: number, type: string): HttpAnswer {
  return { status, type, parts: [], byteLength: 0 };
}

export function errorAnswer(status: number, message: string, type: string = TEXT_TYPE): HttpAnswer {
  return textAnswer(status, errorDocument(message), { type });
}

export function statusAnswer(error: StatusError, type: string = JSON_TYPE): HttpAnswer {
  return errorAnswer(httpStatusOf(error.code), error.message, type);
}

export function httpStatusOf(code: StatusCode): number {
  return HTTP_STATUS[code];
}

/** The bytes to write: one buffer when the answer is small. */
export function encodeAnswer(
  answer: HttpAnswer,
  options: { connection: ConnectionOption; isBodySent: boolean },
): readonly Buffer[] {
  const { byteLength } = answer;
  const head = headText(answer, options.connection, `Content-Length: ${byteLength}\r\n`);
  if (!options.isBodySent) return [Buffer.from(head, 'latin1')];
  if (byteLength > SINGLE_WRITE_BYTES_MAX) return [Buffer.from(head, 'latin1'), ...answer.parts];
  const bytes = Buffer.allocUnsafe(head.length + byteLength);
  let at = bytes.write(head, 0, 'latin1');
  for (const part of answer.parts) at += part.copy(bytes, at);
  return [bytes];
}

/** The head of an answer whose length is not known: chunked, or in HTTP/1.0 all that comes until the end. */
export function encodeStreamHead(
  head: HttpAnswerHead,
  options: { connection: ConnectionOption; isChunked: boolean },
): string {
  return headText(head, options.connection, options.isChunked ? 'Transfer-Encoding: chunked\r\n' : '');
}

function headText(head: HttpAnswerHead, connection: ConnectionOption, framing: string): string {
  const { status } = head;
  const connectionLine = connection === '' ? '' : `Connection: ${connection}\r\n`;
  return `HTTP/1.1 ${status} ${REASONS[status] ?? 'Unknown'}\r\n${SERVER}Content-Type: ${head.type}\r\n${head.headers ?? ''}${connectionLine}${framing}\r\n`;
}
