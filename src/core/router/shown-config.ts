// The config of a router as clients see it: tensors taken from a target where the router's own config has none, and the
// weights that count now, with the reason where a canary rule changed them. Pure.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { TargetPolicy } from './router-policy.ts';

/** A target and what has become of it. */
export interface WeighedTarget {
  readonly policy: TargetPolicy;
  readonly rollback: { readonly stable: WeighedTarget; readonly reason: string } | undefined;
}

/** Its own weight, unless that was taken away, and all that was given to it. */
export function weightNow(target: WeighedTarget, targets: readonly WeighedTarget[]): number {
  const own = target.rollback === undefined ? target.policy.weight : 0;
  const given = targets.filter(({ rollback }) => rollback?.stable === target);
  return given.reduce((sum, { policy }) => sum + policy.weight, own);
}

export function shownConfig(
  config: ModelConfig,
  targets: readonly WeighedTarget[],
  first: ModelConfig | undefined,
): ModelConfig {
  const { router } = config;
  if (router === undefined) return config;
  const shown: ModelConfig = {
    ...config,
    router: {
      ...router,
      target: router.target.map((given, i) => {
        const target = targets[i]!;
        return {
          ...given,
          name: target.policy.name,
          weight: weightNow(target, targets),
          rolled_back: target.rollback?.reason ?? '',
        };
      }),
    },
  };
  if (config.input.length > 0 || config.output.length > 0 || first === undefined) return shown;
  const { input, output, max_batch_size } = first;
  return { ...shown, input, output, max_batch_size };
}
