// How many cells are kept for later prompts: all that may be, while prompts begin like earlier ones; else only so many as
// cost nothing. It remembers earlier texts as numbers, longer than their cells are there, so that it sees when keeping would be
// of use again. Used by KvLedger.

import type { SchedulerLimits } from './step-plan.ts';

/** Prompts that hardly ever begin alike are not worth the cells that they leave behind. */
const WORTHWHILE_SHARE = 0.05;
const REUSE_WEIGHT = 0.1;
/** A text is remembered at every so many tokens: what is shorter is hardly worth a cell. */
const BLOCK_TOKENS = 16;
/** Of all texts together: some tens of long ones, hundreds of short ones. */
const BLOCKS_MAX = 8192;

export class KeepPolicy {
  readonly #cellsMax: number;
  readonly #cellsMin: number;
  /** Each stands for a beginning of some text; the oldest first. */
  readonly #known = new Set<number>();
  /** Of a prompt, what was there already or would have been: a moving average over prompts. */
  #reusedShare = 1;

  constructor({ keptCellsMax, keptCellsMin }: Pick<SchedulerLimits, 'keptCellsMax' | 'keptCellsMin'>) {
    this.#cellsMax = keptCellsMax;
    this.#cellsMin = Math.min(keptCellsMin, keptCellsMax);
  }

  get cellsMax(): number {
    return this.#reusedShare < WORTHWHILE_SHARE ? this.#cellsMin : this.#cellsMax;
  }

  noteBegin(adapter: number, prompt: readonly number[], reusedTokens: number): void {
    if (this.#cellsMin === this.#cellsMax) return;
    let knownBlocks = 0;
    for (const block of blocksOf(adapter, prompt)) {
      if (!this.#known.has(block)) break;
      knownBlocks++;
    }
    const share = Math.max(reusedTokens, knownBlocks * BLOCK_TOKENS) / prompt.length;
    this.#reusedShare += (share - this.#reusedShare) * REUSE_WEIGHT;
  }

  noteEnd(adapter: number, tokens: readonly number[]): void {
    if (this.#cellsMin === this.#cellsMax) return;
    for (const block of blocksOf(adapter, tokens)) {
      this.#known.delete(block);
      this.#known.add(block);
    }
    for (const oldest of this.#known) {
      if (this.#known.size <= BLOCKS_MAX) break;
      this.#known.delete(oldest);
    }
  }
}

/** A number for each whole block, which depends on all tokens up to its end. Two may meet by chance; that costs some cells. */
function* blocksOf(adapter: number, tokens: readonly number[]): Generator<number> {
  let hash = adapter + 1;
  for (let i = 0; i < tokens.length; i++) {
    hash = Math.imul(hash ^ tokens[i]!, 0x01000193) + 0x7f4a7c15;
    hash ^= hash >>> 15;
    if ((i + 1) % BLOCK_TOKENS === 0) yield hash;
  }
}
