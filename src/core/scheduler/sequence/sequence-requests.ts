// Requests as an instance gets them from the sequence batcher: with control tensors and the place of their state, and the
// null requests that fill up places of a direct batch. Client data is never copied.

import type { ModelConfig } from '../../../domain/model-config.ts';
import { EMPTY_REQUEST, SEQUENCE_END, SEQUENCE_START } from '../../../domain/request.ts';
import { elementCountOf } from '../../../domain/tensor.ts';
import type { SentInput, SentRequest } from '../../../instance/execute-frame.ts';
import { encodeRequestInfo } from '../../model/request-info.ts';
import type { Entry } from '../entry.ts';
import { createControlInputs } from './control-inputs.ts';

export interface SequenceRequests {
  /** The request of an entry that has a ticket, for the slot with this number. */
  of(entry: Entry, slotNumber: number): SentRequest;
  /** Fills up a place: the shapes of another request with zeros for data. */
  filling(like: SentRequest): SentRequest;
}

/** Shared by all null requests; longer tensors repeat it. */
const ZEROS = Buffer.alloc(1024 * 1024);

const NO_INFO = encodeRequestInfo(EMPTY_REQUEST);

export function createSequenceRequests(config: ModelConfig): SequenceRequests {
  const controls = createControlInputs(config);
  const batching = config.sequence_batching!;
  const hasState = batching.state.length > 0;
  const isText = config.input.map((input) => input.data_type === 'TYPE_STRING');
  return {
    of(entry, slotNumber) {
      const { sent } = entry;
      const { flags, sequence } = entry.sequence!;
      return {
        inputs: [...sent.inputs, ...controls.of(flags, sequence.id)],
        requestedOutputs: sent.requestedOutputs,
        info: batching.iterative_sequence ? infoOf(entry) : sent.info,
        state: hasState
          ? {
              slot: slotNumber,
              isStart: (flags & SEQUENCE_START) !== 0,
              isEnd: (flags & SEQUENCE_END) !== 0,
            }
          : undefined,
      };
    },
    filling: (like) => ({
      inputs: [
        ...like.inputs.map((input) => zeroInput(input, isText[input.index] === true)),
        ...controls.notReady,
      ],
      requestedOutputs: like.requestedOutputs,
      info: like.info === undefined ? undefined : NO_INFO,
    }),
  };
}

/** The id and the flags may be the scheduler's own. */
function infoOf(entry: Entry): Buffer | undefined {
  if (entry.sent.info === undefined) return undefined;
  const { sequence, flags } = entry.sequence!;
  return encodeRequestInfo({ ...entry.request, correlationId: sequence.id, sequenceFlags: flags });
}

/** A text of no characters is four bytes, too: its length. */
function zeroInput(input: SentInput, isText: boolean): SentInput {
  const byteLength = isText ? elementCountOf(input.shape) * 4 : input.byteLength;
  return { index: input.index, shape: input.shape, data: zeros(byteLength), byteLength };
}

function zeros(byteLength: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let left = byteLength; left > 0; left -= ZEROS.length) {
    pieces.push(left < ZEROS.length ? ZEROS.subarray(0, left) : ZEROS);
  }
  return pieces;
}
