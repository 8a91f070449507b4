// Prompt-lookup drafting: the continuation of the most recent earlier place where the last tokens of a request
// occurred. The engine appends every token of prompt and answer, and asks for a draft at each step.
// Appending costs the same however long the request is.

/** Long n-grams first: they mislead less. */
const NGRAM_LENGTHS = [3, 2] as const;

export class PromptLookup {
  readonly #tokens: number[] = [];
  /** Per n-gram length: hash of an n-gram → index of the token that followed its latest occurrence. */
  readonly #indexes = NGRAM_LENGTHS.map((length) => ({ length, next: new Map<number, number>() }));

  constructor(prompt: Iterable<number> = []) {
    for (const token of prompt) this.append(token);
  }

  get length(): number {
    return this.#tokens.length;
  }

  append(token: number): void {
    const end = this.#tokens.length;
    // The n-grams that end before this token have a continuation only now. So what is found is always an earlier
    // occurrence than the end of the text itself.
    for (const { length, next } of this.#indexes) {
      if (end >= length) next.set(this.#hash(end, length), end);
    }
    this.#tokens.push(token);
  }

  /** Up to `count` tokens that may come next; empty when the last tokens occurred nowhere before. */
  propose(count: number): number[] {
    const end = this.#tokens.length;
    for (const { length, next } of this.#indexes) {
      if (end < length) continue;
      const at = next.get(this.#hash(end, length));
      if (at !== undefined && this.#isSame(at, end, length)) return this.#tokens.slice(at, at + count);
    }
    return [];
  }

  #hash(end: number, length: number): number {
    let hash = 0;
    for (let at = end - length; at < end; at++) {
      hash = Math.imul(hash ^ this.#tokens[at]!, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return hash;
  }

  /** Two n-grams may share a hash; the tokens decide. */
  #isSame(end: number, otherEnd: number, length: number): boolean {
    for (let back = 1; back <= length; back++) {
      if (this.#tokens[end - back] !== this.#tokens[otherEnd - back]) return false;
    }
    return true;
  }
}
