// The place of one instance in the rate limiter, as the instance sees it. Made by core/rate-limiter, only with
// --rate-limit=execution_count.

export interface Admission {
  /** Whether it may begin a batch now; when not, its scheduler hears of the moment it may. */
  ask(): boolean;
  /** It was given a batch; only after a yes in the same turn of the event loop. */
  begin(): void;
  /** The batch is over or lost; harmless when there was none. */
  end(): void;
  /** It will never run again. */
  leave(): void;
}
