// Whether a waiting request should hold back because a running one is just computing the prefix that both share: pure.
// Without this, requests with one system prompt that arrive together would all compute it. Used by StepScheduler.
import { commonLength } from './prefix-tree.ts';
import { type RequestState, remainingCount } from './request-state.ts';

/** Fewer tokens than this are computed twice: waiting for them would cost more. */
const SHARED_TOKENS_MIN = 16;
/** A leader may go before it is done; after so many of them a request goes alone, so that it cannot wait for ever. */
const LEADERS_MAX = 4;

/** Sets the leader of the request, if there is one; `cachedLength` tokens of it are in the cache already. */
export function findLeader(
  request: RequestState,
  running: readonly RequestState[],
  cachedLength: number,
): boolean {
  const { tokens, adapter, priority } = request;
  const end = tokens.length - 1;
  if (request.holdCount >= LEADERS_MAX || end < cachedLength + SHARED_TOKENS_MIN) return false;
  for (const other of running) {
    // A leader of lower priority may itself be kept waiting by others.
    if (other.adapter !== adapter || other.isCancelled || other.priority > priority) continue;
    if (remainingCount(other) <= 1 || other.tokens.length < cachedLength + SHARED_TOKENS_MIN) continue;
    const last = cachedLength + SHARED_TOKENS_MIN - 1;
    if (other.tokens[last] !== tokens[last]) continue;
    const sharedLength = commonLength(other.tokens, tokens, { begin: 0, end });
    if (sharedLength < cachedLength + SHARED_TOKENS_MIN) continue;
    request.leader = other;
    request.sharedLength = sharedLength;
    request.holdCount++;
    return true;
  }
  return false;
}

/** Whether the request still waits for its leader; when it does not, it has none any more. */
export function isHeldBack(request: RequestState): boolean {
  const { leader } = request;
  if (leader === undefined) return false;
  const { sequence } = leader;
  if (!leader.isCancelled && sequence !== undefined && sequence.computed < request.sharedLength) return true;
  request.leader = undefined;
  return false;
}
