// The tokens that may come next, with weights: filled from logits, then cut by the usual rules. Weights are e^((logit - max)
// / temperature) and need not sum to one. Scratch memory of an engine, used by one sampler at a time. No sort over the
// whole vocabulary is ever made.

/** e^-30 is far below what a float32 softmax can tell from zero. */
const NEGLIGIBLE = -30;

export class CandidateList {
  readonly #tokens: Int32Array;
  readonly #weights: Float64Array;
  #count = 0;

  constructor(tokenCount: number) {
    this.#tokens = new Int32Array(tokenCount);
    this.#weights = new Float64Array(tokenCount);
  }

  get count(): number {
    return this.#count;
  }

  /** `minP`: only tokens at least that likely in relation to the most likely one. */
  fill(logits: Float32Array, temperature: number, minP: number): void {
    let max = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < logits.length; i++) if (logits[i]! > max) max = logits[i]!;
    const cut = minP > 0 ? Math.max(Math.log(minP), NEGLIGIBLE) : NEGLIGIBLE;
    const least = max + cut * temperature;
    const scale = 1 / temperature;
    let count = 0;
    for (let i = 0; i < logits.length; i++) {
      const logit = logits[i]!;
      if (logit < least) continue;
      this.#tokens[count] = i;
      this.#weights[count++] = Math.exp((logit - max) * scale);
    }
    this.#count = count;
  }

  keepTopK(k: number): void {
    if (k >= this.#count) return;
    const kth = this.#kthWeight(k);
    // Of those that are as likely as the last one, only as many as there is room for.
    let ties = k;
    for (let i = 0; i < this.#count; i++) if (this.#weights[i]! > kth) ties--;
    this.#keep((weight) => weight > kth || (weight === kth && ties-- > 0));
  }

  /** The fewest of the most likely tokens that make up at least `p` of the whole. */
  keepTopP(p: number): void {
    const total = this.#total();
    // What is below this cannot be needed: all such tokens together are less than 1 - p.
    const least = ((1 - p) * total) / this.#count;
    this.#keep((weight) => weight >= least);
    this.#sort((a, b) => this.#weights[b]! - this.#weights[a]!);
    let sum = 0;
    let kept = 0;
    while (kept < this.#count && sum < p * total) sum += this.#weights[kept++]!;
    this.#count = Math.max(kept, 1);
  }

  /** Those whose information is nearest to the average, until they make up `p`. */
  keepTypical(p: number): void {
    const total = this.#total();
    let entropy = 0;
    for (let i = 0; i < this.#count; i++) {
      const share = this.#weights[i]! / total;
      if (share > 0) entropy -= share * Math.log(share);
    }
    const distance = (i: number) => Math.abs(-Math.log(this.#weights[i]! / total) - entropy);
    this.#sort((a, b) => distance(a) - distance(b));
    let sum = 0;
    let kept = 0;
    while (kept < this.#count && sum < p * total) sum += this.#weights[kept++]!;
    this.#count = Math.max(kept, 1);
  }

  /** The token at this share of the whole, 0 ≤ share < 1. */
  draw(share: number): number {
    let left = share * this.#total();
    for (let i = 0; i < this.#count; i++) {
      left -= this.#weights[i]!;
      if (left < 0) return this.#tokens[i]!;
    }
    return this.#tokens[this.#count - 1]!;
  }

  #total(): number {
    let total = 0;
    for (let i = 0; i < this.#count; i++) total += this.#weights[i]!;
    return total;
  }

  #keep(isKept: (weight: number) => boolean): void {
    let kept = 0;
    for (let i = 0; i < this.#count; i++) {
      if (!isKept(this.#weights[i]!)) continue;
      this.#tokens[kept] = this.#tokens[i]!;
      this.#weights[kept++] = this.#weights[i]!;
    }
    this.#count = kept;
  }

  /** The k-th largest weight, through a heap of the k largest with the smallest on top. */
  #kthWeight(k: number): number {
    const heap = this.#weights.slice(0, k);
    for (let i = (k >> 1) - 1; i >= 0; i--) sink(heap, i);
    for (let i = k; i < this.#count; i++) {
      const weight = this.#weights[i]!;
      if (weight <= heap[0]!) continue;
      heap[0] = weight;
      sink(heap, 0);
    }
    return heap[0]!;
  }

  #sort(compare: (a: number, b: number) => number): void {
    const order = Array.from({ length: this.#count }, (_, i) => i).sort(compare);
    const tokens = order.map((i) => this.#tokens[i]!);
    const weights = order.map((i) => this.#weights[i]!);
    this.#tokens.set(tokens);
    this.#weights.set(weights);
  }
}

function sink(heap: Float64Array, start: number): void {
  const weight = heap[start]!;
  let hole = start;
  for (;;) {
    let child = hole * 2 + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= weight) break;
    heap[hole] = heap[child]!;
    hole = child;
  }
  heap[hole] = weight;
}
