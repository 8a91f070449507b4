// The batch of one step: rows of the plan into libllama's batch, memory ops before it, tokens out of it. Knows libllama's
// ids of the sequences and where each token is chosen; the engine knows whose they are.

import type { StatusError } from '../../../domain/status.ts';
import type { LlamaContext } from '../library/context.ts';
import type { MemoryOp, PlanRow, StepPlan, StepResult } from '../scheduler/step-plan.ts';
import type { Choice } from './choice.ts';
import type { SamplerPool } from './sampler-pool.ts';
import { SequenceMap } from './sequence-map.ts';

/** Of the first token of a plan's row that asked for an output. */
interface FirstOutput {
  readonly output: number;
  readonly batchRow: number;
}

const REPEATS_UNTIL_FAST = 2;

export class StepBatch {
  readonly #context: LlamaContext;
  readonly #adapters: readonly bigint[];
  readonly #sequences: SequenceMap;
  readonly #pool: SamplerPool | undefined;
  #outputs: readonly FirstOutput[] = [];
  /** The sequences of the last step, in their order, where each had one row; else empty. */
  #shape: readonly number[] = [];
  #repeatCount = 0;

  constructor(
    context: LlamaContext,
    options: {
      readonly sequenceCount: number;
      readonly isDeviceSampling: boolean;
      readonly adapters: readonly bigint[];
      readonly pool: SamplerPool | undefined;
    },
  ) {
    this.#context = context;
    this.#adapters = options.adapters;
    this.#pool = options.pool;
    this.#sequences = new SequenceMap(options.sequenceCount, options.isDeviceSampling);
  }

  /** `choiceOf`: undefined for a request that was cancelled as it was admitted. */
  applyMemory(plan: StepPlan, choiceOf: (id: number) => Choice | undefined): void {
    const { memory, adapter, admitted } = plan;
    const apply = (op: MemoryOp) => {
      if (op.kind === 'remove') this.#context.removeCells(op.sequence, op.begin, op.end);
      else this.#context.shareCells(op.from, op.to, op.begin, op.end);
    };
    for (const { id, sequence } of admitted) {
      this.#sequences.begin(sequence, choiceOf(id)?.isDeviceChosen ?? false, apply);
    }
    for (const op of memory) apply(this.#sequences.translate(op));
    this.#context.useAdapter(adapter === 0 ? undefined : this.#adapters[adapter - 1]);
  }

  /** libllama draws a graph for a step of another shape, and CUDA records it when it comes again. */
  get isRepeated(): boolean {
    return this.#repeatCount >= REPEATS_UNTIL_FAST;
  }

  fill({ rows }: StepPlan): void {
    const context = this.#context;
    if (context.hasDevice) this.#noteShape(rows);
    context.beginBatch();
    this.#outputs = rows.map(({ sequence, tokens, firstPosition, outputs }) => {
      const first = outputs === 'all' ? 0 : outputs === 'last' ? tokens.length - 1 : tokens.length;
      const batchRow = context.rowCount + first;
      let output = -1;
      for (let i = 0; i < tokens.length; i++) {
        const index = context.addRow(tokens[i]!, firstPosition + i, this.#sequences.of(sequence), i >= first);
        if (i === first) output = index;
      }
      return { output, batchRow };
    });
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

  #noteShape(rows: readonly PlanRow[]): void {
    const isPlain = rows.every(({ tokens }) => tokens.length === 1);
    const shape = isPlain ? rows.map(({ sequence }) => this.#sequences.of(sequence)) : [];
    const isSame =
      isPlain && shape.length === this.#shape.length && shape.every((id, i) => id === this.#shape[i]);
    this.#repeatCount = isSame ? this.#repeatCount + 1 : 0;
    this.#shape = shape;
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
