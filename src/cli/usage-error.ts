// What is wrong with a command line. The caller prints it to stderr, after the usage where that helps, and
// exits with 1.

export class UsageError extends Error {
  /** False when the command line is well formed but cannot be served; Triton prints no usage then. */
  readonly isUsageShown: boolean;

  constructor(message: string, options: { isUsageShown?: boolean } = {}) {
    super(message);
    this.name = 'UsageError';
    this.isUsageShown = options.isUsageShown ?? true;
  }
}

/** Triton's form for a value that a flag does not take. */
export function badOption(flag: string, reason: string): UsageError {
  return new UsageError(`Bad option: "--${flag}".\n${reason}`);
}
