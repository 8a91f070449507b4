// The plain data between the step scheduler and the engine: what a request is to the scheduler, what the engine
// shall do in one step, and what it tells afterwards. Positions and sequence ids are those of libllama's KV cache.

export interface SchedulerLimits {
  /** Cells of the whole KV cache. */
  readonly cellCount: number;
  /** Sequence ids are 0 … sequenceCount-1. */
  readonly sequenceCount: number;
  /** Rows in one decode. */
  readonly stepTokensMax: number;
  /** Rows of one prompt in a step while others decode. */
  readonly prefillChunkMax: number;
  /** So many rows of prompts are not computed together with decodes; the two take turns. */
  readonly apartRowsMin: number;
  readonly runningMax: number;
  readonly waitingMax: number;
  /** Proposals never go beyond it; the caller checks prompts, and ends requests that have reached it unless texts are shifted. */
  readonly contextLength: number;
  /** A text that fills its context forgets a part of it and goes on. */
  readonly isContextShift: boolean;
  readonly isPrefixReuse: boolean;
  /** Cells that may be kept for later requests while nobody needs them. Each slows down every decode on a CPU a little. */
  readonly keptCellsMax: number;
  /** The same while prompts do not begin like earlier ones. */
  readonly keptCellsMin: number;
}

export interface NewRequest {
  /** Unique among the open requests. */
  readonly id: number;
  readonly prompt: ArrayLike<number>;
  /** Lower first. */
  readonly priority: number;
  /** 0 is none. Cells of different adapters are never shared. */
  readonly adapter: number;
  /** Bounds proposals only; the caller ends the request. */
  readonly maxTokens: number;
}

/** As `end` of a memory op: up to the end of the sequence, as libllama has it. */
export const TO_THE_END = -1;

/** `remove` is llama_memory_seq_rm, `copy` is llama_memory_seq_cp; both of [begin, end). */
export type MemoryOp =
  | { readonly kind: 'remove'; readonly sequence: number; readonly begin: number; readonly end: number }
  | {
      readonly kind: 'copy';
      readonly from: number;
      readonly to: number;
      readonly begin: number;
      readonly end: number;
    };

export interface PlanRow {
  readonly requestId: number;
  readonly sequence: number;
  readonly tokens: readonly number[];
  readonly firstPosition: number;
  /** Of which tokens logits are wanted: `last` when all known tokens are in, `all` when proposals follow the first. */
  readonly outputs: 'none' | 'last' | 'all';
}

export interface Admission {
  readonly id: number;
  /** Tokens whose cells were already there. */
  readonly reusedTokens: number;
  /** It ran before and was preempted. */
  readonly isResumed: boolean;
  readonly sequence: number;
}

export interface StepPlan {
  /** In order, before the decode, even when there are no rows. */
  readonly memory: readonly MemoryOp[];
  readonly adapter: number;
  /** Empty only when all there was to do is in `stuck`. */
  readonly rows: readonly PlanRow[];
  readonly preempted: readonly number[];
  readonly admitted: readonly Admission[];
  /** Ended here: the whole cache is too small for their next token. */
  readonly stuck: readonly number[];
}

export interface StepResult {
  /**
   * New tokens: none while the prompt is not complete, one for `last`, and for `all` the accepted proposals and
   * the token after them. A finished request may have fewer.
   */
  readonly tokens: readonly number[];
  readonly isFinished: boolean;
}

export interface SchedulerStats {
  readonly running: number;
  readonly waiting: number;
  /** Waiting requests that hold back until another has computed the prefix they share. */
  readonly held: number;
  /** Occupied cells, as libllama counts them once the last plan is executed. */
  readonly cellsUsed: number;
  /** Of these the cells that only kept prefixes hold; they can be had at once. */
  readonly cellsCached: number;
  readonly sequencesUsed: number;
  readonly sequencesKept: number;
  readonly preemptions: number;
  readonly promptTokensReused: number;
  readonly promptTokensComputed: number;
  /** Computed once more after a preemption. */
  readonly tokensRecomputed: number;
  readonly cellsEvicted: number;
  readonly contextShifts: number;
  readonly tokensProposed: number;
  readonly tokensAccepted: number;
}

export type RefusalReason = 'queue-full' | 'prompt-too-long';

/** Thrown by `add`: the request has not been taken. */
export class SchedulerRefusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
