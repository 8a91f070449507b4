// A random but valid config of a sequence model: both strategies, delays, idle times, control tensors, state, iterative
// sequences. Made as text, so that the parser and toSequencePolicy are part of what is run.
import type { ModelConfig } from '../../src/domain/model-config.ts';
import type { Prng } from '../../src/lib/prng.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';

/** Indexes of the control tensors of every random model; it has no other inputs. */
export const START_INDEX = 0;
export const END_INDEX = 1;
export const READY_INDEX = 2;
export const CORRID_INDEX = 3;

export interface RandomSequenceConfig {
  readonly config: ModelConfig;
  readonly text: string;
}

export function randomSequenceConfig(prng: Prng): RandomSequenceConfig {
  const maxBatchSize = prng.pick([0, 1, 2, 4, 8]);
  const strategy = prng.boolean() ? randomDirect(prng) : randomOldest(prng, maxBatchSize);
  const isIterative = prng.boolean(0.2);
  const state = prng.boolean()
    ? 'state { input_name: "IN" output_name: "OUT" data_type: TYPE_INT32 dims: 1 }'
    : '';
  const text = `name: "m" max_batch_size: ${maxBatchSize} sequence_batching {
    max_sequence_idle_microseconds: ${prng.pick([5_000, 50_000, 5_000_000])}
    ${strategy} ${state} iterative_sequence: ${isIterative}
    control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
    control_input { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } }
    control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } }
    control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
  }`;
  return { config: parseModelConfig(text), text: text.replaceAll(/\s+/g, ' ') };
}

function randomDirect(prng: Prng): string {
  const delayUs = prng.pick([0, 0, 500, 5_000]);
  return `direct { max_queue_delay_microseconds: ${delayUs} minimum_slot_utilization: ${prng.pick([0, 0.5, 1])} }`;
}

function randomOldest(prng: Prng, maxBatchSize: number): string {
  const preferred = maxBatchSize > 1 && prng.boolean() ? `preferred_batch_size: ${maxBatchSize >> 1}` : '';
  return `oldest { max_candidate_sequences: ${prng.pick([0, 1, 3, 16])} ${preferred}
    max_queue_delay_microseconds: ${prng.pick([0, 0, 500, 5_000])} preserve_ordering: ${prng.boolean(0.25)} }`;
}
