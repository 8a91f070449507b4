// How often each of the last tokens occurred; the penalties of a sampler look at it.

export class TokenWindow {
  readonly counts = new Map<number, number>();
  /** Negative: all. */
  readonly #length: number;
  readonly #tokens: number[] = [];

  constructor(length: number) {
    this.#length = length;
  }

  add(token: number): void {
    if (this.#length === 0) return;
    this.counts.set(token, (this.counts.get(token) ?? 0) + 1);
    if (this.#length < 0) return;
    this.#tokens.push(token);
    if (this.#tokens.length > this.#length) this.#remove(this.#tokens.shift()!);
  }

  #remove(token: number): void {
    const count = this.counts.get(token)! - 1;
    if (count === 0) this.counts.delete(token);
    else this.counts.set(token, count);
  }
}
