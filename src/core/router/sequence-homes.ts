// On which target each running sequence lives: its state is there, so its requests may go nowhere else, whatever happens
// to the weights meanwhile. A reload of the router takes the table over.

import { ROUTER_SEQUENCES_MAX } from '../../domain/limits.ts';

export type CorrelationId = bigint | string;

/** 0 and the empty text belong to no sequence. */
export function isSequence(id: CorrelationId): boolean {
  return id !== 0n && id !== '';
}

export class SequenceHomes {
  /** Least recently used first. */
  readonly #homes = new Map<CorrelationId, string>();
  readonly #countMax: number;

  constructor(countMax = ROUTER_SEQUENCES_MAX) {
    this.#countMax = countMax;
  }

  get count(): number {
    return this.#homes.size;
  }

  /** The name of the target; undefined for a sequence that has not begun, or was silent for very long. */
  find(id: CorrelationId): string | undefined {
    return this.#homes.get(id);
  }

  /** A request of the sequence was accepted there. */
  keep(id: CorrelationId, targetName: string): void {
    this.#homes.delete(id);
    this.#homes.set(id, targetName);
    if (this.#homes.size <= this.#countMax) return;
    // Clients that never end their sequences must not fill the memory; the longest silent one is most likely dead.
    for (const oldest of this.#homes.keys()) {
      this.#homes.delete(oldest);
      break;
    }
  }

  end(id: CorrelationId): void {
    this.#homes.delete(id);
  }
}
