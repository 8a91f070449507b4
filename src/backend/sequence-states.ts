// The implicit states of the sequences on one instance, in the host that runs it, so that they never travel:
//
//   slot 0: │ state 0 │ state 1 │ …      made at the start of a sequence, freed at its end; a slot whose sequence
//   slot 3: │ state 0 │ state 1 │ …      never ended is overwritten by the next one that gets it
//
// A backend calls `begin` before an execution, reads `of`, and calls `advance` when it has succeeded.

import { type StatusError, unavailable } from '../domain/status.ts';
import { type StateTensor, zeros } from './initial-states.ts';
import type { StateSlot } from './sdk.ts';

export class SequenceStates {
  readonly #modelName: string;
  readonly #initial: readonly StateTensor[];
  readonly #slots = new Map<number, StateTensor[]>();

  constructor(modelName: string, initial: readonly StateTensor[]) {
    this.#modelName = modelName;
    this.#initial = initial;
  }

  /** States of one sequence. */
  get count(): number {
    return this.#initial.length;
  }

  /** Slots that are held now. */
  get slotCount(): number {
    return this.#slots.size;
  }

  /** An error where the state is gone, since going on from another one would give wrong answers. */
  begin({ slot, isStart }: StateSlot): StatusError | undefined {
    if (isStart) this.#slots.set(slot, this.#initial.map(copyOf));
    else if (!this.#slots.has(slot)) {
      return unavailable(
        `the state of the sequence was lost when an instance of model '${this.#modelName}' was restarted; ` +
          'start the sequence again',
      );
    }
    return undefined;
  }

  /** What a new sequence starts with. */
  initial(state: number): StateTensor {
    return this.#initial[state]!;
  }

  /** The tensor that the next execution of the slot's sequence takes; its bytes must not be written. */
  of(slot: number, state: number): StateTensor {
    return this.#slots.get(slot)?.[state] ?? this.#initial[state]!;
  }

  /** The bytes are copied: those of an execution belong to the backend. */
  advance(slot: number, state: number, { shape, data }: StateTensor): void {
    const tensors = this.#slots.get(slot);
    if (tensors === undefined) return;
    const held = tensors[state]!;
    const memory = held.data.length === data.length ? held.data : zeros(data.length);
    data.copy(memory);
    tensors[state] = { shape: isSameShape(shape, held.shape) ? held.shape : [...shape], data: memory };
  }

  /** After the last request of a sequence, whether it succeeded or not. */
  end(slot: number): void {
    this.#slots.delete(slot);
  }
}

export function isSameShape(a: readonly number[], b: readonly number[]): boolean {
  return a === b || (a.length === b.length && a.every((dim, i) => dim === b[i]));
}

function copyOf({ shape, data }: StateTensor): StateTensor {
  const memory = zeros(data.length);
  data.copy(memory);
  return { shape, data: memory };
}
