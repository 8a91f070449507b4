// Feeds the states of sequences to a run and takes the new ones from its outputs. Rows of different slots are gathered
// into one tensor; requests whose states have different shapes are run apart. Used by onnx-instance.ts alone.

import { type StateTensor, zeros } from '../../backend/initial-states.ts';
import type { ExecuteOutput, ExecuteRequest } from '../../backend/sdk.ts';
import { isSameShape, type SequenceStates } from '../../backend/sequence-states.ts';
import { internal, StatusError } from '../../domain/status.ts';
import { elementCountOf } from '../../domain/tensor.ts';
import type { InputBinding } from './input-binding.ts';
import { allocateBytes } from './native-memory.ts';
import { rowCountOf } from './output-split.ts';
import type { StringSlice } from './string-tensor.ts';
import type { InputEntry, TensorTable } from './tensor-table.ts';

/** An element of zero length is its length alone. */
const EMPTY_STRING_BYTES = 4;

/** Requests that follow each other and can be run as one, up to `end`; or one that cannot be run, and why. */
export interface Stretch {
  readonly end: number;
  readonly error: StatusError | undefined;
}

export class StateBinding {
  readonly #states: SequenceStates;
  readonly #table: TensorTable;
  readonly #isBatching: boolean;
  /** By state: where rows are gathered, as large as it ever had to be. */
  readonly #gathered: (Buffer | undefined)[] = [];

  constructor(states: SequenceStates, options: { table: TensorTable; isBatching: boolean }) {
    this.#states = states;
    this.#table = options.table;
    this.#isBatching = options.isBatching;
  }

  /** Puts the initial state into the slots of sequences that start. */
  beginStretch(requests: readonly ExecuteRequest[], from: number): Stretch {
    let model: number | undefined;
    const slots = new Set<number>();
    for (let i = from; i < requests.length; i++) {
      const request = requests[i]!;
      if (request.state === undefined) continue;
      const { slot } = request.state;
      if (slots.has(slot)) return { end: i, error: undefined };
      const error = this.#begin(request);
      if (error !== undefined) return i === from ? { end: i + 1, error } : { end: i, error: undefined };
      model ??= slot;
      if (!this.#isAlike(model, slot)) return { end: i, error: undefined };
      slots.add(slot);
    }
    return { end: requests.length, error: undefined };
  }

  bind(inputs: InputBinding, requests: readonly ExecuteRequest[], rowCount: number): void {
    for (let state = 0; state < this.#states.count; state++) {
      const index = this.#table.stateInputStart + state;
      // Warmup may bring a state of its own.
      if (requests[0]!.inputs.some((input) => input.index === index)) continue;
      const entry = this.#table.inputs[index]!;
      const example = this.#exampleOf(requests, state);
      const shape = this.#isBatching ? [rowCount, ...example.shape.slice(1)] : example.shape;
      const pieces = requests.map((request) => this.#pieceOf(request, { state, example, entry }));
      const data = pieces.length === 1 ? pieces[0]! : this.#gather(state, pieces);
      inputs.addTensor(entry, { shape, data, slices: slicesOf(pieces, requests, example) });
    }
  }

  /** Takes the states out of the results; what remains is for clients. */
  advance(
    requests: readonly ExecuteRequest[],
    results: readonly (ExecuteOutput[] | StatusError)[],
    errors: readonly (StatusError | undefined)[] | undefined,
  ): void {
    const { configOutputCount } = this.#table;
    for (let i = 0; i < requests.length; i++) {
      const result = results[i]!;
      if (result instanceof StatusError) continue;
      const first = result.findIndex((output) => output.index >= configOutputCount);
      const outputs = first < 0 ? [] : result.splice(first);
      const slot = requests[i]!.state?.slot;
      if (slot === undefined || errors?.[i] !== undefined) continue;
      for (const output of outputs) this.#states.advance(slot, output.index - configOutputCount, output);
    }
    this.end(requests);
  }

  /** Sequences whose last request this was are over, however it went. */
  end(requests: readonly ExecuteRequest[]): void {
    for (const { state } of requests) if (state?.isEnd === true) this.#states.end(state.slot);
  }

  #begin(request: ExecuteRequest): StatusError | undefined {
    if (this.#isBatching && rowCountOf(request) !== 1) {
      return internal('a request of a sequence with implicit state must have batch size 1');
    }
    return this.#states.begin(request.state!);
  }

  #isAlike(one: number, other: number): boolean {
    if (one === other) return true;
    for (let state = 0; state < this.#states.count; state++) {
      const { shape } = this.#states.of(one, state);
      if (!isSameShape(shape, this.#states.of(other, state).shape)) return false;
    }
    return true;
  }

  /** All rows have the shape of this one. */
  #exampleOf(requests: readonly ExecuteRequest[], state: number): StateTensor {
    const stateful = requests.find((request) => request.state !== undefined);
    if (stateful?.state === undefined) return this.#states.initial(state);
    return this.#states.of(stateful.state.slot, state);
  }

  #pieceOf(
    request: ExecuteRequest,
    { state, example, entry }: { state: number; example: StateTensor; entry: InputEntry },
  ): Buffer {
    if (request.state !== undefined) return this.#states.of(request.state.slot, state).data;
    const rowCount = this.#isBatching ? rowCountOf(request) : 1;
    return zeros(elementCountOf(example.shape) * rowCount * (entry.elementBytes || EMPTY_STRING_BYTES));
  }

  #gather(state: number, pieces: readonly Buffer[]): Buffer {
    let byteLength = 0;
    for (const piece of pieces) byteLength += piece.length;
    let memory = this.#gathered[state];
    if (memory === undefined || memory.length < byteLength) memory = allocateBytes(byteLength);
    this.#gathered[state] = memory;
    let at = 0;
    for (const piece of pieces) at += piece.copy(memory, at);
    return memory.subarray(0, byteLength);
  }
}

/** Where the strings of each request lie; every request but those without a state has one row. */
function slicesOf(
  pieces: readonly Buffer[],
  requests: readonly ExecuteRequest[],
  example: StateTensor,
): StringSlice[] {
  let offset = 0;
  return pieces.map((piece, i) => {
    const rowCount = requests[i]!.state === undefined ? rowCountOf(requests[i]!) : 1;
    const slice = {
      offset,
      byteLength: piece.length,
      elementCount: elementCountOf(example.shape) * rowCount,
    };
    offset += piece.length;
    return slice;
  });
}
