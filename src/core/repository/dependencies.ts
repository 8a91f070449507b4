// Which models an ensemble needs and whether they are there: Triton's checks, in its words. Pure; control.ts acts on it.

import type { ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';

/** Names of the models a model is made of, each once; most models are made of none. */
export function needsOf(config: Pick<ModelConfig, 'ensemble_scheduling'>): readonly string[] {
  const steps = config.ensemble_scheduling?.step ?? [];
  return [...new Set(steps.map((step) => step.model_name))];
}

export type Needs = ReadonlyMap<string, readonly string[]>;

/** Undefined when the model does not need itself, directly or through others. */
export function circularDependency(name: string, needs: Needs): StatusError | undefined {
  const last = needs.get(name)?.find((need) => need === name || isReachable(need, name, needs));
  if (last === undefined) return undefined;
  return invalidArgument(`circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`);
}

function isReachable(from: string, to: string, needs: Needs): boolean {
  const seen = new Set<string>();
  const pending = [from];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (name === to) return true;
    if (seen.has(name)) continue;
    seen.add(name);
    pending.push(...(needs.get(name) ?? []));
  }
  return false;
}

/** Why a model could not be loaded. */
export interface LoadFailure {
  /** Not in the repository or unreadable; an ensemble that cannot be; a version that does not start. */
  readonly kind: 'missing' | 'invalid' | 'failed';
  readonly reason: string;
}

/** What an ensemble must know of a model it needs. */
export interface NeedState {
  /** Versions that serve. */
  readonly versions: readonly number[];
  readonly failure: LoadFailure | undefined;
}

/** Throws when a model the ensemble needs does not serve. */
export function checkNeeds(config: ModelConfig, stateOf: (name: string) => NeedState): void {
  const { name } = config;
  const states = new Map(needsOf(config).map((need) => [need, stateOf(need)]));
  const isGone = ({ versions, failure }: NeedState) => versions.length === 0 && failure?.kind === 'missing';
  const gone = [...states].filter(([, state]) => isGone(state)).map(([need]) => need);
  if (gone.length > 0) {
    throw invalidArgument(
      `ensemble ${name} contains models that are not available or ambiguous: ${gone.sort().join(', ')}`,
    );
  }
  for (const [need, { versions, failure }] of states) {
    if (versions.length > 0) continue;
    if (failure?.kind === 'invalid') {
      throw invalidArgument(
        `ensemble '${name}' depends on '${need}' which is not valid. Model '${need}' failed with error: ${failure.reason}`,
      );
    }
    const why = failure === undefined ? '' : `. Model '${need}' loading failed with error: ${failure.reason}`;
    throw invalidArgument(`ensemble '${name}' depends on '${need}' which has no loaded version${why}`);
  }
  for (const { model_name: need, model_version: version } of config.ensemble_scheduling?.step ?? []) {
    if (version === -1 || states.get(need)!.versions.includes(version)) continue;
    throw invalidArgument(
      `ensemble '${name}' depends on '${need}' whose required version ${version} is not loaded.`,
    );
  }
}
