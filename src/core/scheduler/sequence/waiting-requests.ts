// How many requests of a model no instance has yet, in number and in bytes, and the bounds of it. Past them requests are
// refused rather than memory exhausted.

import { QUEUE_REQUESTS_MAX, SEQUENCES_WAITING_MAX } from '../../../domain/limits.ts';
import { unavailable } from '../../../domain/status.ts';
import type { Entry } from '../entry.ts';

export interface SequenceBounds {
  readonly requestsMax: number;
  readonly bytesMax: number;
  /** Sequences that wait for a slot. */
  readonly backlogMax: number;
}

/** `bytesMax` is the config's; the others are the same for all models. */
export function sequenceBounds(bytesMax: number): SequenceBounds {
  return { requestsMax: QUEUE_REQUESTS_MAX, bytesMax, backlogMax: SEQUENCES_WAITING_MAX };
}

export class WaitingRequests {
  readonly #bounds: SequenceBounds;
  #count = 0;
  #bytes = 0;

  constructor(bounds: SequenceBounds) {
    this.#bounds = bounds;
  }

  get count(): number {
    return this.#count;
  }

  /** Throws when there is no room for the request, or for the sequence that it begins. */
  checkRoom(entry: Entry, options: { isNewSequence: boolean; backlogCount: number }): void {
    const { requestsMax, bytesMax, backlogMax } = this.#bounds;
    const id = entry.request.id === '' ? '<id_unknown>' : entry.request.id;
    if (this.#count >= requestsMax || this.#bytes + entry.byteLength > bytesMax) {
      throw unavailable(`[request id: ${id}] Exceeds maximum queue size`);
    }
    if (!options.isNewSequence || options.backlogCount < backlogMax) return;
    throw unavailable(
      `[request id: ${id}] Exceeds maximum queue size: ${backlogMax} sequences wait for a slot of the model`,
    );
  }

  add(entry: Entry): void {
    this.#count++;
    this.#bytes += entry.byteLength;
  }

  remove(entry: Entry): void {
    this.#count--;
    this.#bytes -= entry.byteLength;
  }
}
