// A request's way of being told that nobody waits for it any more. An AbortSignal would do, but costs several
// microseconds a request; this is one object with one listener.

export class Cancellation {
  #isCancelled = false;
  #listener: (() => void) | undefined;

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#listener?.();
  }

  /** One listener; called at once when the cancellation has already come. */
  onCancel(listener: () => void): void {
    this.#listener = listener;
    if (this.#isCancelled) listener();
  }
}
