// The outputs of one run: which are wanted, where they are written, and how each request gets its rows.
// An output whose size is known beforehand is written into memory of ours that is used again once the answer has
// left; any other is allocated by ONNX Runtime and seen through a view until then. Used by onnx-instance.ts alone.

import type { ExecuteOutput, ExecuteRequest } from '../../backend/sdk.ts';
import type { StatusError } from '../../domain/status.ts';
import { elementCountOf } from '../../domain/tensor.ts';
import { RANK_MAX } from './input-binding.ts';
import { addressOfBytes, allocateBytes, NativeWords, viewBytes } from './native-memory.ts';
import { check, type OrtLibrary } from './ort-library.ts';
import { isRequested, splitOutput, type WholeOutput } from './output-split.ts';
import { frameStrings } from './string-tensor.ts';
import type { OutputEntry, TensorTable } from './tensor-table.ts';

/** Memory for one output, with the value that was last made on it. */
interface Slab {
  readonly memory: Buffer;
  readonly address: bigint;
  rowCount: number;
  value: bigint;
}

/** What must be given back once an answer has left the process. */
export interface HeldOutputs {
  readonly slabs: { readonly outputIndex: number; readonly slab: Slab }[];
  readonly values: bigint[];
}

/** Answers that can be on their way at once before slabs are dropped rather than kept. */
const SLABS_KEPT_MAX = 4;

export class OutputBinding {
  readonly names: NativeWords;
  readonly values: NativeWords;
  count = 0;
  readonly #library: OrtLibrary;
  readonly #table: TensorTable;
  readonly #memoryInfo: bigint;
  readonly #isBatching: boolean;
  /** The first output with the same name: a state may be shown to clients as well. */
  readonly #firstWithName: readonly number[];
  readonly #active: number[] = [];
  readonly #slabs: (Slab | undefined)[] = [];
  readonly #free: Slab[][];
  readonly #dims = new NativeWords(RANK_MAX);
  readonly #out = new NativeWords(1);
  #isClosed = false;

  constructor(library: OrtLibrary, options: { table: TensorTable; memoryInfo: bigint; isBatching: boolean }) {
    this.#library = library;
    this.#table = options.table;
    this.#memoryInfo = options.memoryInfo;
    this.#isBatching = options.isBatching;
    const names = options.table.outputs.map((output) => output.name);
    this.#firstWithName = names.map((name) => names.indexOf(name));
    this.#free = names.map(() => []);
    this.names = new NativeWords(names.length);
    this.values = new NativeWords(names.length);
  }

