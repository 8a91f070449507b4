// The batch of one step: rows of the plan into libllama's batch, memory ops before it, tokens out of it. Knows libllama's
// ids of the sequences and where each token is chosen; the engine knows whose they are.

import type { LlamaContext } from '../library/context.ts';
import type { MemoryOp, PlanRow, StepPlan, StepResult } from '../scheduler/step-plan.ts';
import type { Choice } from './choice.ts';
import { SequenceMap } from './sequence-map.ts';

/** Of the first token of a plan's row that asked for an output. */
interface FirstOutput {
  readonly output: number;
  readonly batchRow: number;
}

export class StepBatch {
  readonly #context: LlamaContext;
  readonly #adapters: readonly bigint[];
  readonly #sequences: SequenceMap;
  #outputs: readonly FirstOutput[] = [];

  constructor(
    context: LlamaContext,
    options: {
      readonly sequenceCount: number;
      readonly isDeviceSampling: boolean;
      readonly adapters: readonly bigint[];
    },
  ) {
    this.#context = context;
    this.#adapters = options.adapters;
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

  fill({ rows }: StepPlan): void {
    const context = this.#context;
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

  /** The tokens of a row: along its proposals as far as the model agrees with them, and one more. */
  choose(choice: Choice, row: PlanRow, index: number): StepResult {
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
    return { tokens, isFinished: choice.finishReason !== undefined };
  }
}
