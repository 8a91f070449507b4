// Which part of a text is forgotten when it has filled its context: the older half of what comes after its beginning. The
// beginning stays, since a chat template and a system prompt are there. Used by StepScheduler, which computes what is left
// anew: cells may be shared with others, so their positions are never changed in place.

import type { RequestState } from './request-state.ts';

/** Of the context: as much of the prompt stays as fits into it. */
const BEGINNING_SHARE = 0.25;

export interface Cut {
  readonly begin: number;
  readonly end: number;
}

export function cutForShift(
  length: number,
  { promptLength, contextLength }: { readonly promptLength: number; readonly contextLength: number },
): Cut {
  const begin = Math.max(0, Math.min(promptLength, Math.floor(contextLength * BEGINNING_SHARE)));
  return { begin, end: begin + Math.ceil((length - begin) / 2) };
}

export function forgetPart(request: RequestState, contextLength: number): void {
  const { tokens, promptLength } = request;
  const { begin, end } = cutForShift(tokens.length, { promptLength, contextLength });
  tokens.splice(begin, end - begin);
  request.promptLength -= end - begin;
}
