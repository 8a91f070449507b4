// Targets and shadows of a router that are not in the repository: it loads all the same, since they may come from
// elsewhere or later, but most often the name is misspelt. Pure; called by check-model.ts.

import type { ModelConfig } from '../../../domain/model-config.ts';
import { nearestName } from '../../../wire/pbtxt/nearest-name.ts';
import { nameOf } from '../../router/router-policy.ts';
import type { Explanation } from './explanation.ts';

/** `models` are the names of all models beside this one. */
export function routerWarnings({ router }: ModelConfig, models: readonly string[]): Explanation[] {
  const given = [
    ...(router?.target ?? []).map((target) => ({
      what: 'target',
      model: target.model,
      name: nameOf(target),
    })),
    ...(router?.shadow ?? []).map((shadow) => ({
      what: 'shadow',
      model: shadow.model,
      name: nameOf(shadow),
    })),
  ];
  return given
    .filter(({ model }) => !models.includes(model))
    .map(({ what, model, name }) => {
      const nearest = nearestName(model, models);
      const hint = nearest === undefined ? '' : `, or write "${nearest}" if that was meant`;
      return {
        what: `${what} '${name}' is the model '${model}', which is not in this repository`,
        why: what === 'target' ? 'it gets no requests, the other targets get its share' : 'its copies fail',
        fix: [`add the model '${model}'${hint}`],
      };
    });
}
