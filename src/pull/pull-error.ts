// What went wrong with a pull, in words for the person at the terminal. pull-command.ts prints it without a stack.
// An error that another try may mend is a PassingError; only download.ts and hub.ts, which try again, make use of that.

export class PullError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PullError';
  }
}

/** A lost connection, or a server that is busy or broken for the moment. */
export class PassingError extends Error {
  /** What the server asked for in Retry-After; undefined when it did not. */
  readonly waitMs: number | undefined;

  constructor(message: string, options: ErrorOptions & { waitMs?: number | undefined } = {}) {
    super(message, options);
    this.name = 'PassingError';
    this.waitMs = options.waitMs;
  }
}
