// What a model's config says about sequences, worked out once at load: for the sequence batcher, and for validate.ts the
// rules that requests must keep.

import { type DataType, fromConfigDataType } from '../../../domain/datatype.ts';
import type { ModelConfig } from '../../../domain/model-config.ts';
import type { BatchPolicy } from '../form-batch.ts';
import type { DirectPolicy } from './form-direct-batch.ts';

export interface SequencePolicy {
  readonly modelName: string;
  /** Sequences that one instance has at a time. */
  readonly slotCount: number;
  readonly idleMs: number;
  readonly isIterative: boolean;
  /** Of the strategy: exactly one of the two. */
  readonly direct: DirectPolicy | undefined;
  readonly oldest: BatchPolicy | undefined;
  readonly isOrderPreserved: boolean;
}

export interface SequenceRules {
  /** Requests need no correlation id; the scheduler makes one. */
  readonly isIterative: boolean;
  /** The control tensor that carries the id, where the model has one. */
  readonly corrid: { readonly name: string; readonly datatype: DataType } | undefined;
}

/** Triton's default, for configs that were not normalised. */
const IDLE_US_DEFAULT = 1_000_000;

export function toSequencePolicy(config: ModelConfig): SequencePolicy {
  const batching = config.sequence_batching!;
  const { oldest } = batching;
  const batchSizeMax = Math.max(1, config.max_batch_size);
  const preferred = oldest?.preferred_batch_size ?? [];
  return {
    modelName: config.name,
    slotCount: oldest?.max_candidate_sequences || batchSizeMax,
    idleMs: (batching.max_sequence_idle_microseconds || IDLE_US_DEFAULT) / 1000,
    isIterative: batching.iterative_sequence,
    direct:
      oldest === undefined
        ? {
            queueDelayMs: (batching.direct?.max_queue_delay_microseconds ?? 0) / 1000,
            slotUtilizationMin: batching.direct?.minimum_slot_utilization ?? 0,
            slotCount: batchSizeMax,
          }
        : undefined,
    oldest:
      oldest === undefined
        ? undefined
        : {
            isBatching: config.max_batch_size > 1,
            batchSizeMax,
            preferredSizes: new Set(preferred),
            preferredSizeMax: preferred.length === 0 ? batchSizeMax : Math.max(...preferred),
            queueDelayMs: oldest.max_queue_delay_microseconds / 1000,
          },
    isOrderPreserved: oldest?.preserve_ordering ?? false,
  };
}

export function toSequenceRules(config: ModelConfig): SequenceRules | undefined {
  const batching = config.sequence_batching;
  if (batching === undefined) return undefined;
  const corrid = batching.control_input.find((input) => input.control[0]?.kind === 'CONTROL_SEQUENCE_CORRID');
  const datatype = corrid === undefined ? undefined : fromConfigDataType(corrid.control[0]!.data_type);
  return {
    isIterative: batching.iterative_sequence,
    corrid: datatype === undefined ? undefined : { name: corrid!.name, datatype },
  };
}
