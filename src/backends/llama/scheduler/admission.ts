// Whether a waiting request may begin now: it must not compute what another is just computing, and its cells must be there.
// Reads the books and the running requests, and changes neither. Used by StepScheduler.
import { findLeader, isHeldBack } from './find-leader.ts';
import type { KvLedger } from './kv-ledger.ts';
import { type RequestState, remainingCount } from './request-state.ts';

/** Nobody is admitted unless each running request could decode so many more steps: else one would be preempted at once. */
const HEADROOM_STEPS = 8;

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
