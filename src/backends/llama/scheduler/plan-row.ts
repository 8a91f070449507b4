// One request's part of a step: which of its tokens are computed, where, which logits are wanted, and what came of it. Pure;
// used by StepScheduler.
import { type RequestState, remainingCount } from './request-state.ts';
import type { PlanRow } from './step-plan.ts';

/** Each goes on by one token, and all with the same adapter. */
export function areDecodes(requests: readonly RequestState[]): boolean {
  return requests.every(
    (request) => remainingCount(request) === 1 && request.adapter === requests[0]!.adapter,
  );
}

/** Proposals beyond these could never be used. */
export function proposalsMax(
  { tokens, promptLength, maxTokens }: RequestState,
  contextLength: number,
): number {
  const generated = tokens.length - promptLength;
  return Math.max(0, Math.min(maxTokens - generated, contextLength - tokens.length) - 1);
}

/** How many rows are right: the first is a known token, each further one only if it was accepted. Throws where that cannot be. */
export function countKept(
  { requestId, tokens, outputs }: PlanRow,
  accepted: readonly number[],
  isLast: boolean,
): number {
  if (accepted.length > (outputs === 'none' ? 0 : outputs === 'last' ? 1 : tokens.length)) {
    throw new Error(`${accepted.length} new tokens for ${tokens.length} rows of request ${requestId}`);
  }
  if (accepted.length === 0 && outputs !== 'none' && !isLast) {
    throw new Error(`no new token for request ${requestId}`);
  }
  if (outputs !== 'all') return tokens.length;
  const keptCount = Math.max(1, accepted.length);
  for (let i = 1; i < keptCount; i++) {
    if (accepted[i - 1] !== tokens[i]) throw new Error(`request ${requestId} accepts what was not proposed`);
  }
  return keptCount;
}

/** `count` rows: those of the known tokens that come next, or the last known one and proposals after it. */
export function makeRow(request: RequestState, count: number, proposed: readonly number[]): PlanRow {
  const { id, tokens } = request;
  const { id: sequence, computed } = request.sequence!;
  const remaining = remainingCount(request);
  if (remaining === 1) {
    const row = { requestId: id, sequence, firstPosition: computed };
    if (count === 1) return { ...row, tokens: [tokens[computed]!], outputs: 'last' };
    return { ...row, tokens: [tokens[computed]!, ...proposed.slice(0, count - 1)], outputs: 'all' };
  }
  const outputs = count === remaining ? 'last' : 'none';
  return {
    requestId: id,
    sequence,
    tokens: tokens.slice(computed, computed + count),
    firstPosition: computed,
    outputs,
  };
}
