// The tokens that may come next, with weights: read from logits, then cut by the usual rules. Weights are e^((logit - max)
// / temperature) and need not sum to one. Scratch memory of an engine, used by one sampler at a time. One pass over the
// whole vocabulary finds the largest logit of each block of 256; after it, only blocks that may matter are looked at:
//
//   logits:   │ block 0 … 255 │ block 1 … │ … │      No sort over all of them is ever made, and no exponential
//   blockMax: │       8.1     │    13.2   │ … │      of what is cut away, but for the sum that top-p needs.

import { findCut, kthLargest, nearestFirst } from './candidate-cuts.ts';
import { sumExp } from './exp-sum.ts';

/** e^-30 is far below what a float32 softmax can tell from zero. */
const NEGLIGIBLE = -30;
const BLOCK = 256;
/** A nucleus is looked for among tokens down to e^-2 of the most likely one, then e^-4 and so on. */
const NUCLEUS_DEPTH_FIRST = 2;

export class CandidateList {
  readonly #tokens: Int32Array;
  readonly #weights: Float64Array;
  #count = 0;
  readonly #blockMax: Float32Array;
  /** The sums of the slots of all blocks up to this one: see `drawFromAll`. */
  readonly #slotSums: Float64Array;
  #logits: Float32Array = new Float32Array(0);
  #temperature = 1;
  #max = 0;
  #hasSlots = false;

  constructor(tokenCount: number) {
    const blockCount = Math.ceil(tokenCount / BLOCK);
    this.#tokens = new Int32Array(tokenCount);
    this.#weights = new Float64Array(tokenCount);
    this.#blockMax = new Float32Array(blockCount);
    this.#slotSums = new Float64Array(blockCount);
  }

  get count(): number {
    return this.#count;
  }

  /** All tokens are masked: nothing may be taken or drawn. */
  get isEmpty(): boolean {
    return this.#max === Number.NEGATIVE_INFINITY;
  }

  get mostLikely(): number {
    return this.#logits.indexOf(this.#max);
  }

  /** Before each choice. The logits, as many as there are tokens, must not change until it is made. */
  read(logits: Float32Array, temperature: number): void {
    const blockMax = this.#blockMax;
    let max = Number.NEGATIVE_INFINITY;
    for (let block = 0; block < blockMax.length; block++) {
      const begin = block * BLOCK;
      const largest = largestIn(logits, begin, Math.min(begin + BLOCK, logits.length));
      blockMax[block] = largest;
      if (largest > max) max = largest;
    }
    this.#logits = logits;
    this.#temperature = temperature;
    this.#max = max;
    this.#hasSlots = false;
    this.#count = 0;
  }

