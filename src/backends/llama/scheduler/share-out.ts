// How the rows of one step are shared out among the requests of an adapter: pure. Every decode has its row first, so a long
// prompt stalls nobody; then proposals, but never all of what a waiting prompt could use; then prompts, the senior
// first. Where many rows of prompts cost more beside decodes than alone, the two take turns. Used by StepScheduler.

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
  /** So many rows of prompts are not computed together with decodes. */
  readonly apartRowsMin: number;
  /** Of the two that go apart, the prompts are next. */
  readonly isPromptsTurn: boolean;
}

export interface StepShares {
  /** Rows for each member, in the order given, which is seniority; 0 is none this time. */
  readonly counts: readonly number[];
  /** There were rows for prompts, but the decodes have the step to themselves. */
  readonly hasPutOff: boolean;
}

export function shareOut(members: readonly StepMember[], room: StepRoom): StepShares {
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

  const isPrompt = ({ remaining }: StepMember) => remaining > 1;
  let promptRows = 0;
  const chunkMax = room.isAnyDecoding ? room.prefillChunkMax : room.rows;
  for (let i = 0; i < members.length && left > 0; i++) {
    if (!isPrompt(members[i]!)) continue;
    const count = Math.min(members[i]!.remaining, chunkMax, left);
    counts[i] = count;
    left -= count;
    promptRows += count;
  }
  if (decodeCount === 0 || promptRows < room.apartRowsMin) return { counts, hasPutOff: false };
  return {
    counts: counts.map((count, i) => (isPrompt(members[i]!) === room.isPromptsTurn ? count : 0)),
    hasPutOff: !room.isPromptsTurn,
  };
}
