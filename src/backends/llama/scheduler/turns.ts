// Whose turn a step is: that of one adapter, and within it, where the two go apart, that of the running texts or that of the
// prompts. Used by StepScheduler.

/** libllama plans its memory anew for another adapter, so each has the steps to itself for a while. */
export const ADAPTER_TURN_STEPS = 4;

export class Turns {
  /** adapter → the step that served it last. */
  readonly #lastServed = new Map<number, number>();
  /** Adapters whose texts have had a step to themselves, so that the next one is their prompts'. */
  readonly #owing = new Set<number>();
  #stepCount = 0;
  /** Whose turn it is, and for how many steps it has been. */
  #adapter = -1;
  #adapterSteps = 0;

  /** Who is served first. */
  order(adapters: Iterable<number>): number[] {
    const served = (adapter: number) => (this.#isInTurn(adapter) ? -1 : (this.#lastServed.get(adapter) ?? 0));
    return [...new Set(adapters)].sort((one, other) => served(one) - served(other));
  }

  isOfPrompts(adapter: number): boolean {
    return this.#owing.has(adapter);
  }

  /** `hasPutOff`: the step has left the adapter's prompts out. */
  note(adapter: number, hasPutOff: boolean): void {
    this.#lastServed.set(adapter, ++this.#stepCount);
    this.#adapterSteps = adapter === this.#adapter ? this.#adapterSteps + 1 : 1;
    this.#adapter = adapter;
    if (hasPutOff) this.#owing.add(adapter);
    else this.#owing.delete(adapter);
  }

  #isInTurn(adapter: number): boolean {
    return adapter === this.#adapter && this.#adapterSteps < ADAPTER_TURN_STEPS;
  }
}
