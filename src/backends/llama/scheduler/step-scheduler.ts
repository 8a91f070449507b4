// Decides, step by step, what the LLM engine computes: schedule → (the engine executes the plan) → update. It has no clock,
// no library and no process; the engine (backends/llama/engine) is its only caller. Requests join and leave at every
// step, share cells through KvLedger, and are preempted, the most junior first, when the cells run out.
import { checkAcceptable, isToHoldBack, missingCells } from './admission.ts';
import { forgetPart } from './context-shift.ts';
import { KvLedger } from './kv-ledger.ts';
import { areDecodes, countKept, makeRow, proposalsMax } from './plan-row.ts';
import { insertBySeniority, type RequestState, remainingCount, removeFrom } from './request-state.ts';
import { shareOut } from './share-out.ts';
import { StepCounts } from './step-counts.ts';
import type {
  Admission,
  MemoryOp,
  NewRequest,
  PlanRow,
  SchedulerLimits,
  SchedulerStats,
  StepPlan,
  StepResult,
} from './step-plan.ts';
import { Turns } from './turns.ts';

const NO_PROPOSALS: ReadonlyMap<number, readonly number[]> = new Map();
const NO_TOKENS: readonly number[] = [];

/** What happens to requests while a plan is made. */
interface PlanNotes {
  readonly preempted: number[];
  readonly admitted: Admission[];
  readonly stuck: number[];
}

export class StepScheduler {
  readonly #limits: SchedulerLimits;
  readonly #runningMax: number;
  readonly #ledger: KvLedger;
  readonly #requests = new Map<number, RequestState>();
  /** Both in order of seniority. */
  readonly #waiting: RequestState[] = [];
  readonly #running: RequestState[] = [];
  readonly #cancelled = new Set<RequestState>();
  readonly #turns = new Turns();
  /** The plan that is made leaves prompts for the next one. */
  #hasPutOff = false;
  #planUnderWay: StepPlan | undefined;
  #rowsUnderWay = 0;
  #arrivalCount = 0;
  readonly #counts = new StepCounts();

  constructor(limits: SchedulerLimits) {
    this.#limits = limits;
    // Every running request can decode in every step, so each needs a row and a sequence.
    this.#runningMax = Math.min(limits.runningMax, limits.sequenceCount, limits.stepTokensMax);
    this.#ledger = new KvLedger(limits);
  }

  get stats(): SchedulerStats {
    return {
      running: this.#running.length,
      waiting: this.#waiting.length,
      held: this.#waiting.reduce((sum, { leader }) => sum + (leader === undefined ? 0 : 1), 0),
      cellsUsed: this.#ledger.cellsUsed + this.#rowsUnderWay,
      cellsCached: this.#ledger.cellsCached,
      sequencesUsed: this.#ledger.sequencesUsed,
      sequencesKept: this.#ledger.sequencesKept,
      cellsEvicted: this.#ledger.cellsEvicted,
      ...this.#counts,
    };
  }

