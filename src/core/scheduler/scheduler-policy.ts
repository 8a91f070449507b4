// What a model's config says about scheduling, worked out once at load.

import { QUEUE_BYTES_MAX } from '../../domain/limits.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import type { BatchPolicy } from './form-batch.ts';
import { type QueuePolicy, toQueuePolicy } from './request-queue.ts';

export interface SchedulerPolicy extends BatchPolicy {
  readonly queuePolicies: readonly QueuePolicy[];
  /** Tensors of waiting requests, over all levels. */
  readonly queueBytesMax: number;
  readonly isOrderPreserved: boolean;
  /** True when nothing in the config depends on a request staying in the queue until an instance is free. */
  readonly isPrefetching: boolean;
  /** Answers come part by part, and the next request may be executed before they have all come. */
  readonly isDecoupled: boolean;
  /** Index into queuePolicies for a request's priority; 0 or too large means the default level. */
  levelOf(priority: number): number;
}

export function toSchedulerPolicy(config: ModelConfig): SchedulerPolicy {
  const batching = config.dynamic_batching;
  const preferred = batching?.preferred_batch_size ?? [];
  const levels = batching?.priority_levels ?? 0;
  const defaultLevel = batching?.default_priority_level ?? 0;
  const queuePolicies: QueuePolicy[] = [];
  if (levels === 0) queuePolicies.push(toQueuePolicy(batching?.default_queue_policy));
  for (let level = 1; level <= levels; level++) {
    queuePolicies.push(
      toQueuePolicy(batching?.priority_queue_policy[String(level)] ?? batching?.default_queue_policy),
    );
  }
  const hasLimits =
    batching?.default_queue_policy !== undefined ||
    Object.keys(batching?.priority_queue_policy ?? {}).length > 0;
  return {
    isBatching: batching !== undefined && config.max_batch_size > 1,
    batchSizeMax: Math.max(1, config.max_batch_size),
    preferredSizes: new Set(preferred),
    preferredSizeMax: preferred.length === 0 ? Math.max(1, config.max_batch_size) : Math.max(...preferred),
    queueDelayMs: (batching?.max_queue_delay_microseconds ?? 0) / 1000,
    queuePolicies,
    queueBytesMax: queueBytesMaxOf(config),
    isOrderPreserved: batching?.preserve_ordering ?? false,
    isPrefetching: !hasLimits && levels === 0,
    isDecoupled: config.model_transaction_policy?.decoupled ?? false,
    levelOf: (priority) => {
      if (levels === 0) return 0;
      return (priority >= 1 && priority <= levels ? priority : defaultLevel) - 1;
    },
  };
}

/** `parameters { key: "max_queue_bytes" }`, which Triton does not have; throws when it is no number of bytes. */
export function queueBytesMaxOf(config: ModelConfig): number {
  const text = config.parameters.max_queue_bytes?.string_value;
  if (text === undefined) return QUEUE_BYTES_MAX;
  const bytes = Number(text);
  if (/^\d+$/.test(text) && bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw invalidArgument(
    `parameter 'max_queue_bytes' of model '${config.name}' must be a number of bytes above 0, got '${text}'`,
  );
}
