// An error as clients of the OpenAI API read it: HTTP status, type, the field that is wrong, a code. Everything that is
// thrown on the way of a request becomes one here; openai-routes.ts and the streams write it.

import { type StatusCode, StatusError } from '../../domain/status.ts';
import type { RoutedAnswer } from '../http-routes.ts';

export interface ApiErrorDetail {
  readonly status: number;
  readonly type: string;
  /** The field of the request that is wrong. */
  readonly param?: string | undefined;
  readonly code?: string | undefined;
  /** Further header lines of the answer. */
  readonly headers?: string | undefined;
}

export class ApiError extends Error {
  readonly detail: ApiErrorDetail;

  constructor(message: string, detail: ApiErrorDetail, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ApiError';
    this.detail = detail;
  }

  /** `structureField`: under which name the client asked for structured outputs. */
  static from(thrown: unknown, structureField?: string): ApiError {
    if (thrown instanceof ApiError) return thrown;
    const { code, message } = StatusError.from(thrown);
    const detail = BY_STATUS[code];
    const cause = { cause: thrown };
    if (code !== 'INVALID_ARG') return new ApiError(message, detail, cause);
    if (structureField !== undefined && message.startsWith(STRUCTURE_REFUSED)) {
      const reason = message.slice(STRUCTURE_REFUSED.length);
      return new ApiError(
        `Invalid '${structureField}': ${reason}`,
        { ...detail, param: structureField },
        cause,
      );
    }
    const param = SAMPLING_PARAMETER.exec(message)?.[1];
    return new ApiError(message, param === undefined ? detail : { ...detail, param }, cause);
  }

  /** `{"error":{…}}` */
  get document(): string {
    const { type, param = null, code = null } = this.detail;
    return JSON.stringify({ error: { message: this.message, type, param, code } });
  }
}

/** How a model names a setting that it refuses; the API has them under the same names. */
const SAMPLING_PARAMETER = /sampling parameter '(\w+)'/;
/** Structured outputs have many names in the API and one in the model. */
const STRUCTURE_REFUSED = "sampling parameter 'structured_outputs': ";

const INVALID_REQUEST = 'invalid_request_error';
const WRONG: ApiErrorDetail = { status: 400, type: INVALID_REQUEST };
const FAILED: ApiErrorDetail = { status: 500, type: 'server_error' };

/**
 * The official clients repeat 408, 409, 429 and everything from 500 on. A full queue is 503: it is the server that is
 * busy, not this client that sends too much, and proxies in front of several servers try another one at 503. What
 * cannot be served at all is 400, so that nobody repeats it.
 */
const BY_STATUS: Readonly<Record<StatusCode, ApiErrorDetail>> = {
  INVALID_ARG: WRONG,
  ALREADY_EXISTS: WRONG,
  UNSUPPORTED: WRONG,
  NOT_FOUND: { status: 404, type: INVALID_REQUEST, param: 'model', code: 'model_not_found' },
  UNAVAILABLE: { status: 503, type: 'service_unavailable_error', headers: 'Retry-After: 1\r\n' },
  INTERNAL: FAILED,
  UNKNOWN: FAILED,
  CANCELLED: FAILED,
};

/** A field with a wrong value. */
export function invalidField(param: string, message: string): ApiError {
  return new ApiError(message, { ...WRONG, param });
}

/** Wrong as a whole. */
export function invalidRequest(message: string): ApiError {
  return new ApiError(message, WRONG);
}

export function modelNotFound(model: string): ApiError {
  return new ApiError(`The model '${model}' does not exist or is not loaded.`, BY_STATUS.NOT_FOUND);
}

export function answerOf(error: ApiError): RoutedAnswer {
  const { status, headers } = error.detail;
  return jsonAnswer(error.document, { status, ...(headers === undefined ? {} : { headers }) });
}

export function jsonAnswer(
  document: string | Buffer,
  options: { readonly status: number; readonly headers?: string } = { status: 200 },
): RoutedAnswer {
  const body = typeof document === 'string' ? Buffer.from(document) : document;
  return { ...options, type: 'application/json', parts: [body], byteLength: body.length };
}