  /** Throws a SchedulerRefusal when it does not take the request. */
  add({ id, prompt, priority, adapter, maxTokens }: NewRequest): void {
    if (prompt.length === 0 || this.#requests.has(id)) {
      throw new Error(`request ${id} ${prompt.length === 0 ? 'has no prompt' : 'is there already'}`);
    }
    checkAcceptable(prompt.length, this.#waiting.length, this.#limits);
    const request: RequestState = {
      ...{ id, priority, adapter, maxTokens, promptLength: prompt.length, tokens: Array.from(prompt) },
      ...{ arrival: this.#arrivalCount++, sequence: undefined, replayLength: 0, preemptionCount: 0 },
      ...{ isCancelled: false, leader: undefined, sharedLength: 0, holdCount: 0 },
    };
    this.#requests.set(id, request);
    insertBySeniority(this.#waiting, request);
  }

  /** Of a prompt; changes nothing. */
  reusableTokens(adapter: number, prompt: readonly number[]): number {
    return this.#ledger.probe(adapter, prompt, prompt.length - 1).length;
  }

  /** The request is in no later plan; what it has in the step under way is dropped by `update`. */
  cancel(id: number): void {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    request.isCancelled = true;
    if (request.sequence !== undefined) this.#cancelled.add(request);
    else this.#leave(request);
  }

  /** The next step will most likely be one without decodes, so that proposals are of no use. */
  get isPromptsTurn(): boolean {
    return this.#hasPutOff;
  }

  /**
   * The next step, or undefined when there is nothing to do. Each plan must be followed by `update` or `abandon`.
   * `sharedRowsMax` bounds a step in which somebody decodes; it must have room for every decode.
   */
  schedule(
    proposals: ReadonlyMap<number, readonly number[]> = NO_PROPOSALS,
    sharedRowsMax = Number.POSITIVE_INFINITY,
  ): StepPlan | undefined {
    if (this.#planUnderWay !== undefined) throw new Error('a step is under way');
    for (const request of this.#cancelled) this.#leave(request);
    const notes: PlanNotes = { preempted: [], admitted: [], stuck: [] };
    let rows = proposals.size === 0 ? this.#decodeAll() : [];
    while (rows.length === 0 && this.#requests.size > 0) {
      this.#admit(notes);
      rows = this.#fill(notes, proposals, sharedRowsMax);
    }
    if (rows.length === 0 && notes.stuck.length === 0) return undefined;
    const adapter = rows.length === 0 ? 0 : this.#requests.get(rows[0]!.requestId)!.adapter;
    this.#turns.note(adapter, this.#hasPutOff);
    const plan = { memory: this.#ledger.takeOps(), adapter, rows, ...notes };
    this.#rowsUnderWay = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
    this.#planUnderWay = plan;
    return plan;
  }

  /** Takes in what the engine has computed; rows without outputs need no result, nor do cancelled requests. */
  update(plan: StepPlan, results: ReadonlyMap<number, StepResult>): void {
    this.#endStep(plan);
    for (const row of plan.rows) {
      const request = this.#requests.get(row.requestId)!;
      this.#takeIn(row, request, results.get(row.requestId));
    }
  }

  /** The step has failed: its requests have left, and whatever it put into the cache will be removed. */
  abandon(plan: StepPlan): void {
    this.#endStep(plan);
    for (const { requestId, firstPosition } of plan.rows) {
      const request = this.#requests.get(requestId)!;
      this.#ledger.cut(request.sequence!, firstPosition);
      this.#leave(request);
    }
  }

  /** Those of the last update, to be executed now; the next plan is not burdened with them then. */
  takeOps(): readonly MemoryOp[] {
    if (this.#planUnderWay !== undefined) throw new Error('a step is under way');
    return this.#ledger.takeOps();
  }

  /** Gives up all kept prefixes; their ops come with the next plan or `takeOps`. */
  clearCache(): void {
    this.#ledger.dropKept();
  }

  #endStep(plan: StepPlan): void {
    if (plan !== this.#planUnderWay) throw new Error('this is not the step under way');
    this.#planUnderWay = undefined;
    this.#rowsUnderWay = 0;
  }

  #takeIn(row: PlanRow, request: RequestState, result?: StepResult): void {
    const { firstPosition, outputs } = row;
    const isLast = request.isCancelled || result?.isFinished === true;
    const accepted = result?.tokens ?? NO_TOKENS;
    const rowCount = row.tokens.length;
    const keptCount = countKept(row, accepted, isLast);
    const sequence = request.sequence!;
    if (keptCount < rowCount) this.#ledger.cut(sequence, firstPosition + keptCount);
    for (const token of accepted) request.tokens.push(token);
    this.#ledger.append(sequence, request.tokens, keptCount);
    this.#counts.takeIn(request, { rowCount, keptCount, firstPosition, outputs });
    if (isLast) this.#leave(request);
    else if (accepted.length > 0 && this.#isFull(request)) this.#shift(request);
  }

  /** Ends a request: finished, cancelled, stuck or failed. */
  #leave(request: RequestState): void {
    this.#requests.delete(request.id);
    this.#cancelled.delete(request);
    if (request.sequence === undefined) removeFrom(this.#waiting, request);
    else this.#stop(request, true);
  }

  /** Takes a running request off its sequence. */
  #stop(request: RequestState, isOver: boolean): void {
    removeFrom(this.#running, request);
    this.#ledger.retire(request.sequence!, request, isOver);
    request.sequence = undefined;
  }

  #isFull({ tokens }: RequestState): boolean {
    return this.#limits.isContextShift && tokens.length >= this.#limits.contextLength;
  }

  /** Forgets a part of the text; the rest begins again, before whoever came later. */
  #shift(request: RequestState): void {
    this.#stop(request, false);
    forgetPart(request, this.#limits.contextLength);
    request.preemptionCount++;
    this.#counts.contextShifts++;
    insertBySeniority(this.#waiting, request);
  }

  #preempt(request: RequestState, notes: PlanNotes): void {
    this.#stop(request, false);
    request.preemptionCount++;
    this.#counts.preemptions++;
    insertBySeniority(this.#waiting, request);
    notes.preempted.push(request.id);
  }

  #admit(notes: PlanNotes): void {
    if (this.#waiting.length === 0) return;
    let reserved = this.#running.reduce((sum, request) => sum + remainingCount(request), 0);
    let heldCount = 0;
    // Those who hold back have a place: who comes after them may not take it.
    for (let i = 0; i < this.#waiting.length && this.#running.length + heldCount < this.#runningMax; ) {
      const request = this.#waiting[i]!;
      if (this.#limits.isPrefixReuse && isToHoldBack(request, this.#running, this.#ledger)) {
        heldCount++;
        i++;
        continue;
      }
      const missing = missingCells(request, { others: this.#running.length, reserved, ledger: this.#ledger });
      if (missing <= 0) {
        this.#begin(request, notes);
        reserved += remainingCount(request);
      } else if (this.#running.length === 0) {
        this.#leave(request);
        notes.stuck.push(request.id);
      } else return;
    }
  }

  #begin(request: RequestState, notes: PlanNotes): void {
    const { id, adapter, tokens } = request;
    removeFrom(this.#waiting, request);
    // One token at least is computed: its logits are what the next one is sampled from.
    request.sequence = this.#ledger.open(adapter, tokens, tokens.length - 1);
    request.replayLength = tokens.length;
    insertBySeniority(this.#running, request);
    const reusedTokens = request.sequence.computed;
    const isResumed = request.preemptionCount > 0;
    if (!isResumed) {
      this.#counts.promptTokensReused += reusedTokens;
      this.#ledger.noteReuse(adapter, tokens, reusedTokens);
    }
    notes.admitted.push({ id, reusedTokens, isResumed, sequence: request.sequence.id });
  }

  /** The rows of the adapter whose turn it is; none only when the last running request is stuck. */
  #fill(
    notes: PlanNotes,
    proposals: ReadonlyMap<number, readonly number[]>,
    sharedRowsMax: number,
  ): PlanRow[] {
    for (const adapter of this.#turns.order(this.#running.map(({ adapter }) => adapter))) {
      const members = this.#makeRoom(adapter, notes);
      if (members.length > 0) {
        const rows = this.#compose(members, proposals, sharedRowsMax);
        if (rows.length > 0) return rows;
      }
    }
    return [];
  }

  /** The running requests of an adapter, when there are cells for each decode and for one token of the most senior. */
  #makeRoom(adapter: number, notes: PlanNotes): RequestState[] {
    for (const request of this.#running) {
      const { sequence, tokens } = request;
      if (request.adapter !== adapter || remainingCount(request) === 1) continue;
      const shared = this.#ledger.share(sequence!, tokens, tokens.length - 1);
      if (request.preemptionCount === 0) this.#counts.promptTokensReused += shared;
    }
    let isSettled = false;
    for (;;) {
      const members = this.#running.filter((request) => request.adapter === adapter);
      const isNeeded = (request: RequestState) =>
        remainingCount(request) === 1 || request === this.#running[0];
      const needed = members.reduce((sum, request) => sum + (isNeeded(request) ? 1 : 0), 0);
      if (needed <= this.#ledger.cellsAvailable) return members;
      if (!isSettled) {
        for (const { sequence, tokens } of this.#running) this.#ledger.settle(sequence!, tokens);
        isSettled = true;
      } else if (this.#running.length > 1) this.#preempt(this.#running.at(-1)!, notes);
      else {
        const [last] = members;
        this.#leave(last!);
        notes.stuck.push(last!.id);
        return [];
      }
    }
  }

  /** Every text goes on by one token and nobody waits: most steps. What `#fill` would come to, with nothing to decide. */
  #decodeAll(): PlanRow[] {
    const running = this.#running;
    if (this.#waiting.length > 0 || running.length > this.#ledger.cellsAvailable) return [];
    if (!areDecodes(running)) return [];
    this.#hasPutOff = false;
    this.#ledger.makeFree(running.length);
    return running.map((request) => makeRow(request, 1, NO_TOKENS));
  }

  #compose(
    members: readonly RequestState[],
    proposals: ReadonlyMap<number, readonly number[]>,
    sharedRowsMax: number,
  ): PlanRow[] {
    const { stepTokensMax, prefillChunkMax, apartRowsMin } = this.#limits;
    const isAnyDecoding = this.#running.some((request) => remainingCount(request) === 1);
    const rowsMax = isAnyDecoding ? Math.min(stepTokensMax, sharedRowsMax) : stepTokensMax;
    const { counts, hasPutOff } = shareOut(
      members.map((request) => ({
        remaining: remainingCount(request),
        proposals: Math.min(
          proposals.get(request.id)?.length ?? 0,
          proposalsMax(request, this.#limits.contextLength),
        ),
      })),
      {
        rows: Math.min(rowsMax, this.#ledger.cellsAvailable),
        prefillChunkMax,
        isAnyDecoding,
        apartRowsMin,
        isPromptsTurn: this.#turns.isOfPrompts(members[0]!.adapter),
      },
    );
    this.#hasPutOff = hasPutOff;
    this.#ledger.makeFree(counts.reduce((sum, count) => sum + count, 0));
    const rows: PlanRow[] = [];
    for (const [i, request] of members.entries()) {
      const count = counts[i]!;
      if (count > 0) rows.push(makeRow(request, count, proposals.get(request.id) ?? NO_TOKENS));
    }
    return rows;
  }
}
