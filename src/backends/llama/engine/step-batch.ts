// The batch of one step: rows of the plan into libllama's batch, memory ops before it, tokens out of it. Knows libllama's
// ids of the sequences, in which context their cells are and where each token is chosen; the engine knows whose they are.

import type { StatusError } from '../../../domain/status.ts';
import type { DecodePlace, LlamaContext } from '../library/context.ts';
import {
  type MemoryOp,
  type PlanRow,
  type StepPlan,
  type StepResult,
  TO_THE_END,
} from '../scheduler/step-plan.ts';
import type { Choice } from './choice.ts';
import { RowLayout } from './row-layout.ts';
import type { SamplerPool } from './sampler-pool.ts';
import { SequenceMap } from './sequence-map.ts';
import { SideContext, type SideContextOptions } from './side-context.ts';

/** Of the first token of a plan's row that asked for an output. */
interface FirstOutput {
  readonly output: number;
  readonly batchRow: number;
}

/** Any token will do for a row that nobody reads. */
const PLACE_HOLDER_TOKEN = 0;

export class StepBatch {
  readonly #main: LlamaContext;
  readonly #side: SideContext | undefined;
  /** Of the two, the one that computes the step. */
  #context: LlamaContext;
  readonly #adapters: readonly bigint[];
  readonly #sequences: SequenceMap;
  readonly #pool: SamplerPool | undefined;
  /** On a device; the state of a recurrent model could not be taken back from an empty row. */
  readonly #keepsRows: boolean;
  readonly #layout = new RowLayout();
  readonly #placeHolders: { readonly sequence: number; readonly position: number }[] = [];
  #outputs: readonly FirstOutput[] = [];

  constructor(
    context: LlamaContext,
    options: {
      readonly sequenceCount: number;
      readonly isDeviceSampling: boolean;
      readonly adapters: readonly bigint[];
      readonly pool: SamplerPool | undefined;
      readonly side: SideContextOptions | undefined;
    },
  ) {
    this.#main = context;
    this.#context = context;
    this.#side = options.side === undefined ? undefined : new SideContext(options.side, context);
    this.#keepsRows = context.hasDevice && !context.model.isRecurrent;
    this.#adapters = options.adapters;
    this.#pool = options.pool;
    this.#sequences = new SequenceMap(options.sequenceCount, options.isDeviceSampling);
  }

  /** `choiceOf`: undefined for a request that was cancelled as it was admitted. */
  applyMemory(plan: StepPlan, choiceOf: (id: number) => Choice | undefined): void {
    const { memory, adapter, admitted } = plan;
    for (const { id, sequence } of admitted) {
      this.#sequences.begin(sequence, choiceOf(id)?.isDeviceChosen ?? false, (op) => this.#apply(op));
    }
    this.applyOps(memory);
    for (const context of [this.#main, this.#side?.context]) {
      context?.useAdapter(adapter === 0 ? undefined : this.#adapters[adapter - 1]);
    }
  }

  applyOps(ops: readonly MemoryOp[]): void {
    for (const op of ops) this.#apply(this.#sequences.translate(op));
  }

  #apply(op: MemoryOp): void {
    if (this.#side?.apply(op)) return;
    if (op.kind === 'remove') this.#main.removeCells(op.sequence, op.begin, op.end);
    else this.#main.shareCells(op.from, op.to, op.begin, op.end);
  }

  fill({ rows }: StepPlan): void {
    const isAside = this.#side?.takes(rows) ?? false;
    if (!isAside) for (const { sequence } of rows) this.#side?.moveOut(sequence);
    this.#context = isAside ? this.#side!.context : this.#main;
    this.#context.beginBatch();
    const isPlain = rows.every(({ tokens, outputs }) => tokens.length === 1 && outputs === 'last');
    if (this.#keepsRows && isPlain) {
      this.#fillArranged(rows);
      return;
    }
    this.#layout.forget();
    this.#outputs = rows.map((row) => this.#add(row));
  }

  /** One row for each sequence, where it was in the step before. */
  #fillArranged(rows: readonly PlanRow[]): void {
    const ids = rows.map(({ sequence }) => this.#sequences.of(sequence));
    const indexOf = new Map(ids.map((id, index) => [id, index]));
    const outputs: FirstOutput[] = [];
    for (const id of this.#layout.arrange(ids)) {
      const index = indexOf.get(id);
      if (index === undefined) this.#addPlaceHolder(id);
      else outputs[index] = this.#add(rows[index]!);
    }
    this.#outputs = outputs;
  }

  get rowCount(): number {
    return this.#context.rowCount;
  }

  /** Only a device knows repeated steps. */
  get isRepeated(): boolean {
    return this.#layout.isRepeated;
  }

  decode(place: DecodePlace): Promise<number> {
    return this.#context.decode(place);
  }

  #add({ sequence, tokens, firstPosition, outputs }: PlanRow): FirstOutput {
    const context = this.#context;
    const first = outputs === 'all' ? 0 : outputs === 'last' ? tokens.length - 1 : tokens.length;
    const batchRow = context.rowCount + first;
    let output = -1;
    const id = context === this.#main ? this.#sequences.of(sequence) : this.#side!.of(sequence);
    for (let i = 0; i < tokens.length; i++) {
      const index = context.addRow(tokens[i]!, firstPosition + i, id, i >= first);
      if (i === first) output = index;
    }
    return { output, batchRow };
  }

  /** After whatever is kept of the sequence, so that its cell can be taken away again. */
  #addPlaceHolder(sequence: number): void {
    const position = this.#context.lengthOf(sequence);
    this.#context.addRow(PLACE_HOLDER_TOKEN, position, sequence, true);
    this.#placeHolders.push({ sequence, position });
  }

