// What the step scheduler has counted since it began; a part of its stats.

import type { RequestState } from './request-state.ts';
import type { PlanRow } from './step-plan.ts';

export class StepCounts {
  preemptions = 0;
  promptTokensReused = 0;
  promptTokensComputed = 0;
  /** Computed once more after a preemption. */
  tokensRecomputed = 0;
  contextShifts = 0;
  tokensProposed = 0;
  tokensAccepted = 0;

  /** A row that was computed; `keptCount` of its cells stay. */
  takeIn(
    { replayLength, preemptionCount }: RequestState,
    row: { rowCount: number; keptCount: number; firstPosition: number; outputs: PlanRow['outputs'] },
  ): void {
    const prefilled = Math.min(row.firstPosition + row.keptCount, replayLength) - row.firstPosition;
    if (prefilled > 0 && preemptionCount === 0) this.promptTokensComputed += prefilled;
    else if (prefilled > 0) this.tokensRecomputed += prefilled;
    if (row.outputs !== 'all') return;
    this.tokensProposed += row.rowCount - 1;
    this.tokensAccepted += row.keptCount - 1;
  }
}
