// What one load call, one start or one poll has found out and done so far; control.ts walks through it.

import type { StatusError } from '../../domain/status.ts';
import type { LoadFailure } from './dependencies.ts';
import { type LoadOverride, NO_OVERRIDE, type RepositoryAccess, readNeeds } from './find-model.ts';
import { type RepositoryScan, scanRepositories } from './scan.ts';

/** Each model is loaded at most once in it. */
export interface LoadRound {
  readonly scan: RepositoryScan;
  readonly needs: Map<string, readonly string[]>;
  readonly results: Map<string, Promise<StatusError | undefined>>;
  readonly failures: Map<string, LoadFailure>;
  /** Models that are now another than before. */
  readonly changed: Set<string>;
}

export async function beginRound(access: RepositoryAccess): Promise<LoadRound> {
  const scan = await scanRepositories(access.paths);
  return { scan, needs: new Map(), results: new Map(), failures: new Map(), changed: new Set() };
}

/** Of the model and of all it needs; a circle is found later and not walked here. */
export async function readAllNeeds(
  name: string,
  override: LoadOverride,
  reading: { readonly round: LoadRound; readonly access: RepositoryAccess },
): Promise<void> {
  const { round, access } = reading;
  if (round.needs.has(name)) return;
  round.needs.set(name, []);
  const needs = await readNeeds(name, override, round.scan, access);
  round.needs.set(name, needs);
  await Promise.all(needs.map((need) => readAllNeeds(need, NO_OVERRIDE, reading)));
}
