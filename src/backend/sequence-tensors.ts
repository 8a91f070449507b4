// The inputs of a sequence model that no client sends, in the order in which EXECUTE counts them behind config.input:
// the control tensors, which come with the batch, then the states, which the host keeps. Read by backends when they start.

import type { ModelConfig, SequenceControl } from '../domain/model-config.ts';

export interface SequenceInput {
  readonly name: string;
  /** `TYPE_INT32` */
  readonly dataType: string;
}

export function sequenceInputs(config: ModelConfig): SequenceInput[] {
  const { control_input = [], state = [] } = config.sequence_batching ?? {};
  return [
    ...control_input.map(({ name, control }) => ({
      name,
      dataType: control[0] === undefined ? 'TYPE_BOOL' : controlDataType(control[0]),
    })),
    ...state.map(({ input_name, data_type }) => ({ name: input_name, dataType: data_type })),
  ];
}

/** The datatype in which the server sends a control tensor. */
export function controlDataType(control: SequenceControl): string {
  if (control.kind === 'CONTROL_SEQUENCE_CORRID') return control.data_type;
  if (control.int32_false_true.length > 0) return 'TYPE_INT32';
  if (control.fp32_false_true.length > 0) return 'TYPE_FP32';
  return 'TYPE_BOOL';
}