  bind(requests: readonly ExecuteRequest[], rowCount: number): void {
    const { outputs } = this.#table;
    this.#active.length = 0;
    for (let index = 0; index < outputs.length; index++) {
      if (this.#firstWithName[index] === index && this.#isWanted(requests, index)) this.#active.push(index);
    }
    this.count = this.#active.length;
    for (let i = 0; i < this.count; i++) {
      const index = this.#active[i]!;
      const output = outputs[index]!;
      const slab = output.fixed === undefined ? undefined : this.#takeSlab(index, rowCount);
      this.#slabs[i] = slab;
      this.names.words[i] = output.address;
      this.values.words[i] = slab?.value ?? 0n;
    }
  }

  /** The model's real shapes differ from what it declares: let ONNX Runtime allocate from now on. */
  forgetFixedShapes(): boolean {
    const hadFixed = this.#table.outputs.some((output) => output.fixed !== undefined);
    for (const output of this.#table.outputs) output.fixed = undefined;
    return hadFixed;
  }

  /** After a run that failed: nothing in the values is ours to keep. */
  abandon(): void {
    const held = this.#takeHeld();
    this.giveBack(held);
  }

  read(
    requests: readonly ExecuteRequest[],
    rowCount: number,
  ): { results: (ExecuteOutput[] | StatusError)[]; held: HeldOutputs } {
    let wholes: WholeOutput[];
    try {
      wholes = this.#active.map((index, i) => this.#readWhole(this.#table.outputs[index]!, i, rowCount));
    } catch (error) {
      this.abandon();
      throw error;
    }
    const held = this.#takeHeld();
    const results: (ExecuteOutput[] | StatusError)[] = requests.map(() => []);
    for (let index = 0; index < this.#table.outputs.length; index++) {
      const active = this.#active.indexOf(this.#firstWithName[index]!);
      if (active < 0) continue;
      const entry = this.#table.outputs[index]!;
      const isState = index >= this.#table.configOutputCount;
      splitOutput(
        wholes[active]!,
        { index, entry, isState, isBatching: this.#isBatching },
        { requests, results },
      );
    }
    return { results, held };
  }

  giveBack(held: HeldOutputs): void {
    const { api } = this.#library;
    for (const value of held.values) api.ReleaseValue(value);
    for (const { outputIndex, slab } of held.slabs) {
      const free = this.#free[outputIndex]!;
      if (free.length < SLABS_KEPT_MAX && !this.#isClosed) free.push(slab);
      else api.ReleaseValue(slab.value);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const free of this.#free) {
      for (const slab of free) this.#library.api.ReleaseValue(slab.value);
      free.length = 0;
    }
  }

  #isWanted(requests: readonly ExecuteRequest[], index: number): boolean {
    if (index >= this.#table.configOutputCount) return true;
    // A state of the same name is fed back whether or not the client asked for it.
    if (this.#firstWithName.lastIndexOf(index) >= this.#table.configOutputCount) return true;
    for (const request of requests) if (isRequested(request, index)) return true;
    return false;
  }

  #takeSlab(outputIndex: number, rowCount: number): Slab {
    const { api } = this.#library;
    const output = this.#table.outputs[outputIndex]!;
    const fixed = output.fixed!;
    const byteLength = this.#isBatching ? fixed.byteLength * rowCount : fixed.byteLength;
    let slab = this.#free[outputIndex]!.pop();
    if (slab !== undefined && slab.rowCount === rowCount) return slab;
    if (slab !== undefined) api.ReleaseValue(slab.value);
    if (slab === undefined || slab.memory.length < byteLength) {
      const memory = allocateBytes(byteLength);
      slab = { memory, address: addressOfBytes(memory), rowCount, value: 0n };
    }
    let rank = 0;
    if (this.#isBatching) this.#dims.setNumber(rank++, rowCount);
    for (const dim of fixed.dims) this.#dims.setNumber(rank++, dim);
    const status = api.CreateTensorWithDataAsOrtValue(
      this.#memoryInfo,
      slab.address,
      byteLength,
      this.#dims.address,
      rank,
      output.elementType,
      this.#out.address,
    );
    check(api, status);
    slab.rowCount = rowCount;
    slab.value = this.#out.pointer(0);
    return slab;
  }

  #takeHeld(): HeldOutputs {
    const held: HeldOutputs = { slabs: [], values: [] };
    for (let i = 0; i < this.count; i++) {
      const slab = this.#slabs[i];
      const value = this.values.pointer(i);
      if (slab !== undefined) held.slabs.push({ outputIndex: this.#active[i]!, slab });
      else if (value !== 0n) held.values.push(value);
      this.#slabs[i] = undefined;
      this.values.words[i] = 0n;
    }
    this.count = 0;
    return held;
  }

  #readWhole(output: OutputEntry, position: number, rowCount: number): WholeOutput {
    const slab = this.#slabs[position];
    if (slab !== undefined) {
      const fixed = output.fixed!;
      const shape = this.#isBatching ? [rowCount, ...fixed.dims] : fixed.dims;
      const byteLength = this.#isBatching ? fixed.byteLength * rowCount : fixed.byteLength;
      const data = slab.memory.length === byteLength ? slab.memory : slab.memory.subarray(0, byteLength);
      return { shape, data, strings: undefined };
    }
    const value = this.values.pointer(position);
    const modelShape = this.#readShape(value);
    const shape = modelShape.length === 0 ? output.scalarDims : modelShape;
    const elementCount = elementCountOf(modelShape);
    if (output.elementBytes === 0) return this.#readStrings(value, shape, elementCount);
    const { api } = this.#library;
    check(api, api.GetTensorMutableData(value, this.#out.address));
    const data = viewBytes({
      address: this.#out.pointer(0),
      byteLength: elementCount * output.elementBytes,
    });
    return { shape, data, strings: undefined };
  }

  #readShape(value: bigint): number[] {
    const { api } = this.#library;
    check(api, api.GetTensorTypeAndShape(value, this.#out.address));
    const info = this.#out.pointer(0);
    try {
      check(api, api.GetDimensionsCount(info, this.#out.address));
      const rank = this.#out.number(0);
      const dims = rank <= RANK_MAX ? this.#dims : new NativeWords(rank);
      check(api, api.GetDimensions(info, dims.address, rank));
      const shape: number[] = [];
      for (let i = 0; i < rank; i++) shape.push(dims.number(i));
      return shape;
    } finally {
      api.ReleaseTensorTypeAndShapeInfo(info);
    }
  }

  #readStrings(value: bigint, shape: readonly number[], elementCount: number): WholeOutput {
    const { api } = this.#library;
    const offsets = new NativeWords(elementCount);
    if (elementCount === 0) return { shape, data: Buffer.alloc(0), strings: { offsets, elementCount } };
    check(api, api.GetStringTensorDataLength(value, this.#out.address));
    const byteLength = this.#out.number(0);
    const memory = allocateBytes(byteLength);
    const address = addressOfBytes(memory);
    check(api, api.GetStringTensorContent(value, address, byteLength, offsets.address, elementCount));
    const data = frameStrings(memory.subarray(0, byteLength), offsets, elementCount);
    return { shape, data, strings: { offsets, elementCount } };
  }
}
