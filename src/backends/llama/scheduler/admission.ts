// Whether a request is taken, and whether one that waits may begin now: it must not compute what another is just computing, and its
// cells must be there. Reads the books and the running requests, and changes neither. Used by StepScheduler.
import { findLeader, isHeldBack } from './find-leader.ts';
import type { KvLedger } from './kv-ledger.ts';
import { type RequestState, remainingCount } from './request-state.ts';
import { type SchedulerLimits, SchedulerRefusal } from './step-plan.ts';

/** Nobody is admitted unless each running request could decode so many more steps: else one would be preempted at once. */
const HEADROOM_STEPS = 8;

/** Throws a SchedulerRefusal when the request is not to be taken at all. */
export function checkAcceptable(
  promptLength: number,
  waitingCount: number,
  { waitingMax, cellCount }: SchedulerLimits,
): void {
  if (promptLength >= cellCount) {
    const text = `the prompt has ${promptLength} tokens, but the KV cache has only ${cellCount} cells`;
    throw new SchedulerRefusal('prompt-too-long', text);
  }
  if (waitingCount < waitingMax) return;
  const waiting = waitingCount === 1 ? '1 request waits' : `${waitingCount} requests wait`;
  const text = `${waiting} already; ask again later, or raise the parameter 'max_waiting' of the model's config`;
  throw new SchedulerRefusal('queue-full', text);
}

export function isToHoldBack(
  request: RequestState,
  running: readonly RequestState[],
  ledger: KvLedger,
): boolean {
  if (isHeldBack(request)) return true;
  if (!running.some((other) => remainingCount(other) > 1)) return false;
  const { adapter, tokens } = request;
  const { length } = ledger.probe(adapter, tokens, tokens.length - 1);
  return findLeader(request, running, length);
}

/** How many more cells must be available before the request may begin beside `others` that will need `reserved` cells. */
export function missingCells(
  { adapter, tokens }: RequestState,
  { others, reserved, ledger }: { others: number; reserved: number; ledger: KvLedger },
): number {
  const { length, cachedLength } = ledger.probe(adapter, tokens, tokens.length - 1);
  const headroom = others === 0 ? 0 : 1 + HEADROOM_STEPS * others;
  // What it would share of the kept cells is not available to anyone any more.
  return tokens.length - length + headroom + reserved - (ledger.cellsAvailable - cachedLength);
}
