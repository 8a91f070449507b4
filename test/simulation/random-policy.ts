// A random but valid scheduler policy: what validate-config would let through, from no batching at all to
// priorities with a queue policy each. Made from a ModelConfig, so that toSchedulerPolicy is part of what is run.
import { type SchedulerPolicy, toSchedulerPolicy } from '../../src/core/scheduler/scheduler-policy.ts';
import { QUEUE_BYTES_MAX } from '../../src/domain/limits.ts';
import type { ModelDynamicBatching, ModelQueuePolicy } from '../../src/domain/model-config.ts';
import type { Prng } from '../../src/lib/prng.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';

export interface RandomPolicy {
  readonly policy: SchedulerPolicy;
  readonly batchSizeMax: number;
  readonly priorityLevels: number;
  readonly hasDynamicBatching: boolean;
  readonly queueBytesMax: number;
  /** One per level, as the config says it. */
  readonly queuePolicies: readonly (ModelQueuePolicy | undefined)[];
  readonly text: string;
}

export function randomPolicy(prng: Prng): RandomPolicy {
  const config = parseModelConfig('');
  config.max_batch_size = prng.pick([0, 1, 2, 4, 8, 32]);
  const batching = prng.boolean(0.8) ? randomBatching(prng, config.max_batch_size) : undefined;
  if (batching !== undefined) config.dynamic_batching = batching;
  const levels = Math.max(1, batching?.priority_levels ?? 0);
  const queuePolicies = Array.from(
    { length: levels },
    (_, i) => batching?.priority_queue_policy[String(i + 1)] ?? batching?.default_queue_policy,
  );
  const queueBytesMax = prng.pick([QUEUE_BYTES_MAX, QUEUE_BYTES_MAX, 1_000]);
  if (queueBytesMax !== QUEUE_BYTES_MAX) {
    config.parameters.max_queue_bytes = { string_value: String(queueBytesMax) };
  }
  return {
    queueBytesMax,
    policy: toSchedulerPolicy(config),
    batchSizeMax: Math.max(1, config.max_batch_size),
    priorityLevels: batching?.priority_levels ?? 0,
    hasDynamicBatching: batching !== undefined,
    queuePolicies,
    text: JSON.stringify({
      queueBytesMax,
      max_batch_size: config.max_batch_size,
      dynamic_batching: batching ?? null,
    }),
  };
}

function randomBatching(prng: Prng, maxBatchSize: number): ModelDynamicBatching {
  const isOrdered = prng.boolean(0.25);
  const levels = isOrdered ? prng.integer(0, 1) : prng.pick([0, 0, 1, 2, 5]);
  const batching: ModelDynamicBatching = {
    preferred_batch_size: [],
    max_queue_delay_microseconds: prng.pick([0, 0, 100, 2_000, 30_000]),
    preserve_ordering: isOrdered,
    priority_levels: levels,
    default_priority_level: levels === 0 ? 0 : prng.integer(1, levels),
    priority_queue_policy: {},
  };
  for (let i = maxBatchSize > 0 ? prng.integer(0, 2) : 0; i > 0; i--) {
    batching.preferred_batch_size.push(prng.integer(1, maxBatchSize));
  }
  if (prng.boolean()) batching.default_queue_policy = randomQueuePolicy(prng, isOrdered);
  for (let level = 1; level <= levels; level++) {
    if (prng.boolean()) batching.priority_queue_policy[String(level)] = randomQueuePolicy(prng, isOrdered);
  }
  return batching;
}

/** Under preserve_ordering a timeout may not delay. */
function randomQueuePolicy(prng: Prng, isOrdered: boolean): ModelQueuePolicy {
  return {
    timeout_action: !isOrdered && prng.boolean() ? 'DELAY' : 'REJECT',
    default_timeout_microseconds: prng.pick([0, 500, 5_000, 50_000]),
    allow_timeout_override: prng.boolean(),
    max_queue_size: prng.pick([0, 1, 10, 200]),
  };
}
