// On which thread a step is decoded. A CPU computes on koffi's, so that requests come and go meanwhile. A device is only given
// its work: what it has recorded in 0.2 ms, which is done right here; anything else takes libllama milliseconds to draw, on koffi's
// thread if others may come and go meanwhile. A text that is alone has nobody to wait for, and another core would have to fetch
// all that libllama has drawn before. Where other contexts compute too this thread is theirs as well, and each is given to another.
// Decides only; docs/adr/0010 has the numbers.

import type { DecodePlace } from '../library/context.ts';

/** For a longer step the way to another thread and back does not count, and requests are read meanwhile. */
const AWAITED_HERE_MS_MAX = 3;
/** Requests that come meanwhile are read so much later. */
const DRAWN_HERE_MS_MAX = 15;

export interface DecodeStep {
  readonly rowCount: number;
  /** It has the shape of the steps before. */
  readonly isRepeated: boolean;
  /** It is one request's, and no other waits. */
  readonly isAlone: boolean;
  /** Requests run in other contexts, too. */
  readonly isShared: boolean;
}

export class DecodePlaces {
  readonly #hasDevice: boolean;
  #repeatedMs = 0;
  /** Steps of so many rows were drawn and computed in the time that is left for it. */
  #drawnHereRowsMax = 0;

  constructor(hasDevice: boolean) {
    this.#hasDevice = hasDevice;
  }

  choose({ rowCount, isRepeated, isAlone, isShared }: DecodeStep): DecodePlace {
    if (!this.#hasDevice) return 'aside';
    if (isShared) return 'aside-awaited';
    if (isRepeated) return this.#repeatedMs > AWAITED_HERE_MS_MAX ? 'here-awaited' : 'here';
    return isAlone && rowCount <= this.#drawnHereRowsMax ? 'here' : 'aside';
  }

  noteStep({ rowCount, isRepeated }: DecodeStep, durationMs: number): void {
    if (isRepeated) this.#repeatedMs = durationMs;
    else if (durationMs <= DRAWN_HERE_MS_MAX)
      this.#drawnHereRowsMax = Math.max(this.#drawnHereRowsMax, rowCount);
    else this.#drawnHereRowsMax = Math.min(this.#drawnHereRowsMax, rowCount - 1);
  }
}
