// The control tensors of a sequence model as extra inputs of a request: START, END and READY are made once at load, the
// correlation id once per request. Their indexes follow those of config.input; hosts count in the same order.

import { type DataType, elementBytesOf, fromConfigDataType } from '../../../domain/datatype.ts';
import type { ModelConfig, SequenceControl } from '../../../domain/model-config.ts';
import { SEQUENCE_END, SEQUENCE_START } from '../../../domain/request.ts';
import { internal } from '../../../domain/status.ts';
import type { SentInput } from '../../../instance/execute-frame.ts';
import type { SequenceId } from './sequence.ts';

export interface ControlInputs {
  of(flags: number, id: SequenceId): readonly SentInput[];
  /** For a place of a batch that is only filled up: nothing is true, and the id is 0. */
  readonly notReady: readonly SentInput[];
}

/** START | END, and this for requests that are there at all. */
const READY = 4;
const NO_CONTROLS: readonly SentInput[] = [];

interface Corrid {
  readonly index: number;
  readonly shape: readonly number[];
  readonly datatype: DataType;
}

export function createControlInputs(config: ModelConfig): ControlInputs {
  const controls = config.sequence_batching!.control_input;
  const shape = config.max_batch_size > 0 ? [1, 1] : [1];
  // byFlags[START | END | READY]: all control tensors but the id.
  const byFlags: SentInput[][] = [[], [], [], [], [], [], [], []];
  let corrid: Corrid | undefined;
  for (let i = 0; i < controls.length; i++) {
    const control = controls[i]!.control[0];
    if (control === undefined) continue;
    const index = config.input.length + i;
    if (control.kind === 'CONTROL_SEQUENCE_CORRID') {
      corrid = { index, shape, datatype: corridTypeOf(control) };
      continue;
    }
    const bit = bitOf(control.kind);
    for (let flags = 0; flags < byFlags.length; flags++) {
      byFlags[flags]!.push(sentInput(index, shape, flagBytes(control, (flags & bit) !== 0)));
    }
  }
  if (controls.length === 0) return { of: () => NO_CONTROLS, notReady: NO_CONTROLS };
  const withId = (inputs: readonly SentInput[], id: SequenceId | undefined) =>
    corrid === undefined
      ? inputs
      : [...inputs, sentInput(corrid.index, corrid.shape, idBytes(corrid.datatype, id))];
  return {
    of: (flags, id) => withId(byFlags[(flags & (SEQUENCE_START | SEQUENCE_END)) | READY]!, id),
    notReady: withId(byFlags[0]!, undefined),
  };
}

function sentInput(index: number, shape: readonly number[], bytes: Buffer): SentInput {
  return { index, shape, data: [bytes], byteLength: bytes.length };
}

function corridTypeOf(control: SequenceControl): DataType {
  const datatype = fromConfigDataType(control.data_type);
  if (datatype === undefined) throw internal('the control tensor of the correlation id has no datatype');
  return datatype;
}

function bitOf(kind: string): number {
  if (kind === 'CONTROL_SEQUENCE_START') return SEQUENCE_START;
  if (kind === 'CONTROL_SEQUENCE_END') return SEQUENCE_END;
  return READY;
}

/** One of the three lists is set, with the value for false first. */
function flagBytes(control: SequenceControl, isTrue: boolean): Buffer {
  const which = isTrue ? 1 : 0;
  const bytes = Buffer.alloc(4);
  if (control.int32_false_true.length > 0) bytes.writeInt32LE(control.int32_false_true[which]!);
  else if (control.fp32_false_true.length > 0) bytes.writeFloatLE(control.fp32_false_true[which]!);
  else return Buffer.of(control.bool_false_true[which] === true ? 1 : 0);
  return bytes;
}

/** 32-bit types take the low half of the id; undefined is 0 or the empty text. */
function idBytes(datatype: DataType, id: SequenceId | undefined): Buffer {
  if (datatype === 'BYTES') {
    const text = Buffer.from(id === undefined ? '' : String(id));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    return Buffer.concat([length, text]);
  }
  const bytes = Buffer.alloc(8);
  if (typeof id === 'bigint') bytes.writeBigUInt64LE(BigInt.asUintN(64, id));
  return bytes.subarray(0, elementBytesOf(datatype));
}
