// Frees large payloads in time. A tensor of the wire is a Buffer outside of the JavaScript heap: next to nothing for the
// collector, which runs when its own small heap fills up, until V8 notices that much memory hangs on few objects and marks
// the whole heap, in steps of five milliseconds and more, again and again. Here the bytes are counted that came and went, and
// a collection of the young objects alone, well below a millisecond, frees them before it comes to that, at a moment when
// the fewest wait for it: behind an answer that has left (docs/adr/0009).

import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const MEBIBYTE = 1024 * 1024;

/** At least this much comes between two collections, and at most that: well below the 64 MiB at which V8 begins to mark. */
const MIN_COLLECT_BYTES = 16 * MEBIBYTE;
const MAX_COLLECT_BYTES = 48 * MEBIBYTE;

/** So long a collection that is due waits for an answer to leave. */
const ANSWER_MS_MAX = 2;

/** How far the heap may grow before all of it is marked. */
const HEAP_GROWING_PERCENT = 900;

type Collect = (options: { type: 'minor' }) => void;

let collect: Collect | undefined;
let collectBytes = MIN_COLLECT_BYTES;
let bytesSince = 0;
/** Runs from when a collection is due. */
let timer: NodeJS.Timeout | undefined;
let isScheduled = false;

/** Bytes of a payload that was received or made. */
export function notePayload(byteLength: number): void {
  bytesSince += byteLength;
  if (bytesSince < collectBytes || timer !== undefined || isScheduled) return;
  timer = setTimeout(collectNow, ANSWER_MS_MAX);
}

/** The system has taken a large answer: its client is busy with it for a while. */
export function noteAnswerLeft(): void {
  if (timer === undefined || isScheduled) return;
  clearTimeout(timer);
  isScheduled = true;
  // Behind others that leave now.
  setImmediate(collectNow);
}

function collectNow(): void {
  timer = undefined;
  isScheduled = false;
  // Not behind the collection: it frees memory on another thread, and the figure falls some time later.
  const bytesAlive = getHeapStatistics().external_memory - bytesSince;
  bytesSince = 0;
  collectBytes = bytesUntilNext(bytesAlive);
  collect ??= findCollect();
  collect({ type: 'minor' });
}

/**
 * What survives two collections is old, and only marking the whole heap frees it. So that a payload in flight does not
 * meet two of them, as much has to come in between as is in flight.
 */
export function bytesUntilNext(bytesAlive: number): number {
  return Math.min(Math.max(bytesAlive, MIN_COLLECT_BYTES), MAX_COLLECT_BYTES);
}

function findCollect(): Collect {
  // The limit of the old objects is a multiple of those that live, payloads included: a server has few, and would reach it
  // with a handful of large requests.
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
  // Little survives: to wake other threads for it takes longer than to do it, where they have no core of their own.
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as Collect;
}
