// One request's part of a step: which of its tokens are computed, where, and which logits are wanted. Pure; used by
// StepScheduler once the rows of the step are shared out.
import { type RequestState, remainingCount } from './request-state.ts';
import type { PlanRow } from './step-plan.ts';

/** Proposals beyond these could never be used. */
export function proposalsMax(
  { tokens, promptLength, maxTokens }: RequestState,
  contextLength: number,
): number {
  const generated = tokens.length - promptLength;
  return Math.max(0, Math.min(maxTokens - generated, contextLength - tokens.length) - 1);
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