  #removePlaceHolders(): void {
    for (const { sequence, position } of this.#placeHolders) {
      this.#context.removeCells(sequence, position, TO_THE_END);
    }
    this.#placeHolders.length = 0;
  }

  /**
   * All rows of the plan, each with its result. While the pool chooses for some, the others are done here. A row whose
   * request has left has no choice.
   */
  chooseAll(
    rows: readonly PlanRow[],
    choiceOf: (row: PlanRow) => Choice | undefined,
    onResult: (row: PlanRow, result: StepResult | StatusError) => void,
  ): void {
    this.#removePlaceHolders();
    this.#context.readLogits();
    const pooled: { readonly row: PlanRow; readonly place: number }[] = [];
    const own: number[] = [];
    rows.forEach((row, i) => {
      const sampler = choiceOf(row)?.pooled;
      const isEligible = row.outputs === 'last' && !this.#sequences.hasSampler(row.sequence);
      const place =
        sampler !== undefined && isEligible ? this.#pool?.add(sampler, this.#outputs[i]!.output) : undefined;
      if (place === undefined) own.push(i);
      else pooled.push({ row, place });
    });
    this.#pool?.begin(this.#context.logits);
    try {
      for (const i of own) {
        const choice = choiceOf(rows[i]!);
        if (choice !== undefined) onResult(rows[i]!, this.#choose(choice, rows[i]!, i));
      }
    } finally {
      this.#pool?.finish();
    }
    for (const { row, place } of pooled) {
      // Of several choices of a generation, an earlier one may have failed and taken the others with it.
      const choice = choiceOf(row);
      const token = this.#pool!.tokenOf(place);
      if (choice === undefined) continue;
      onResult(row, typeof token === 'number' ? resultOf(choice, [choice.take(token)]) : token);
    }
  }

  /** The tokens of a row: along its proposals as far as the model agrees with them, and one more. */
  #choose(choice: Choice, row: PlanRow, index: number): StepResult {
    if (row.outputs === 'none') return { tokens: [], isFinished: false };
    const { output, batchRow } = this.#outputs[index]!;
    const isChosen = this.#sequences.hasSampler(row.sequence);
    const proposedCount = row.outputs === 'all' ? row.tokens.length - 1 : 0;
    const tokens: number[] = [];
    for (let i = 0; i <= proposedCount; i++) {
      const token = isChosen
        ? choice.take(this.#context.sampledToken(batchRow + i))
        : choice.next(this.#context.logitsOf(output + i));
      tokens.push(token);
      if (choice.finishReason !== undefined || token !== row.tokens[i + 1]) break;
    }
    return resultOf(choice, tokens);
  }
}

function resultOf(choice: Choice, tokens: readonly number[]): StepResult {
  return { tokens, isFinished: choice.finishReason !== undefined };
}
