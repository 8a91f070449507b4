// Loads one version of a model of any kind: the config says which. Called by control.ts.

import { type LoadEnvironment, loadVersion, type VersionSource } from './model/load-version.ts';
import type { ServedModel } from './model/served-model.ts';

/** Throws a StatusError that says why the version cannot be served; then nothing of it is left. */
export function loadServed(source: VersionSource, environment: LoadEnvironment): Promise<ServedModel> {
  return loadVersion(source, environment);
}
