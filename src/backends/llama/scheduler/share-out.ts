// How the rows of one step are shared out among the requests of an adapter: pure. Every decode has its row first, so a long
// prompt stalls nobody; then proposals, but never all of what a waiting prompt could use; then prompts, the senior
// first. Used by StepScheduler.

export interface StepMember {
  /** Known tokens without a cell; 1 for a decode. */
  readonly remaining: number;
  /** Proposed tokens that may follow the decode. */
  readonly proposals: number;
}

export interface StepRoom {
  /** Rows of the step that there are cells for. */
  readonly rows: number;
  readonly prefillChunkMax: number;
  /** Whether any request decodes, in this step or in that of another adapter. */
  readonly isAnyDecoding: boolean;
}

/** Rows for each member, in the order given, which is seniority; 0 is none this time. */
export function shareOut(members: readonly StepMember[], room: StepRoom): number[] {
  const counts: number[] = members.map(({ remaining }) => (remaining === 1 ? 1 : 0));
  const decodeCount = counts.reduce((sum, count) => sum + count, 0);
  let left = room.rows - decodeCount;
  if (left < 0) throw new Error(`${decodeCount} decodes in a step of ${room.rows} rows`);

  const isPrefillWaiting = decodeCount < members.length;
  const kept = isPrefillWaiting ? Math.min(left, Math.max(1, room.rows >> 2)) : 0;
  for (let i = 0; i < members.length && left > kept; i++) {
    const { remaining, proposals } = members[i]!;
    if (remaining !== 1) continue;
    const count = Math.min(proposals, left - kept);
    counts[i]! += count;
    left -= count;
  }

  const chunkMax = room.isAnyDecoding ? room.prefillChunkMax : room.rows;
  for (let i = 0; i < members.length && left > 0; i++) {
    const { remaining } = members[i]!;
    if (remaining === 1) continue;
    const count = Math.min(remaining, chunkMax, left);
    counts[i] = count;
    left -= count;
  }
  return counts;
}
