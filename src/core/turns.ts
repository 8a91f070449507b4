// Tasks under one name happen one after another, in the order in which they were asked for; tasks under different names
// side by side. Used by control.ts, where the name is a model's.

export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Resolves or rejects as the task does; one that failed does not keep the next from its turn. */
  take<T>(name: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const result = before.then(task, task);
    const settled = result.then(
      () => {},
      () => {},
    );
    this.#last.set(name, settled);
    void settled.then(() => {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    });
    return result;
  }
}
