// The one place that writes answers: status line, headers, body. Triton sends errors of the transport and of
// execution as text/plain and those of parsing as application/json; the body is the same JSON either way.

import type { ServerResponse } from 'node:http';
import type { StatusCode, StatusError } from '../../domain/status.ts';
import { readVersion } from '../../lib/version.ts';
import { errorDocument } from '../../wire/v2-json/documents.ts';

/** Our own version; /v2 names the Triton version that clients check. */
export const SERVER_HEADER = `nereid/${readVersion()}`;

export const JSON_TYPE = 'application/json';
export const TEXT_TYPE = 'text/plain';
export const BINARY_TYPE = 'application/octet-stream';

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

export function respond(
  res: ServerResponse,
  answer: { status: number; type: string; body: string | Buffer; headers?: readonly string[] },
): void {
  if (res.destroyed || res.headersSent) return;
  const length = typeof answer.body === 'string' ? Buffer.byteLength(answer.body) : answer.body.length;
  const headers = ['Server', SERVER_HEADER, 'Content-Type', answer.type, 'Content-Length', String(length)];
  if (answer.headers !== undefined) headers.push(...answer.headers);
  res.writeHead(answer.status, headers);
  res.end(answer.body);
}

export function respondJson(res: ServerResponse, document: string): void {
  respond(res, { status: 200, type: JSON_TYPE, body: document });
}

export function respondEmpty(res: ServerResponse, status: number, type: string): void {
  respond(res, { status, type, body: '' });
}

export function respondError(res: ServerResponse, error: StatusError, type: string = JSON_TYPE): void {
  respond(res, { status: HTTP_STATUS[error.code], type, body: errorDocument(error.message) });
}

export function respondStatus(
  res: ServerResponse,
  answer: { status: number; message: string; type?: string; headers?: readonly string[] },
): void {
  respond(res, { type: TEXT_TYPE, ...answer, body: errorDocument(answer.message) });
}
