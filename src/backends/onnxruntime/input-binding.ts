// Makes the input values of one run straight on the bytes of the batch. Native arrays are made once; a run only
// writes into them. Used by onnx-instance.ts alone.

import { makeBatchInput } from '../../backend/batch-input.ts';
import type { ExecuteBatch, ExecuteInput, ExecuteRequest } from '../../backend/sdk.ts';
import type { BatchInput, ModelConfig } from '../../domain/model-config.ts';
import { internal, type StatusError } from '../../domain/status.ts';
import { elementCountOf } from '../../domain/tensor.ts';
import { elementTypeOfDatatype } from './element-type.ts';
import { addressOfBytes, NativeWords } from './native-memory.ts';
import { check, type OrtLibrary } from './ort-library.ts';
import { parseStrings, type StringSlice } from './string-tensor.ts';
import { type InputEntry, type NativeName, nativeName, type TensorTable } from './tensor-table.ts';

/** More than any operator takes; a shape that is longer is refused. */
export const RANK_MAX = 64;

/** Elements are read with aligned loads of up to 8 bytes. */
const ALIGNMENT_BYTES = 8;

interface GeneratedInput {
  readonly entry: BatchInput;
  readonly targets: readonly NativeName[];
  readonly sourceIndex: number;
}

export class InputBinding {
  readonly names: NativeWords;
  readonly values: NativeWords;
  count = 0;
  readonly #library: OrtLibrary;
  readonly #entries: readonly InputEntry[];
  readonly #generated: readonly GeneratedInput[];
  readonly #isBatching: boolean;
  readonly #memoryInfo: bigint;
  readonly #allocator: bigint;
  readonly #dims = new NativeWords(RANK_MAX);
  readonly #empty = new NativeWords(1);
  /** Strings, generated tensors and the batch's own bytes, kept until the run is over. */
  #held: unknown[] = [];

