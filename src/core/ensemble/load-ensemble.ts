// Loads one version of an ensemble: finds the models of its steps, checks that they fit together, makes the plan. No
// process is started; the models must be loaded. Called by load-served.ts.

import type { ModelConfig } from '../../domain/model-config.ts';
import { isCached } from '../cache/with-cache.ts';
import { type Labels, readLabels } from '../model/labels.ts';
import type { LoadEnvironment, VersionSource } from '../model/load-version.ts';
import type { ServedModel } from '../model/served-model.ts';
import type { Catalog } from '../repository/catalog.ts';
import { checkNeeds, type LoadFailure } from '../repository/dependencies.ts';
import { validateIoConfig } from '../repository/validate-config.ts';
import { ModelStats } from '../stats/model-stats.ts';
import { type ComposingModel, checkSteps } from './check-steps.ts';
import { Ensemble } from './ensemble.ts';
import { createPlan, type Plan } from './plan.ts';

export function isEnsemble(config: ModelConfig): boolean {
  return config.ensemble_scheduling !== undefined;
}

export async function loadEnsemble(source: VersionSource, environment: LoadEnvironment): Promise<Ensemble> {
  const startMs = environment.clock.nowMs();
  const { catalog } = environment;
  const { version } = source;
  validateIoConfig(source.config);
  const ownLabels = await readLabels(source.config, source.modelDirectory);
  // From here on nothing is waited for: the models found are those that are planned with.
  const models = modelsOfSteps(source.config, catalog);
  const plan = planEnsemble(source.config, models);
  const config = { ...source.config, model_transaction_policy: { decoupled: plan.isDecoupled } };
  const ensemble = new Ensemble({
    config,
    version,
    plan,
    labels: withModelLabels(config, ownLabels, models),
    models,
    stats: new ModelStats({
      name: config.name,
      version,
      metricTags: config.metric_tags,
      config: environment.metricsConfig,
      isCached: isCached(config, environment.responseCache()),
      registry: environment.registry,
    }),
    clock: environment.clock,
    find: (model, wanted) => catalog.findReady(model, wanted),
  });
  ensemble.stats.setLoadDurationSecs((environment.clock.nowMs() - startMs) / 1000);
  return ensemble;
}

/** Throws when it could not be served with what serves now; `failures` tell why something does not. */
export function checkEnsemble(
  config: ModelConfig,
  catalog: Catalog,
  failures: ReadonlyMap<string, LoadFailure>,
): void {
  checkNeeds(config, (need) => ({
    versions: catalog.readyVersions(need).map(({ version }) => version),
    failure: failures.get(need),
  }));
  planEnsemble(config, modelsOfSteps(config, catalog));
}

/** The models that serve the steps now, by step; throws when one does not. */
function modelsOfSteps(config: ModelConfig, catalog: Catalog): ServedModel[] {
  const steps = config.ensemble_scheduling?.step ?? [];
  return steps.map((step) => catalog.find(step.model_name, step.model_version));
}

/** Throws when the models do not fit together. */
export function planEnsemble(config: ModelConfig, models: readonly ComposingModel[]): Plan {
  checkSteps(config, models);
  return createPlan(config, models);
}

/** An output without labels of its own has those of the output that it is. */
function withModelLabels(config: ModelConfig, own: Labels, models: readonly ServedModel[]): Labels {
  const labels = new Map(own);
  config.ensemble_scheduling?.step.forEach((step, i) => {
    for (const [output, tensor] of Object.entries(step.output_map)) {
      if (labels.has(tensor)) continue;
      const found = models[i]!.labelsOf(output);
      if (found !== undefined) labels.set(tensor, found);
    }
  });
  return labels;
}
