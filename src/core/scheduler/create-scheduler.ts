// The scheduler that a model's config asks for. Called by model.ts at load.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { Clock } from '../../lib/clock.ts';
import { Batcher } from './batcher.ts';
import type { EntryOwner, InstancePort } from './entry.ts';
import type { Scheduler } from './scheduler.ts';
import { queueBytesMaxOf, toSchedulerPolicy } from './scheduler-policy.ts';
import { SequenceBatcher } from './sequence/sequence-batcher.ts';
import { toSequencePolicy } from './sequence/sequence-policy.ts';
import { createSequenceRequests } from './sequence/sequence-requests.ts';
import { sequenceBounds } from './sequence/waiting-requests.ts';

export interface CreateSchedulerOptions {
  readonly config: ModelConfig;
  readonly clock: Clock;
  readonly owner: EntryOwner;
  readonly instances: readonly InstancePort[];
  /** TRITONSERVER_DELAY_SCHEDULER */
  readonly delayedStartCount: number;
  /** TRITONSERVER_BACKLOG_DELAY_SCHEDULER */
  readonly delayedBacklogCount: number;
}

export function createScheduler(options: CreateSchedulerOptions): Scheduler {
  const { config, clock, owner, instances, delayedStartCount, delayedBacklogCount } = options;
  const common = { clock, owner, instances, defer: setImmediate, delayedStartCount };
  if (config.sequence_batching === undefined) {
    return new Batcher({ ...common, policy: toSchedulerPolicy(config) });
  }
  return new SequenceBatcher({
    ...common,
    policy: toSequencePolicy(config),
    requests: createSequenceRequests(config),
    delayedBacklogCount,
    bounds: sequenceBounds(queueBytesMaxOf(config)),
  });
}
