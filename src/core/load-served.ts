// Loads one version of a model of any kind: the config says which. Called by control.ts.

import { withCache } from './cache/with-cache.ts';
import { isEnsemble, loadEnsemble } from './ensemble/load-ensemble.ts';
import { type LoadEnvironment, loadVersion, type VersionSource } from './model/load-version.ts';
import type { ServedModel } from './model/served-model.ts';
import { isRouter, loadRouter } from './router/load-router.ts';

/** Throws a StatusError that says why the version cannot be served; then nothing of it is left. */
export async function loadServed(source: VersionSource, environment: LoadEnvironment): Promise<ServedModel> {
  if (isRouter(source)) return loadRouter(source, environment);
  const load = isEnsemble(source.config) ? loadEnsemble : loadVersion;
  return withCache(await load(source, environment), source, environment.responseCache());
}
