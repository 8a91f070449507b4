// Triton's repeat test backend: a decoupled model that sends one response per element of IN, each after its DELAY
// in milliseconds, and holds its instance for WAIT milliseconds. Responses may go on after that.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Backend,
  type BackendInstance,
  BY_SENDER,
  type ExecuteBatch,
  type ExecuteReply,
  type ExecuteRequest,
  type LoadContext,
  type ResponseSender,
} from '../../backend/sdk.ts';
import { invalidArgument, StatusError } from '../../domain/status.ts';
import { shapeText } from '../../domain/tensor.ts';

/** Index of each tensor in the config. */
interface TensorIndexes {
  readonly in: number;
  readonly delay: number;
  readonly wait: number;
  readonly out: number;
  readonly idx: number;
}

export const repeatBackend: Backend = {
  name: 'repeat',
  async load({ config }: LoadContext) {
    if (config.model_transaction_policy?.decoupled !== true) {
      throw invalidArgument('repeat backend requires a decoupled model_transaction_policy');
    }
    const input = (name: string) => config.input.findIndex((tensor) => tensor.name === name);
    const output = (name: string) => config.output.findIndex((tensor) => tensor.name === name);
    const indexes: TensorIndexes = {
      in: input('IN'),
      delay: input('DELAY'),
      wait: input('WAIT'),
      out: output('OUT'),
      idx: output('IDX'),
    };
    if (Object.values(indexes).includes(-1)) {
      throw invalidArgument('repeat backend expects inputs IN, DELAY and WAIT and outputs OUT and IDX');
    }
    return { config, start: async () => new RepeatInstance(indexes) };
  },
};

class RepeatInstance implements BackendInstance {
  readonly #indexes: TensorIndexes;

  constructor(indexes: TensorIndexes) {
    this.#indexes = indexes;
  }

  async execute(batch: ExecuteBatch, senderOf: (request: number) => ResponseSender): Promise<ExecuteReply> {
    const startMs = performance.now();
    let waitMs = 0;
    batch.requests.forEach((request, r) => {
      const sender = senderOf(r);
      try {
        waitMs = Math.max(waitMs, this.#wordsOf(batch, request, this.#indexes.wait)[0] ?? 0);
        const values = this.#wordsOf(batch, request, this.#indexes.in);
        const delays = this.#wordsOf(batch, request, this.#indexes.delay);
        if (values.length !== delays.length) throw mismatch(values.length, delays.length);
        void this.#repeat(values, delays, sender);
      } catch (thrown) {
        sender.send(StatusError.from(thrown), true);
      }
    });
    if (waitMs > 0) await sleep(waitMs);
    return {
      results: batch.requests.map(() => BY_SENDER),
      computeInputNs: 0,
      computeInferNs: (performance.now() - startMs) * 1e6,
      computeOutputNs: 0,
    };
  }

  async #repeat(values: Uint32Array, delays: Uint32Array, sender: ResponseSender): Promise<void> {
    for (let i = 0; i < values.length && !sender.isCancelled; i++) {
      if (delays[i]! > 0) await sleep(delays[i]);
      await sender.whenRoom();
      sender.send(
        [
          { index: this.#indexes.out, shape: [1], data: wordBytes(values[i]!) },
          { index: this.#indexes.idx, shape: [1], data: wordBytes(i) },
        ],
        false,
      );
    }
    sender.finish();
  }

  /** The elements of an input of 32-bit words, signed or not: they are only copied or small. */
  #wordsOf(batch: ExecuteBatch, request: ExecuteRequest, index: number): Uint32Array {
    const input = request.inputs.find((candidate) => candidate.index === index);
    if (input === undefined) throw invalidArgument('repeat backend expects IN, DELAY and WAIT');
    const bytes = Uint8Array.from(batch.payload.subarray(input.offset, input.offset + input.byteLength));
    return new Uint32Array(bytes.buffer);
  }

  /** Senders are told themselves. */
  cancel(): void {}

  close(): void {}
}

function mismatch(valueCount: number, delayCount: number): StatusError {
  const shapes = `${shapeText([valueCount])} and ${shapeText([delayCount])}`;
  return invalidArgument(`expected IN and DELAY shape to match, got ${shapes}`);
}

function wordBytes(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
