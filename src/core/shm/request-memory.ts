// The shared memory of one request: all its ranges, held from the check to the last answer, and the copies from
// and to them. Made by infer-shared.ts.

import type { MemoryRange, RequestRanges } from '../../domain/memory-range.ts';
import type { InferRequest, InferResponse } from '../../domain/request.ts';
import { internal } from '../../domain/status.ts';
import type { OutputTensor, TensorBytes } from '../../domain/tensor.ts';
import type { HeldRange } from './held-range.ts';
import type { SharedMemory } from './shared-memory.ts';

const NO_BYTES: TensorBytes = [];

export class RequestMemory {
  readonly #inputs: ReadonlyMap<number, HeldRange>;
  readonly #outputs: ReadonlyMap<string, HeldRange>;

  /** Throws, and holds nothing, when one of the ranges does not exist. Inputs are checked first, as in Triton. */
  constructor(memory: SharedMemory, ranges: RequestRanges) {
    const inputs = new Map<number, HeldRange>();
    const outputs = new Map<string, HeldRange>();
    this.#inputs = inputs;
    this.#outputs = outputs;
    try {
      holdAll(memory, ranges.inputs, inputs);
      holdAll(memory, ranges.outputs, outputs);
    } catch (thrown) {
      this.release();
      throw thrown;
    }
  }

  /** The request with its inputs read. Synchronous when all of them are small and of this machine's memory. */
  fill(request: InferRequest): InferRequest | Promise<InferRequest> {
    const held = [...this.#inputs];
    if (held.every(([, range]) => range.isInline(range.byteSize))) {
      return withInputs(request, new Map(held.map(([index, range]) => [index, range.read() as TensorBytes])));
    }
    const copies = held.map(async ([index, range]) => [index, await range.read()] as const);
    return Promise.all(copies).then((data) => withInputs(request, new Map(data)));
  }

  /** Writes the outputs that have a range; the response is left without their bytes. Synchronous like `fill`. */
  store(response: InferResponse): InferResponse | Promise<InferResponse> {
    const shared = response.outputs.filter((output) => this.#outputs.has(output.name));
    for (const output of shared) requireRoom(output, this.#outputs.get(output.name)!);
    const outputs = response.outputs.map((output) =>
      this.#outputs.has(output.name) ? { ...output, data: NO_BYTES, byteLength: 0 } : output,
    );
    const stored = { ...response, outputs };
    if (shared.some((output) => !this.#outputs.get(output.name)!.isInline(output.byteLength))) {
      return Promise.all(shared.map(async (output) => this.#write(output))).then(() => stored);
    }
    for (const output of shared) this.#write(output);
    return stored;
  }

  #write(output: OutputTensor): void | Promise<void> {
    if (output.byteLength === 0) return;
    return this.#outputs.get(output.name)!.write(output.data, output.byteLength);
  }

  /** May be called more than once. */
  release(): void {
    for (const range of this.#inputs.values()) range.release();
    for (const range of this.#outputs.values()) range.release();
  }
}

function holdAll<Key>(
  memory: SharedMemory,
  ranges: ReadonlyMap<Key, MemoryRange> | undefined,
  held: Map<Key, HeldRange>,
): void {
  if (ranges === undefined) return;
  for (const [key, range] of ranges) held.set(key, memory.hold(range));
}

function withInputs(request: InferRequest, data: ReadonlyMap<number, TensorBytes>): InferRequest {
  const inputs = request.inputs.map((input, index) => {
    const bytes = data.get(index);
    if (bytes === undefined) return input;
    return { ...input, data: bytes, byteLength: bytes.reduce((sum, piece) => sum + piece.length, 0) };
  });
  return { ...request, inputs };
}

function requireRoom(output: OutputTensor, range: HeldRange): void {
  if (output.byteLength <= range.byteSize) return;
  throw internal(
    `shared memory size specified with the request for output '${output.name}' (${range.byteSize} bytes) should be at least ${output.byteLength} bytes to hold the results`,
  );
}
