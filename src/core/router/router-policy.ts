// What a router does, worked out from its config once at load: names and defaults filled in, header names in lower case.
// Pure. Used by router-model.ts, and by validate-router-config.ts, which checks what is written here as given.

import { ROUTER_SHADOW_BYTES_DEFAULT, ROUTER_SHADOW_REQUESTS_DEFAULT } from '../../domain/limits.ts';
import type { ModelRouter, RouterCanary, RouterShadow } from '../../domain/model-config.ts';
import type { CanaryRule } from './canary-window.ts';

export const ROUTER_PLATFORM = 'router';

/** A model by name; the version is a number, a label, or empty for the newest. */
export interface RoutedModel {
  readonly name: string;
  readonly model: string;
  readonly version: string;
}

export interface TargetPolicy extends RoutedModel {
  readonly weight: number;
  /** Undefined for a target that no rule watches. */
  readonly canary: CanaryPolicy | undefined;
}

export interface CanaryPolicy extends CanaryRule {
  /** Name of the target that takes the weight over. */
  readonly stable: string;
}

export interface ShadowPolicy extends RoutedModel {
  /** Of the requests, from 0 to 1. */
  readonly share: number;
  readonly requestsMax: number;
  readonly bytesMax: number;
}

export type StickyPolicy =
  | { readonly by: 'header' | 'parameter'; readonly name: string }
  | { readonly by: 'correlation_id' };

export interface RouterPolicy {
  readonly targets: readonly TargetPolicy[];
  readonly shadows: readonly ShadowPolicy[];
  readonly sticky: StickyPolicy | undefined;
  /** Lower case; undefined when no header forces a target. */
  readonly forceHeader: string | undefined;
  /** Lower case; what the frontends are asked to hand over. Undefined when nothing is. */
  readonly wantedHeaders: readonly string[] | undefined;
  readonly isTargetReported: boolean;
}

/** Long enough to see a slow leak of errors, short enough to forget a hiccup. */
const WINDOW_SECS_DEFAULT = 30;
/** Fewer requests say nothing about a rate. */
const REQUESTS_MIN_DEFAULT = 20;

export function toRouterPolicy(router: ModelRouter): RouterPolicy {
  const canaries = new Map(router.canary.map((rule) => [rule.target, toCanary(rule)]));
  const sticky = toSticky(router.sticky);
  const forceHeader = router.force_header === '' ? undefined : router.force_header.toLowerCase();
  const headers = [forceHeader, sticky?.by === 'header' ? sticky.name : undefined];
  const wanted = [...new Set(headers.filter((name) => name !== undefined))];
  return {
    targets: router.target.map((target) => {
      const name = nameOf(target);
      const { model, version, weight } = target;
      return { name, model, version, weight, canary: canaries.get(name) };
    }),
    shadows: router.shadow.map(toShadow),
    sticky,
    forceHeader,
    wantedHeaders: wanted.length === 0 ? undefined : wanted,
    isTargetReported: router.report_target,
  };
}

/** `resnet`, or `resnet:3` where a version is given. */
export function nameOf(given: RoutedModel): string {
  if (given.name !== '') return given.name;
  return given.version === '' ? given.model : `${given.model}:${given.version}`;
}

function toSticky(sticky: ModelRouter['sticky']): StickyPolicy | undefined {
  if (sticky?.header !== undefined) return { by: 'header', name: sticky.header.toLowerCase() };
  if (sticky?.parameter !== undefined) return { by: 'parameter', name: sticky.parameter };
  return sticky?.correlation_id === true ? { by: 'correlation_id' } : undefined;
}

function toCanary(rule: RouterCanary): CanaryPolicy {
  return {
    stable: rule.stable,
    errorRateMax: rule.max_error_rate === 0 ? undefined : rule.max_error_rate,
    p99MsMax: rule.max_p99_ms === 0 ? undefined : rule.max_p99_ms,
    windowMs: (rule.window_seconds || WINDOW_SECS_DEFAULT) * 1000,
    requestsMin: rule.min_requests || REQUESTS_MIN_DEFAULT,
  };
}

function toShadow(shadow: RouterShadow): ShadowPolicy {
  return {
    name: nameOf(shadow),
    model: shadow.model,
    version: shadow.version,
    share: shadow.percent === 0 ? 1 : shadow.percent / 100,
    requestsMax: shadow.max_inflight_requests || ROUTER_SHADOW_REQUESTS_DEFAULT,
    bytesMax: shadow.max_inflight_bytes || ROUTER_SHADOW_BYTES_DEFAULT,
  };
}
