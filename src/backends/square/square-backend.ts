// Triton's square test backend: a decoupled model that answers IN = n with n responses OUT = n. Parameters:
// CUSTOM_INFER_DELAY_NS before each response.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Backend,
  type BackendInstance,
  BY_SENDER,
  type ExecuteBatch,
  type ExecuteReply,
  type LoadContext,
  type ResponseSender,
} from '../../backend/sdk.ts';
import { invalidArgument } from '../../domain/status.ts';

export const squareBackend: Backend = {
  name: 'square',
  async load({ config }: LoadContext) {
    if (config.input.length !== 1 || config.output.length !== 1) {
      throw invalidArgument('square backend expects one input and one output');
    }
    if (config.model_transaction_policy?.decoupled !== true) {
      throw invalidArgument('square backend requires a decoupled model_transaction_policy');
    }
    const delayMs = Number(config.parameters.CUSTOM_INFER_DELAY_NS?.string_value ?? '0') / 1e6;
    return { config, start: async () => new SquareInstance(delayMs) };
  },
};

class SquareInstance implements BackendInstance {
  readonly #delayMs: number;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  execute(batch: ExecuteBatch, senderOf: (request: number) => ResponseSender): ExecuteReply {
    batch.requests.forEach((request, r) => {
      const input = request.inputs[0]!;
      const word = Buffer.from(batch.payload.subarray(input.offset, input.offset + 4));
      void this.#answer(word, senderOf(r));
    });
    return {
      results: batch.requests.map(() => BY_SENDER),
      computeInputNs: 0,
      computeInferNs: 0,
      computeOutputNs: 0,
    };
  }

  async #answer(word: Buffer, sender: ResponseSender): Promise<void> {
    const count = word.length === 4 ? word.readInt32LE() : 0;
    for (let i = 0; i < count && !sender.isCancelled; i++) {
      if (this.#delayMs > 0) await sleep(this.#delayMs);
      await sender.whenRoom();
      sender.send([{ index: 0, shape: [1], data: word }], false);
    }
    sender.finish();
  }

  /** Senders are told themselves. */
  cancel(): void {}

  close(): void {}
}
