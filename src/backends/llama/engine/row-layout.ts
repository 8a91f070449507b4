// Which sequence has which row of a step. A device plays a step again as CUDA has recorded it only while the same sequences
// stand in the same rows, and needs three slow steps for another recording. So who leaves keeps a row that nobody reads until
// somebody joins, or until too many rows are empty. Pure; used by StepBatch.

/** Of the rows. Empty ones cost a device little, but not nothing. */
const VACANT_SHARE_MAX = 0.5;
/** The library draws a graph at the first, CUDA records at the second. */
const REPEATS_UNTIL_FAST = 2;

export class RowLayout {
  #sequences: readonly number[] = [];
  #repeatCount = 0;

  /** The step has the shape of those before, and is played from a recording. */
  get isRepeated(): boolean {
    return this.#repeatCount >= REPEATS_UNTIL_FAST;
  }

  /** The rows of a step in which each of these sequences has one; those of others among them are empty. */
  arrange(sequences: readonly number[]): readonly number[] {
    const here = new Set(this.#sequences);
    const vacantCount = this.#sequences.length - sequences.length;
    const isKept =
      vacantCount <= this.#sequences.length * VACANT_SHARE_MAX && sequences.every((id) => here.has(id));
    this.#repeatCount = isKept ? this.#repeatCount + 1 : 0;
    if (!isKept) this.#sequences = sequences;
    return this.#sequences;
  }

  /** A step of another kind: with prompts, or with proposals. */
  forget(): void {
    this.#sequences = [];
    this.#repeatCount = 0;
  }
}
