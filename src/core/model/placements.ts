// Which instances a model gets, and how many threads each of them uses.

import type { ModelConfig, ModelInstanceGroup } from '../../domain/model-config.ts';
import type { InstancePlacement } from '../../instance/instance.ts';
import { type InstanceLimits, limitsOf } from '../rate-limiter/resources.ts';

interface Place {
  readonly group: ModelInstanceGroup;
  readonly name: string;
  readonly deviceId: number;
}

/**
 * One placement per instance. Threads: an instance may use every core, because one big request at a time must be
 * as fast as the machine allows; the hosts do not spin while they wait, so instances that run together share
 * the cores without burning them. docs/adr/0004 has the measurements.
 */
export function placementsOf(config: ModelConfig, machine: { coreCount: number }): InstancePlacement[] {
  return placesOf(config).map(({ group, name, deviceId }) => ({
    name,
    kind: group.kind === 'KIND_GPU' || group.kind === 'KIND_MODEL' ? group.kind : 'KIND_CPU',
    deviceId,
    threadCount: Math.max(1, machine.coreCount),
  }));
}

/** What the rate limiter has to know of each instance, in the same order. */
export function instanceLimitsOf(config: ModelConfig): InstanceLimits[] {
  return placesOf(config).map(({ group, deviceId }) => limitsOf(group, deviceId));
}

function placesOf(config: ModelConfig): Place[] {
  const places: Place[] = [];
  for (const group of config.instance_group) {
    if (group.passive) continue;
    const devices = group.kind === 'KIND_GPU' ? group.gpus : [0];
    let index = 0;
    for (const deviceId of devices) {
      for (let i = 0; i < group.count; i++)
        places.push({ group, name: `${group.name}_${index++}`, deviceId });
    }
  }
  return places;
}
