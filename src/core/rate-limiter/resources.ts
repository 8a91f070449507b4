// What instances need of resources that models share, and how many of each resource there are. Pure; the texts are
// Triton's. Called by rate-limiter.ts when instances come and go, never per request.

import type { ModelInstanceGroup } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

/** One `--rate-limit-resource`. */
export interface ResourceLimit {
  readonly name: string;
  readonly count: number;
  /** -1: every device has that many. */
  readonly device: number;
}

export interface ResourceNeed {
  readonly name: string;
  /** GLOBAL_DEVICE for a resource that all devices share. */
  readonly device: number;
  readonly count: number;
}

/** By resource key. */
export type ResourceNeeds = ReadonlyMap<string, ResourceNeed>;

/** What the config says of one instance; resources and devices are those of its group. */
export interface InstanceLimits {
  readonly needs: ResourceNeeds;
  /** How much one execution counts: an instance of priority 2 runs half as often as one of priority 1. */
  readonly priority: number;
}

const GLOBAL_DEVICE = -2;
const EVERY_DEVICE = -1;

export function limitsOf(group: ModelInstanceGroup, deviceId: number): InstanceLimits {
  const needs = new Map<string, ResourceNeed>();
  for (const { name, global, count } of group.rate_limiter?.resources ?? []) {
    const device = global ? GLOBAL_DEVICE : deviceId;
    needs.set(`${device}:${name}`, { name, device, count });
  }
  return { needs, priority: Math.max(1, group.rate_limiter?.priority ?? 1) };
}

/**
 * How many of each resource there are: as many as the most demanding instance needs, unless limits are given. Once
 * one is given, a resource without a limit counts as absent. Throws when an instance could never run.
 */
export function poolSizes(
  instances: Iterable<{ readonly needs: ResourceNeeds }>,
  limits: readonly ResourceLimit[],
): Map<string, number> {
  const largest = new Map<string, ResourceNeed>();
  for (const { needs } of instances) {
    for (const [key, need] of needs) {
      if (need.count >= (largest.get(key)?.count ?? 0)) largest.set(key, need);
    }
  }
  // Triton's maps are sorted, and the first that does not fit is the one it names.
  const sorted = [...largest].sort(([, a], [, b]) => a.device - b.device || (a.name < b.name ? -1 : 1));
  const sizes = new Map<string, number>();
  for (const [key, need] of sorted) {
    const size = limits.length === 0 ? need.count : limitOf(need, limits);
    if (size < need.count) {
      throw invalidArgument(
        `Resource count for "${need.name}" is limited to ${size} which will prevent scheduling of one or more model instances, the minimum required count is ${need.count}`,
      );
    }
    sizes.set(key, size);
  }
  refuseBothKinds(sorted.map(([, need]) => need));
  return sizes;
}

/** For a global resource the device of a limit means nothing; of several limits the largest counts. */
function limitOf(need: ResourceNeed, limits: readonly ResourceLimit[]): number {
  let size = 0;
  for (const { name, count, device } of limits) {
    const isFor = need.device === GLOBAL_DEVICE || device === need.device || device === EVERY_DEVICE;
    if (name === need.name && isFor && count > size) size = count;
  }
  return size;
}

function refuseBothKinds(needs: readonly ResourceNeed[]): void {
  const globals = new Set(needs.filter((need) => need.device === GLOBAL_DEVICE).map((need) => need.name));
  const both = needs.find((need) => need.device !== GLOBAL_DEVICE && globals.has(need.name));
  if (both === undefined) return;
  throw invalidArgument(
    `Resource "${both.name}" is present as both global and device-specific resource in the model configuration.`,
  );
}
