// What is kept for later prompts. How many cells: all that may be, while prompts begin like earlier ones; else only so many as
// cost nothing. Of each text: all of it, while prompts go on where earlier texts ended, as conversations do; else the
// beginning that has come again, such as a system prompt. It remembers earlier texts as numbers, longer than their cells are
// there, so that it sees when keeping would be of use again. Used by KvLedger.

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
  /** Each stands for a beginning of some text, the oldest first; true when a prompt has begun like it. */
  readonly #known = new Map<number, boolean>();
  /** Of a prompt, what was there already or would have been: a moving average over prompts. */
  #reusedShare = 1;
  /** Of a prompt, what has come again for the first time; the same average. */
  #firstReusedShare = 1;

  constructor({ keptCellsMax, keptCellsMin }: Pick<SchedulerLimits, 'keptCellsMax' | 'keptCellsMin'>) {
    this.#cellsMax = keptCellsMax;
    this.#cellsMin = Math.min(keptCellsMin, keptCellsMax);
  }

  get cellsMax(): number {
    return this.#reusedShare < WORTHWHILE_SHARE ? this.#cellsMin : this.#cellsMax;
  }

  /** While nobody runs. */
  get idleCellsMax(): number {
    return this.#cellsMax;
  }

  /** Else only what has come again is worth its cells. */
  get keepsTails(): boolean {
    return this.#firstReusedShare >= WORTHWHILE_SHARE;
  }

  noteBegin(adapter: number, prompt: readonly number[], reusedTokens: number): void {
    if (this.#isFixed) return;
    let knownBlocks = 0;
    let firstBlocks = 0;
    for (const block of blocksOf(adapter, prompt)) {
      const hasComeAgain = this.#known.get(block);
      if (hasComeAgain === undefined) break;
      knownBlocks++;
      if (hasComeAgain) continue;
      firstBlocks++;
      this.#known.set(block, true);
    }
    const share = Math.max(reusedTokens, knownBlocks * BLOCK_TOKENS) / prompt.length;
    this.#reusedShare += (share - this.#reusedShare) * REUSE_WEIGHT;
    const firstShare = (firstBlocks * BLOCK_TOKENS) / prompt.length;
    this.#firstReusedShare += (firstShare - this.#firstReusedShare) * REUSE_WEIGHT;
  }

  /** How many tokens of a text that has ended, from its first on, have come again. */
  noteEnd(adapter: number, tokens: readonly number[]): number {
    if (this.#isFixed) return 0;
    let comeAgain = 0;
    for (const block of blocksOf(adapter, tokens)) {
      const hasComeAgain = this.#known.get(block) ?? false;
      if (hasComeAgain) comeAgain += BLOCK_TOKENS;
      this.#known.delete(block);
      this.#known.set(block, hasComeAgain);
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= BLOCKS_MAX) break;
      this.#known.delete(oldest);
    }
    return comeAgain;
  }

  /** The user has said how many: they are all used. */
  get #isFixed(): boolean {
    return this.#cellsMin === this.#cellsMax;
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
