// One error class with Triton's closed set of codes. The core throws it, each wire maps the code once.

export const STATUS_CODES = [
  'UNKNOWN',
  'INTERNAL',
  'NOT_FOUND',
  'INVALID_ARG',
  'UNAVAILABLE',
  'UNSUPPORTED',
  'ALREADY_EXISTS',
  'CANCELLED',
] as const;

export type StatusCode = (typeof STATUS_CODES)[number];

/** The words Triton puts before a reason: `Invalid argument: …`. */
const CODE_NAMES: Readonly<Record<StatusCode, string>> = {
  UNKNOWN: 'Unknown',
  INTERNAL: 'Internal',
  NOT_FOUND: 'Not found',
  INVALID_ARG: 'Invalid argument',
  UNAVAILABLE: 'Unavailable',
  UNSUPPORTED: 'Unsupported',
  ALREADY_EXISTS: 'Already exists',
  CANCELLED: 'Cancelled',
};

export class StatusError extends Error {
  readonly code: StatusCode;

  constructor(code: StatusCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StatusError';
    this.code = code;
  }

  /** Turns anything thrown into a StatusError; what is not one of ours is a defect, hence INTERNAL. */
  static from(thrown: unknown): StatusError {
    if (thrown instanceof StatusError) return thrown;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new StatusError('INTERNAL', message, { cause: thrown });
  }

  /** `Invalid argument: the text`, as the repository index and the log show it. */
  describe(): string {
    return `${CODE_NAMES[this.code]}: ${this.message}`;
  }
}

export function invalidArgument(message: string): StatusError {
  return new StatusError('INVALID_ARG', message);
}

export function internal(message: string): StatusError {
  return new StatusError('INTERNAL', message);
}

export function unavailable(message: string): StatusError {
  return new StatusError('UNAVAILABLE', message);
}

export function notFound(message: string): StatusError {
  return new StatusError('NOT_FOUND', message);
}

export function unsupported(message: string): StatusError {
  return new StatusError('UNSUPPORTED', message);
}
