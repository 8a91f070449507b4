// A model of libllama's unified KV cache, by the facts its header states: a cell has a position and a set of sequences,
// a decode takes one free cell per row, a cell without a sequence is free. What a cell holds depends on all tokens before it
// and on the adapter, as keys and values do: here that is a hash of them, so sharing a wrong cell shows.
import assert from 'node:assert/strict';
import type { MemoryOp, PlanRow } from '../../src/backends/llama/scheduler/step-plan.ts';

interface Cell {
  readonly position: number;
  readonly token: number;
  readonly context: number;
  readonly sequences: Set<number>;
}

export function beginContext(adapter: number): number {
  return mix(0x9e3779b9, adapter);
}

/** What a cell holds: its token and all before it. */
export function mix(context: number, token: number): number {
  let h = Math.imul(context ^ (token + 0x7f4a7c15), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

export class KvCacheModel {
  readonly #cells: (Cell | undefined)[];
  #usedCount = 0;

  constructor(cellCount: number) {
    this.#cells = Array.from({ length: cellCount }, () => undefined);
  }

  get usedCount(): number {
    return this.#usedCount;
  }

  apply(op: MemoryOp): void {
    const isIn = ({ position }: Cell) => position >= op.begin && (op.end < 0 || position < op.end);
    for (const [i, cell] of this.#cells.entries()) {
      if (cell === undefined || !isIn(cell)) continue;
      if (op.kind === 'copy') {
        if (cell.sequences.has(op.from)) cell.sequences.add(op.to);
      } else if (cell.sequences.delete(op.sequence) && cell.sequences.size === 0) {
        this.#cells[i] = undefined;
        this.#usedCount--;
      }
    }
  }

  /** Computes the rows and answers the context after each of their tokens, by request. */
  decode(rows: readonly PlanRow[], adapter: number): Map<number, number[]> {
    const contexts = new Map<number, number[]>();
    const last = this.#lastCells();
    let free = 0;
    for (const { requestId, sequence, tokens, firstPosition } of rows) {
      const before = last.get(sequence);
      assert.equal(firstPosition, before === undefined ? 0 : before.position + 1, 'a gap in the positions');
      let context = before?.context ?? beginContext(adapter);
      const answer: number[] = [];
      for (const [i, token] of tokens.entries()) {
        while (free < this.#cells.length && this.#cells[free] !== undefined) free++;
        assert.ok(free < this.#cells.length, 'no free cell: llama_decode would have failed');
        context = mix(context, token);
        this.#cells[free] = { position: firstPosition + i, token, context, sequences: new Set([sequence]) };
        this.#usedCount++;
        answer.push(context);
      }
      contexts.set(requestId, answer);
    }
    return contexts;
  }

  /** The tokens of every sequence by position, after a check that none has a gap, a double or a strange cell. */
  readSequences(): Map<number, number[]> {
    const cells = new Map<number, Cell[]>();
    let cellCount = 0;
    for (const cell of this.#cells) {
      if (cell === undefined) continue;
      cellCount++;
      for (const sequence of cell.sequences) {
        const own = cells.get(sequence) ?? [];
        cells.set(sequence, own);
        assert.equal(
          own[cell.position],
          undefined,
          `sequence ${sequence} has position ${cell.position} twice`,
        );
        own[cell.position] = cell;
      }
    }
    assert.equal(this.#usedCount, cellCount);
    const tokens = new Map<number, number[]>();
    for (const [sequence, own] of cells) tokens.set(sequence, checkedTokens(sequence, own));
    return tokens;
  }

  #lastCells(): Map<number, Cell> {
    const last = new Map<number, Cell>();
    for (const cell of this.#cells) {
      if (cell === undefined) continue;
      for (const sequence of cell.sequences) {
        const known = last.get(sequence);
        if (known === undefined || known.position < cell.position) last.set(sequence, cell);
      }
    }
    return last;
  }
}

function checkedTokens(sequence: number, cells: readonly (Cell | undefined)[]): number[] {
  const tokens: number[] = [];
  let context: number | undefined;
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i];
    if (cell === undefined) throw new Error(`sequence ${sequence} has no cell at position ${i}`);
    // What the first cell began with is compared by the simulation, which knows the adapter.
    if (context !== undefined && mix(context, cell.token) !== cell.context) {
      throw new Error(`position ${i} of sequence ${sequence} was computed behind other tokens`);
    }
    context = cell.context;
    tokens.push(cell.token);
  }
  return tokens;
}
