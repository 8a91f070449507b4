// Tensors that the server makes from the shapes of a batch (`batch_input` in a config), for models that take
// ragged inputs. Pure; a backend feeds the result under each of the entry's target names.

import type { BatchInput } from '../domain/model-config.ts';
import { internal } from '../domain/status.ts';
import { elementCountOf } from '../domain/tensor.ts';

export interface BatchInputTensor {
  readonly datatype: 'INT32' | 'FP32';
  readonly shape: readonly number[];
  readonly data: Int32Array | Float32Array;
}

/** `sourceShapes` has one shape per request, in the order of the batch, batch dimension included. */
export function makeBatchInput(
  entry: BatchInput,
  sourceShapes: readonly (readonly number[])[],
): BatchInputTensor {
  const counts = sourceShapes.map(elementCountOf);
  switch (entry.kind) {
    case 'BATCH_ELEMENT_COUNT':
      return toTensor(entry, counts);
    case 'BATCH_ACCUMULATED_ELEMENT_COUNT':
      return toTensor(entry, accumulate(counts));
    case 'BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO':
      return toTensor(entry, [0, ...accumulate(counts)]);
    case 'BATCH_MAX_ELEMENT_COUNT_AS_SHAPE':
      // Only the shape speaks; Triton leaves the values undefined.
      return toTensor(entry, new Array<number>(Math.max(0, ...counts)).fill(0));
    case 'BATCH_ITEM_SHAPE':
      return toTensor(entry, itemShapes(sourceShapes), (sourceShapes[0]?.length ?? 1) - 1);
    case 'BATCH_ITEM_SHAPE_FLATTEN':
      return toTensor(entry, itemShapes(sourceShapes));
    default:
      throw internal(`unsupported batch input kind '${entry.kind}'`);
  }
}

function accumulate(counts: readonly number[]): number[] {
  let total = 0;
  return counts.map((count) => {
    total += count;
    return total;
  });
}

/** The shape without the batch dimension, once for every item of every request. */
function itemShapes(sourceShapes: readonly (readonly number[])[]): number[] {
  const values: number[] = [];
  for (const shape of sourceShapes) {
    for (let item = 0; item < shape[0]!; item++) {
      for (let i = 1; i < shape.length; i++) values.push(shape[i]!);
    }
  }
  return values;
}

function toTensor(entry: BatchInput, values: readonly number[], columns?: number): BatchInputTensor {
  const shape =
    columns === undefined ? [values.length] : [columns === 0 ? 0 : values.length / columns, columns];
  // The memory of its own keeps small arrays out of V8's moving heap, so native code may read them.
  const memory = new ArrayBuffer(Math.max(values.length, 1) * 4);
  if (entry.data_type === 'TYPE_FP32') {
    const data = new Float32Array(memory, 0, values.length);
    data.set(values);
    return { datatype: 'FP32', shape, data };
  }
  const data = new Int32Array(memory, 0, values.length);
  data.set(values);
  return { datatype: 'INT32', shape, data };
}
