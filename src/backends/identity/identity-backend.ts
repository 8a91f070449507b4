// Triton's identity test backend: output i is a copy of input i. It needs no file and no library, which makes it
// the fake that the scheduler and fault tests use for a real model. Parameters: execute_delay_ms.

import type {
  Backend,
  BackendInstance,
  ExecuteBatch,
  ExecuteOutput,
  ExecuteReply,
  LoadContext,
} from '../../backend/sdk.ts';
import { invalidArgument, StatusError } from '../../domain/status.ts';

export const identityBackend: Backend = {
  name: 'identity',
  async load(context: LoadContext) {
    const { config } = context;
    if (config.input.length === 0)
      throw invalidArgument('model configuration must contain at least one input');
    if (config.input.length !== config.output.length) {
      throw invalidArgument('model must have the same number of inputs and outputs');
    }
    const delayMs = Number(config.parameters.execute_delay_ms?.string_value ?? '0');
    return { config, start: async () => new IdentityInstance(delayMs, config.output.length) };
  },
};

class IdentityInstance implements BackendInstance {
  readonly #delayMs: number;
  readonly #outputCount: number;
  #wake: (() => void) | undefined;
  #isCancelled = false;

  constructor(delayMs: number, outputCount: number) {
    this.#delayMs = delayMs;
    this.#outputCount = outputCount;
  }

  execute(batch: ExecuteBatch): ExecuteReply | Promise<ExecuteReply> {
    if (this.#delayMs === 0) return copyInputs(batch, this.#outputCount, 0);
    return this.#executeLater(batch);
  }

  async #executeLater(batch: ExecuteBatch): Promise<ExecuteReply> {
    this.#isCancelled = false;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#delayMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
    if (!this.#isCancelled) return copyInputs(batch, this.#outputCount, this.#delayMs * 1e6);
    const cancelled = new StatusError('CANCELLED', '');
    return {
      results: batch.requests.map(() => cancelled),
      computeInputNs: 0,
      computeInferNs: 0,
      computeOutputNs: 0,
    };
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#wake?.();
  }

  close(): void {
    this.cancel();
  }
}

/** Inputs behind the first `outputCount` are controls of a sequence. */
function copyInputs(batch: ExecuteBatch, outputCount: number, computeInferNs: number): ExecuteReply {
  const results: ExecuteOutput[][] = batch.requests.map((request) =>
    request.inputs
      .filter(({ index }) => index < outputCount)
      .filter(
        ({ index }) => request.requestedOutputs.length === 0 || request.requestedOutputs.includes(index),
      )
      .map((input) => ({
        index: input.index,
        shape: input.shape,
        data: batch.payload.subarray(input.offset, input.offset + input.byteLength),
      })),
  );
  return { results, computeInputNs: 0, computeInferNs, computeOutputNs: 0 };
}
