// What a model's config says about scheduling, worked out once at load.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { BatchPolicy } from './form-batch.ts';
import { type QueuePolicy, toQueuePolicy } from './request-queue.ts';

export interface SchedulerPolicy extends BatchPolicy {
  readonly queuePolicies: readonly QueuePolicy[];
  readonly isOrderPreserved: boolean;
  /** True when nothing in the config depends on a request staying in the queue until an instance is free. */
  readonly isPrefetching: boolean;
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
    isOrderPreserved: batching?.preserve_ordering ?? false,
    isPrefetching: !hasLimits && levels === 0,
    levelOf: (priority) => {
      if (levels === 0) return 0;
      return (priority >= 1 && priority <= levels ? priority : defaultLevel) - 1;
    },
  };
}
