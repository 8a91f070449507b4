// A second, small context, in which long prompts are computed out of the others' sight. In the KV cache that all share, every
// row looks at every cell, if only to see that it is not its own, and a CPU does so in tiles of which one cell spoils all.
// Here a prompt has next to nothing but its own cells; when it is to go on with the others, its cells move to
// them. Used by StepBatch, which sees to it that the cells of a sequence are in one of the two.

import type { LlamaContext } from '../library/context.ts';
import type { MemoryOp, PlanRow } from '../scheduler/step-plan.ts';

export interface SideContextOptions {
  readonly context: LlamaContext;
  readonly sequenceCount: number;
  /** Fewer rows than these are computed with the others. */
  readonly rowsMin: number;
}

export class SideContext {
  readonly context: LlamaContext;
  readonly #main: LlamaContext;
  readonly #rowsMin: number;
  readonly #freeIds: number[];
  /** By the id that the sequence has among the others. */
  readonly #ids = new Map<number, number>();

  constructor({ context, sequenceCount, rowsMin }: SideContextOptions, main: LlamaContext) {
    this.context = context;
    this.#main = main;
    this.#rowsMin = rowsMin;
    this.#freeIds = Array.from({ length: sequenceCount }, (_, i) => i);
    context.clearCells();
  }

  /** Whether the step is computed here: prompts alone, each from its beginning on, and there is room. */
  takes(rows: readonly PlanRow[]): boolean {
    if (!rows.every(({ sequence, firstPosition }) => firstPosition === 0 || this.#ids.has(sequence))) {
      return false;
    }
    const fresh = rows.filter(({ sequence }) => !this.#ids.has(sequence));
    const rowCount = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
    if (rowCount < this.#rowsMin) return false;
    const isRoom = () => fresh.length <= this.#freeIds.length && rowCount <= this.#freeCells;
    if (!isRoom()) this.#moveOthers(new Set(rows.map(({ sequence }) => sequence)));
    if (!isRoom()) return false;
    for (const { sequence } of fresh) this.#ids.set(sequence, this.#freeIds.pop()!);
    return true;
  }

  /** The id that a sequence has here. */
  of(sequence: number): number {
    return this.#ids.get(sequence)!;
  }

  /** True when the op was about cells that are here; else it is about the main context's, which has all that it needs. */
  apply(op: MemoryOp): boolean {
    if (op.kind === 'copy') {
      this.moveOut(op.from);
      this.moveOut(op.to);
      return false;
    }
    const id = this.#ids.get(op.sequence);
    if (id === undefined) return false;
    this.context.removeCells(id, op.begin, op.end);
    if (this.context.lengthOf(id) === 0) this.#release(op.sequence, id);
    return true;
  }

  /** To the others, where it is not there already. */
  moveOut(sequence: number): void {
    const id = this.#ids.get(sequence);
    if (id === undefined) return;
    this.context.moveCells(id, { target: this.#main, sequence });
    this.#release(sequence, id);
  }

  #moveOthers(stay: ReadonlySet<number>): void {
    for (const sequence of [...this.#ids.keys()]) if (!stay.has(sequence)) this.moveOut(sequence);
  }

  #release(sequence: number, id: number): void {
    this.#ids.delete(sequence);
    this.#freeIds.push(id);
  }

  get #freeCells(): number {
    let used = 0;
    for (const id of this.#ids.values()) used += this.context.lengthOf(id);
    return this.context.cellCount - used;
  }
}
