// What wire code and frontends may know of a loaded model version: names, shapes and labels, frozen at load.

import type { DataType } from './datatype.ts';

export interface TensorSpec {
  readonly name: string;
  readonly datatype: DataType;
  /** Config dims, without the batch dimension; -1 is variable. */
  readonly dims: readonly number[];
  readonly optional: boolean;
}

export interface ModelView {
  readonly name: string;
  readonly version: number;
  /** 0 when the model does not batch. */
  readonly maxBatchSize: number;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly isDecoupled: boolean;
  /** One label per class index; undefined when the output has no label file. */
  labelsOf(output: string): readonly string[] | undefined;
}
