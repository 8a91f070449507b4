// When no instance of a model runs and none could be restarted for a while, nobody needs to wait: this is the error that
// requests get then. Asked by both schedulers.

import { type StatusError, unavailable } from '../../domain/status.ts';
import type { InstancePort } from './entry.ts';

export function hopelessError(instances: readonly InstancePort[]): StatusError | undefined {
  if (instances.some((instance) => instance.state !== 'failed')) return undefined;
  const reason = instances[0]?.lastError?.message ?? 'the model has no instance';
  return unavailable(`no instance of the model is running: ${reason}`);
}