  /**
   * From the whole vocabulary, with one exponential per block. Each token has a slot as wide as the weight of the most
   * likely one in its block; `share`, 0 ≤ share < 1, is a point on all of them. It is the token's if it is within the
   * token's own weight, else nobody's: -1, draw again. So each token gets as much as it weighs.
   */
  drawFromAll(share: number): number {
    if (!this.#hasSlots) this.#layOutSlots();
    const sums = this.#slotSums;
    const point = share * sums[sums.length - 1]!;
    let block = 0;
    for (let end = sums.length - 1; block < end; ) {
      const middle = (block + end) >> 1;
      if (sums[middle]! > point) end = middle;
      else block = middle + 1;
    }
    const width = this.#weightOf(this.#blockMax[block]!);
    const begin = block * BLOCK;
    const slots = (point - (block === 0 ? 0 : sums[block - 1]!)) / width;
    const index = Math.floor(slots);
    // Rounding may lead past the last slot of a block.
    if (!(index < Math.min(BLOCK, this.#logits.length - begin))) return -1;
    const logit = this.#logits[begin + index]!;
    const isOwn = logit >= this.#least(0) && (slots - index) * width < this.#weightOf(logit);
    return isOwn ? begin + index : -1;
  }

  /** `minP`: only tokens at least that likely in relation to the most likely one. */
  takeAll(minP: number): void {
    this.#gather(this.#least(minP));
  }

  takeTopK(k: number, minP: number): void {
    let least = this.#least(minP);
    // Each of k blocks has a token that is as likely as this, so the k most likely are no less.
    if (k < this.#blockMax.length)
      least = Math.max(least, kthLargest(this.#blockMax, this.#blockMax.length, k));
    this.#gather(least);
    this.keepTopK(k);
  }

  /** The fewest of the most likely tokens that make up at least `p` of the whole. */
  takeTopP(p: number): void {
    const total = sumExp(this.#logits, this.#max, 1 / this.#temperature);
    for (let depth = NUCLEUS_DEPTH_FIRST; ; depth *= 2) {
      this.#gather(this.#max - Math.min(depth, -NEGLIGIBLE) * this.#temperature);
      if (depth >= -NEGLIGIBLE || this.#total() >= p * total) break;
    }
    this.#keepHeaviest(p * total);
  }

  keepTopK(k: number): void {
    if (k >= this.#count) return;
    const kth = kthLargest(this.#weights, this.#count, k);
    // Of those that are as likely as the last one, only as many as there is room for.
    let ties = k;
    for (let i = 0; i < this.#count; i++) if (this.#weights[i]! > kth) ties--;
    this.#keep((weight) => weight > kth || (weight === kth && ties-- > 0));
  }

  keepTopP(p: number): void {
    this.#keepHeaviest(p * this.#total());
  }

  /** Those whose information is nearest to the average, until they make up `p`. */
  keepTypical(p: number): void {
    const total = this.#total();
    let entropy = 0;
    for (let i = 0; i < this.#count; i++) {
      const share = this.#weights[i]! / total;
      if (share > 0) entropy -= share * Math.log(share);
    }
    const distances = new Float64Array(this.#count);
    for (let i = 0; i < this.#count; i++) {
      distances[i] = Math.abs(-Math.log(this.#weights[i]! / total) - entropy);
    }
    const places = nearestFirst(distances, this.#weights, p * total);
    const tokens = this.#tokens.slice(0, this.#count);
    const weights = this.#weights.slice(0, this.#count);
    for (let i = 0; i < places.length; i++) {
      this.#tokens[i] = tokens[places[i]!]!;
      this.#weights[i] = weights[places[i]!]!;
    }
    this.#count = places.length;
    let sum = 0;
    let kept = 0;
    while (kept < this.#count && sum < p * total) sum += this.#weights[kept++]!;
    this.#count = Math.max(kept, 1);
  }

  /** Of the candidates that are left, the one at this share of the whole, 0 ≤ share < 1. */
  draw(share: number): number {
    let left = share * this.#total();
    for (let i = 0; i < this.#count; i++) {
      left -= this.#weights[i]!;
      if (left < 0) return this.#tokens[i]!;
    }
    return this.#tokens[this.#count - 1]!;
  }

  #weightOf(logit: number): number {
    return Math.exp((logit - this.#max) / this.#temperature);
  }

  #least(minP: number): number {
    const depth = minP > 0 ? Math.max(Math.log(minP), NEGLIGIBLE) : NEGLIGIBLE;
    return this.#max + depth * this.#temperature;
  }

  #layOutSlots(): void {
    let sum = 0;
    for (let block = 0; block < this.#blockMax.length; block++) {
      const size = Math.min(BLOCK, this.#logits.length - block * BLOCK);
      sum += size * this.#weightOf(this.#blockMax[block]!);
      this.#slotSums[block] = sum;
    }
    this.#hasSlots = true;
  }

  #gather(least: number): void {
    const logits = this.#logits;
    let count = 0;
    for (let block = 0; block < this.#blockMax.length; block++) {
      if (!(this.#blockMax[block]! >= least)) continue;
      const end = Math.min((block + 1) * BLOCK, logits.length);
      for (let i = block * BLOCK; i < end; i++) {
        const logit = logits[i]!;
        if (!(logit >= least)) continue;
        this.#tokens[count] = i;
        this.#weights[count++] = this.#weightOf(logit);
      }
    }
    this.#count = count;
  }

  /** The fewest that weigh `wanted` together. */
  #keepHeaviest(wanted: number): void {
    let { least, ties } = findCut(this.#weights.slice(0, this.#count), wanted);
    this.#keep((weight) => weight > least || (weight === least && ties-- > 0));
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
}

/** Eight at a time: one of them is rarely larger, and then the branch is foreseen. */
function largestIn(logits: Float32Array, begin: number, end: number): number {
  let max = Number.NEGATIVE_INFINITY;
  let i = begin;
  for (; i + 7 < end; i += 8) {
    const a = logits[i]!;
    const b = logits[i + 1]!;
    const c = logits[i + 2]!;
    const d = logits[i + 3]!;
    const e = logits[i + 4]!;
    const f = logits[i + 5]!;
    const g = logits[i + 6]!;
    const h = logits[i + 7]!;
    if (!(a > max || b > max || c > max || d > max || e > max || f > max || g > max || h > max)) continue;
    if (a > max) max = a;
    if (b > max) max = b;
    if (c > max) max = c;
    if (d > max) max = d;
    if (e > max) max = e;
    if (f > max) max = f;
    if (g > max) max = g;
    if (h > max) max = h;
  }
  for (; i < end; i++) if (logits[i]! > max) max = logits[i]!;
  return max;
}
