// Checks one version of an ensemble as a load would, from the reports on the models it is made of. Called by
// check-model.ts; starts nothing itself.

import { planEnsemble } from '../ensemble/load-ensemble.ts';
import type { CheckedVersion } from '../model/check-version.ts';
import { readLabels } from '../model/labels.ts';
import type { VersionSource } from '../model/load-version.ts';
import type { ModelReport } from './check-model.ts';
import { checkNeeds, circularDependency, type NeedState, type Needs, needsOf } from './dependencies.ts';
import { validateIoConfig } from './validate-config.ts';

/** The other models of the repository. */
export interface OtherModels {
  readonly needs: Needs;
  /** Undefined when there is no such model. */
  reportOf(name: string): Promise<ModelReport | undefined>;
}

/** Throws what a load would throw. */
export async function checkEnsembleVersion(
  source: VersionSource,
  others: OtherModels,
): Promise<CheckedVersion> {
  const { config } = source;
  const circle = circularDependency(config.name, others.needs);
  if (circle !== undefined) throw circle;
  const reports = new Map<string, ModelReport | undefined>();
  for (const need of needsOf(config)) reports.set(need, await others.reportOf(need));
  checkNeeds(config, (need) => stateOf(reports.get(need)));
  validateIoConfig(config);
  const steps = config.ensemble_scheduling?.step ?? [];
  const models = steps.map(({ model_name: name }) => {
    const served = reports.get(name)!.served!.config;
    return { config: served, isDecoupled: served.model_transaction_policy?.decoupled ?? false };
  });
  const { isDecoupled } = planEnsemble(config, models);
  const labels = await readLabels(config, source.modelDirectory);
  return {
    config: { ...config, model_transaction_policy: { decoupled: isDecoupled } },
    labels,
    instanceCount: 0,
  };
}

function stateOf(report: ModelReport | undefined): NeedState {
  if (report === undefined) return { versions: [], failure: { kind: 'missing', reason: '' } };
  if (report.served !== undefined) return { versions: report.servedVersions, failure: undefined };
  const reason = report.problems[0]?.error ?? '';
  return { versions: [], failure: { kind: 'failed', reason } };
}
