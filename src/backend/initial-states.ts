// The state with which a sequence starts, one tensor for each `sequence_batching.state` of a config: from a file, zeros,
// or zeros where the config says nothing. Read once when an instance starts; checks of the config itself are the server's.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { elementBytesOf, fromConfigDataType } from '../domain/datatype.ts';
import type { ModelConfig, SequenceState } from '../domain/model-config.ts';
import { internal, invalidArgument } from '../domain/status.ts';
import { elementCountOf } from '../domain/tensor.ts';

export interface StateTensor {
  /** The batch dimension, 1, included where the model batches. */
  readonly shape: readonly number[];
  /** BYTES elements are a length and the bytes. */
  readonly data: Buffer;
}

/** In front of each BYTES element; an empty string is nothing but this. */
const LENGTH_BYTES = 4;

export function readInitialStates(config: ModelConfig, modelDirectory: string): StateTensor[] {
  const states = config.sequence_batching?.state ?? [];
  return states.map((state) => {
    const initial = state.initial_state[0];
    // A dimension that varies starts as 1.
    const dims = initial?.dims ?? state.dims.map((dim) => (dim === -1 ? 1 : dim));
    const shape = config.max_batch_size > 0 ? [1, ...dims] : dims;
    const fileName = initial?.data_file;
    if (fileName === undefined) return { shape, data: zeros(byteLengthOf(state, dims)) };
    return { shape, data: readStateFile(state, { dims, modelDirectory, fileName }) };
  });
}

/** Bytes in memory of their own: native code may keep their address. */
export function zeros(byteLength: number): Buffer {
  return Buffer.from(new ArrayBuffer(byteLength));
}

function byteLengthOf(state: SequenceState, dims: readonly number[]): number {
  const datatype = fromConfigDataType(state.data_type);
  const elementBytes = datatype === undefined ? 0 : elementBytesOf(datatype);
  return elementCountOf(dims) * (elementBytes === 0 ? LENGTH_BYTES : elementBytes);
}

function readStateFile(
  state: SequenceState,
  { dims, modelDirectory, fileName }: { dims: readonly number[]; modelDirectory: string; fileName: string },
): Buffer {
  const content = readWhole(join(modelDirectory, 'initial_state', fileName));
  const expected = byteLengthOf(state, dims);
  if (state.data_type !== 'TYPE_STRING' && content.length < expected) {
    throw invalidArgument(
      `initial_state setting expects ${expected} bytes, but the data provided from ${fileName}only has ` +
        `${content.length} bytes.`,
    );
  }
  const data = zeros(state.data_type === 'TYPE_STRING' ? content.length : expected);
  content.copy(data);
  return data;
}

function readWhole(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? 'No such file or directory' : (thrown as Error).message;
    throw internal(`failed to open text file for read ${path}: ${reason}`);
  }
}
