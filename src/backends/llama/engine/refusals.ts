// What a request is told that the scheduler does not take, or cannot go on with. Used by the engine.

import { StatusError, unavailable } from '../../../domain/status.ts';
import type { SchedulerRefusal } from '../scheduler/step-plan.ts';

export function refused(refusal: SchedulerRefusal): StatusError {
  return refusal.reason === 'queue-full'
    ? unavailable(refusal.message)
    : new StatusError('INVALID_ARG', refusal.message);
}

export function stuck(cellCount: number): StatusError {
  return unavailable(
    `the KV cache of ${cellCount} cells is too small to go on; raise kv_cells or lower max_tokens`,
  );
}
