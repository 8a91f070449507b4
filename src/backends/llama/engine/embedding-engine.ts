// Turns texts into vectors, or pairs into relevance scores, many in one batch. Each input must fit into one batch whole,
// since pooling looks at all of its tokens at once. One per host, beside or in place of the generating engine.

import { StatusError, unavailable } from '../../../domain/status.ts';
import type { LlamaContext } from '../library/context.ts';

export interface EmbeddingOptions {
  readonly context: LlamaContext;
  readonly batchTokensMax: number;
  readonly sequencesMax: number;
  readonly waitingMax: number;
  /** Floats per input. */
  readonly outputLength: number;
}

interface Waiting {
  readonly tokens: readonly number[];
  isWanted(): boolean;
  resolve(output: Float32Array): void;
  reject(error: StatusError): void;
}

export class EmbeddingEngine {
  readonly #options: EmbeddingOptions;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: EmbeddingOptions) {
    this.#options = options;
  }

  get batchTokensMax(): number {
    return this.#options.batchTokensMax;
  }

  /** One output per input, in their order. What is no longer wanted when its turn comes is not computed. */
  compute(inputs: readonly (readonly number[])[], isWanted: () => boolean): Promise<Float32Array[]> {
    const { batchTokensMax, waitingMax } = this.#options;
    for (const tokens of inputs) {
      if (tokens.length === 0) throw new StatusError('INVALID_ARG', 'an input to embed has no tokens');
      if (tokens.length > batchTokensMax) {
        throw new StatusError(
          'INVALID_ARG',
          `an input to embed has ${tokens.length} tokens; this model takes at most ${batchTokensMax}`,
        );
      }
    }
    if (this.#isClosed) throw unavailable('the model is being unloaded');
    // A request with many inputs is taken when it would be the first to wait, however many it has.
    if (this.#waiting.length > 0 && this.#waiting.length + inputs.length > waitingMax) {
      throw unavailable(
        `${this.#waiting.length} inputs wait already; ask again later, or raise the parameter 'max_waiting' of the model's config`,
      );
    }
    const outputs = inputs.map(
      (tokens) =>
        new Promise<Float32Array>((resolve, reject) => {
          this.#waiting.push({ tokens, isWanted, resolve, reject });
        }),
    );
    this.#running ??= this.#run();
    return Promise.all(outputs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(unavailable('the model is being unloaded'));
    await this.#running;
    this.#options.context.free();
  }

  async #run(): Promise<void> {
    for (;;) {
      this.#dropUnwanted();
      if (this.#waiting.length === 0) break;
      const batch = this.#takeBatch();
      try {
        const outputs = await this.#decode(batch);
        for (const [i, { resolve }] of batch.entries()) resolve(outputs[i]!);
      } catch (thrown) {
        for (const { reject } of batch) reject(StatusError.from(thrown));
      }
    }
    this.#running = undefined;
  }

  #dropUnwanted(): void {
    const unwanted = this.#waiting.filter(({ isWanted }) => !isWanted());
    if (unwanted.length === 0) return;
    this.#waiting = this.#waiting.filter((waiting) => !unwanted.includes(waiting));
    for (const { reject } of unwanted) reject(new StatusError('CANCELLED', 'Request was cancelled'));
  }

  #takeBatch(): Waiting[] {
    const { batchTokensMax, sequencesMax } = this.#options;
    let rows = 0;
    let count = 0;
    for (const { tokens } of this.#waiting) {
      rows += tokens.length;
      if (rows > batchTokensMax || count === sequencesMax) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #decode(batch: readonly Waiting[]): Promise<Float32Array[]> {
    const { context, outputLength } = this.#options;
    context.clearCells();
    context.beginBatch();
    batch.forEach(({ tokens }, sequence) => {
      tokens.forEach((token, position) => {
        context.addRow(token, position, sequence, true);
      });
    });
    const code = await context.decode();
    if (code !== 0) throw new StatusError('INTERNAL', `libllama could not embed a batch (code ${code})`);
    context.finishCompute();
    return batch.map((_, sequence) => {
      const output = context.embeddingOfSequence(sequence, outputLength);
      if (output === undefined) throw new StatusError('INTERNAL', 'libllama gave no embedding');
      return Float32Array.from(output);
    });
  }
}
