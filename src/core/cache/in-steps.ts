// Work over many bytes (hashing, comparing, copying) in one go, or in steps between which the event loop serves others.
// Used by cache-key.ts and cache-entry.ts.

import { CACHE_STEP_BYTES_MAX } from '../../domain/limits.ts';

/** `at` counts from the first byte of the first piece; false ends the work. */
export type VisitBytes = (bytes: Buffer, at: number) => boolean;

/** False when `visit` ended it. */
export function visitAll(pieces: readonly Buffer[], visit: VisitBytes): boolean {
  let at = 0;
  for (const piece of pieces) {
    if (!visit(piece, at)) return false;
    at += piece.length;
  }
  return true;
}

/** The same with a turn of the event loop after every CACHE_STEP_BYTES_MAX. */
export async function visitInSteps(pieces: readonly Buffer[], visit: VisitBytes): Promise<boolean> {
  let at = 0;
  let roomBytes = CACHE_STEP_BYTES_MAX;
  for (const piece of pieces) {
    for (let start = 0; start < piece.length; ) {
      const step = piece.subarray(start, start + roomBytes);
      if (!visit(step, at)) return false;
      start += step.length;
      at += step.length;
      roomBytes -= step.length;
      if (roomBytes === 0) {
        await nextTurn();
        roomBytes = CACHE_STEP_BYTES_MAX;
      }
    }
  }
  return true;
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
