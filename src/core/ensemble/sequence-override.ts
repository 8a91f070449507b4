// A step's response may move the steps after it to another sequence, by parameters of Triton's names. Pure; used by
// ensemble-run.ts.

import { type Parameters, SEQUENCE_END, SEQUENCE_START } from '../../domain/request.ts';
import type { HeldTensor, SequenceOverride } from './pass.ts';

/** Undefined when the response says nothing of it. */
export function sequenceOf(parameters: Parameters | undefined): SequenceOverride | undefined {
  if (parameters === undefined) return undefined;
  const id = parameters.get('sequence_id');
  const isStart = parameters.get('sequence_start');
  const isEnd = parameters.get('sequence_end');
  if (id === undefined && isStart === undefined && isEnd === undefined) return undefined;
  return {
    correlationId: typeof id === 'string' || typeof id === 'bigint' ? id : 0n,
    sequenceFlags: (isStart === true ? SEQUENCE_START : 0) | (isEnd === true ? SEQUENCE_END : 0),
  };
}

/** What a step with these tensors is told in place of the request's own; of several the first counts. */
export function stepSequenceOf(tensors: readonly HeldTensor[]): SequenceOverride | undefined {
  return tensors.find(({ sequence }) => sequence !== undefined)?.sequence;
}