  constructor(library: OrtLibrary, config: ModelConfig, table: TensorTable) {
    const { api } = library;
    this.#library = library;
    this.#entries = table.inputs;
    this.#isBatching = config.max_batch_size > 0;
    this.#generated = config.batch_input.map((entry) => ({
      entry,
      targets: entry.target_name.map(nativeName),
      sourceIndex: config.input.findIndex((input) => input.name === entry.source_input[0]),
    }));
    const countMax =
      table.inputs.length + this.#generated.reduce((sum, { targets }) => sum + targets.length, 0);
    this.names = new NativeWords(countMax);
    this.values = new NativeWords(countMax);
    const out = new NativeWords(1);
    const deviceAllocator = 0;
    const defaultMemory = 0;
    check(api, api.CreateCpuMemoryInfo(deviceAllocator, defaultMemory, out.address));
    this.#memoryInfo = out.pointer(0);
    check(api, api.GetAllocatorWithDefaultOptions(out.address));
    this.#allocator = out.pointer(0);
  }

  get memoryInfo(): bigint {
    return this.#memoryInfo;
  }

  /** Errors of single requests, by their place in the batch; undefined when all are sound. */
  bind(batch: ExecuteBatch, rowCount: number): (StatusError | undefined)[] | undefined {
    const { requests } = batch;
    const payload = alignedPayload(batch.payload);
    this.#held.push(payload);
    const payloadAddress = addressOfBytes(payload);
    let errors: (StatusError | undefined)[] | undefined;
    const firstInputs = requests[0]!.inputs;
    for (let position = 0; position < firstInputs.length; position++) {
      const first = firstInputs[position]!;
      const entry = this.#entries[first.index];
      if (entry === undefined) throw internal(`input ${first.index} is not in the model`);
      const rank = this.#writeShape(requests, position, { entry, rowCount });
      if (entry.elementBytes === 0) {
        const slices = slicesOf(requests, position);
        const found = this.#bindStrings(entry, { payload, slices, rank });
        if (found !== undefined) errors = mergeErrors(errors, found);
      } else {
        const byteLength = byteLengthOf(requests, position);
        const address = byteLength === 0 ? this.#empty.address : payloadAddress + BigInt(first.offset);
        this.#add(entry, { address, byteLength, rank, elementType: entry.elementType });
      }
    }
    for (const generated of this.#generated) this.#bindGenerated(generated, requests);
    return errors;
  }

  /** A tensor that did not come with the batch. Its bytes are used as they lie; `slices` says where strings are. */
  addTensor(
    entry: InputEntry,
    { shape, data, slices }: { shape: readonly number[]; data: Buffer; slices: readonly StringSlice[] },
  ): void {
    if (shape.length > RANK_MAX) throw internal(`input '${entry.name}' has more than ${RANK_MAX} dimensions`);
    this.#dims.setNumbers(shape);
    if (entry.elementBytes === 0) {
      const errors = this.#bindStrings(entry, { payload: data, slices, rank: shape.length });
      const error = errors?.find((found) => found !== undefined);
      if (error !== undefined) throw error;
      return;
    }
    this.#held.push(data);
    const address = data.length === 0 ? this.#empty.address : addressOfBytes(data);
    const { elementType } = entry;
    this.#add(entry, { address, byteLength: data.length, rank: shape.length, elementType });
  }

  /** After a run, or after a `bind` that threw half-way. */
  release(): void {
    for (let i = 0; i < this.count; i++) this.#library.api.ReleaseValue(this.values.pointer(i));
    this.count = 0;
    this.#held = [];
  }

  close(): void {
    this.#library.api.ReleaseMemoryInfo(this.#memoryInfo);
  }

  #writeShape(
    requests: readonly ExecuteRequest[],
    position: number,
    { entry, rowCount }: { entry: InputEntry; rowCount: number },
  ): number {
    if (entry.isRagged) {
      let elements = 0;
      for (const request of requests) elements += elementCountOf(inputAt(request, requests, position).shape);
      this.#dims.setNumber(0, elements);
      return 1;
    }
    const { shape } = requests[0]!.inputs[position]!;
    if (shape.length > RANK_MAX) throw internal(`input '${entry.name}' has more than ${RANK_MAX} dimensions`);
    this.#dims.setNumbers(shape);
    if (this.#isBatching) this.#dims.setNumber(0, rowCount);
    return shape.length;
  }

  #add(
    name: NativeName,
    tensor: { address: bigint; byteLength: number; rank: number; elementType: number },
  ): void {
    const { api } = this.#library;
    const status = api.CreateTensorWithDataAsOrtValue(
      this.#memoryInfo,
      tensor.address,
      tensor.byteLength,
      this.#dims.address,
      tensor.rank,
      tensor.elementType,
      this.values.addressOf(this.count),
    );
    check(api, status);
    this.names.words[this.count++] = name.address;
  }

  #bindStrings(
    entry: InputEntry,
    source: { payload: Buffer; slices: readonly StringSlice[]; rank: number },
  ): readonly (StatusError | undefined)[] | undefined {
    const { api } = this.#library;
    const { slices } = source;
    const strings = parseStrings(entry.name, source.payload, slices);
    this.#held.push(strings);
    const slot = this.values.addressOf(this.count);
    check(
      api,
      api.CreateTensorAsOrtValue(this.#allocator, this.#dims.address, source.rank, entry.elementType, slot),
    );
    const value = this.values.pointer(this.count);
    this.names.words[this.count++] = entry.address;
    const elementCount = slices.reduce((sum, slice) => sum + slice.elementCount, 0);
    if (elementCount > 0) check(api, api.FillStringTensor(value, strings.pointers.address, elementCount));
    return strings.errors.some((error) => error !== undefined) ? strings.errors : undefined;
  }

  #bindGenerated({ entry, targets, sourceIndex }: GeneratedInput, requests: readonly ExecuteRequest[]): void {
    const shapes = requests.map((request) => {
      const source = request.inputs.find((input) => input.index === sourceIndex);
      if (source === undefined) throw internal(`batch input source '${entry.source_input[0]}' is missing`);
      return source.shape;
    });
    const tensor = makeBatchInput(entry, shapes);
    const { buffer, byteOffset, byteLength } = tensor.data;
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.#held.push(bytes);
    const address = byteLength === 0 ? this.#empty.address : addressOfBytes(bytes);
    this.#dims.setNumbers(tensor.shape);
    for (const target of targets) {
      const elementType = elementTypeOfDatatype(tensor.datatype);
      this.#add(target, { address, byteLength, rank: tensor.shape.length, elementType });
    }
  }
}

/** The same input in another request of the batch: at the same place, or else wherever its index is. */
function inputAt(
  request: ExecuteRequest,
  requests: readonly ExecuteRequest[],
  position: number,
): ExecuteInput {
  const { index } = requests[0]!.inputs[position]!;
  const candidate = request.inputs[position];
  if (candidate !== undefined && candidate.index === index) return candidate;
  const found = request.inputs.find((input) => input.index === index);
  if (found === undefined) throw internal(`requests of one batch differ in their inputs`);
  return found;
}

function slicesOf(requests: readonly ExecuteRequest[], position: number): StringSlice[] {
  return requests.map((request) => {
    const { offset, byteLength, shape } = inputAt(request, requests, position);
    return { offset, byteLength, elementCount: elementCountOf(shape) };
  });
}

function byteLengthOf(requests: readonly ExecuteRequest[], position: number): number {
  let total = 0;
  for (const request of requests) total += inputAt(request, requests, position).byteLength;
  return total;
}

function alignedPayload(payload: Buffer): Buffer {
  if (payload.byteOffset % ALIGNMENT_BYTES === 0) return payload;
  const copy = Buffer.from(new ArrayBuffer(payload.length));
  payload.copy(copy);
  return copy;
}

function mergeErrors(
  known: (StatusError | undefined)[] | undefined,
  found: readonly (StatusError | undefined)[],
): (StatusError | undefined)[] {
  return found.map((error, i) => known?.[i] ?? error);
}
