// Finds stop strings in text that arrives in pieces, and says how much of it may be sent already. The engine makes
// one per choice of a request. What it answers does not depend on where the pieces were cut.

export interface StopResult {
  /** What may be sent now. */
  readonly text: string;
  /** The stop string that was met, or null. After a hit nothing more is given out. */
  readonly stop: string | null;
}

/** One stop string, and how many of its characters the text ends with now. */
interface Candidate {
  readonly stop: string;
  /** Knuth-Morris-Pratt: failure[i] is the longest border of the first i + 1 characters. */
  readonly failure: Int32Array;
  matched: number;
}

export class StopStrings {
  readonly #candidates: readonly Candidate[];
  readonly #isIncluded: boolean;
  /** The end of the text so far that could be the beginning of a stop string. */
  #held = '';
  #hasHit = false;

  constructor(stops: readonly string[], options: { readonly isIncluded: boolean }) {
    this.#candidates = stops
      .filter((stop) => stop !== '')
      .map((stop) => ({ stop, failure: failureOf(stop), matched: 0 }));
    this.#isIncluded = options.isIncluded;
  }

  push(delta: string): StopResult {
    if (this.#hasHit) return { text: '', stop: null };
    if (this.#candidates.length === 0) return { text: delta, stop: null };
    const text = this.#held + delta;
    for (let at = this.#held.length; at < text.length; at++) {
      const hit = this.#advance(text.charCodeAt(at));
      if (hit === undefined) continue;
      this.#hasHit = true;
      this.#held = '';
      const end = at + 1;
      return { text: text.slice(0, this.#isIncluded ? end : end - hit.length), stop: hit };
    }
    const heldLength = this.#candidates.reduce((longest, { matched }) => Math.max(longest, matched), 0);
    this.#held = text.slice(text.length - heldLength);
    return { text: text.slice(0, text.length - heldLength), stop: null };
  }

  /** What was held back, at the end of generation: no stop string can follow any more. */
  flush(): string {
    const rest = this.#held;
    this.#held = '';
    for (const candidate of this.#candidates) candidate.matched = 0;
    return rest;
  }

  /** Takes one UTF-16 unit. Of the stop strings that end here the longest wins, since it begins first. */
  #advance(unit: number): string | undefined {
    let hit: string | undefined;
    for (const candidate of this.#candidates) {
      const { stop, failure } = candidate;
      let matched = candidate.matched;
      while (matched > 0 && stop.charCodeAt(matched) !== unit) matched = failure[matched - 1]!;
      if (stop.charCodeAt(matched) === unit) matched++;
      if (matched === stop.length) {
        if (hit === undefined || stop.length > hit.length) hit = stop;
        matched = failure[matched - 1]!;
      }
      candidate.matched = matched;
    }
    return hit;
  }
}

function failureOf(text: string): Int32Array {
  const failure = new Int32Array(text.length);
  for (let at = 1, border = 0; at < text.length; at++) {
    while (border > 0 && text[at] !== text[border]) border = failure[border - 1]!;
    if (text[at] === text[border]) border++;
    failure[at] = border;
  }
  return failure;
}
