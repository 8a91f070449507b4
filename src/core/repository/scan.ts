// What lies in the model repositories: model directories, version directories, and a fingerprint that changes
// when anything below a model does. Everything may change or vanish while it is being read; that is not an error.

import { createHash } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelVersionPolicy } from '../../domain/model-config.ts';
import type { VersionEntry } from './complete-backend.ts';

export interface ModelDirectory {
  readonly name: string;
  readonly path: string;
}

/** Directories by model name; more than one when the name appears in several repositories. */
export type RepositoryScan = ReadonlyMap<string, readonly ModelDirectory[]>;

export interface VersionScan {
  readonly versions: readonly number[];
  readonly ignored: readonly string[];
}

/** Directories beside the versions that have a meaning of their own; the last for models in JavaScript. */
const RESERVED_DIRECTORIES: ReadonlySet<string> = new Set([
  'warmup',
  'initial_state',
  'configs',
  'node_modules',
]);

export async function scanRepositories(paths: readonly string[]): Promise<RepositoryScan> {
  const found = new Map<string, ModelDirectory[]>();
  for (const path of paths) {
    for (const entry of await list(path)) {
      if (entry.name.startsWith('.') || !(await isDirectory(entry, join(path, entry.name)))) continue;
      const directory = { name: entry.name, path: join(path, entry.name) };
      const same = found.get(entry.name);
      if (same === undefined) found.set(entry.name, [directory]);
      else same.push(directory);
    }
  }
  return found;
}

export async function scanVersions(modelPath: string): Promise<VersionScan> {
  const versions: number[] = [];
  const ignored: string[] = [];
  for (const entry of await list(modelPath)) {
    if (RESERVED_DIRECTORIES.has(entry.name) || entry.name.startsWith('.')) continue;
    if (!(await isDirectory(entry, join(modelPath, entry.name)))) continue;
    const isVersion = /^(0|[1-9][0-9]*)$/.test(entry.name) && Number.isSafeInteger(Number(entry.name));
    if (isVersion) versions.push(Number(entry.name));
    else ignored.push(entry.name);
  }
  versions.sort((a, b) => a - b);
  return { versions, ignored };
}

/** The content of a version directory, as far as it tells which backend the model wants. */
export async function listVersion(path: string): Promise<VersionEntry[]> {
  const entries: VersionEntry[] = [];
  for (const entry of await list(path)) {
    entries.push({ name: entry.name, isDirectory: await isDirectory(entry, join(path, entry.name)) });
  }
  return entries;
}

export interface VersionSelection {
  /** Ascending. */
  readonly selected: readonly number[];
  /** Versions that the policy names and that are not there. */
  readonly missing: readonly number[];
}

export function selectVersions(
  available: readonly number[],
  policy: ModelVersionPolicy | undefined,
): VersionSelection {
  if (policy?.specific !== undefined) {
    const wanted = [...new Set(policy.specific.versions)].sort((a, b) => a - b);
    return {
      selected: wanted.filter((version) => available.includes(version)),
      missing: wanted.filter((version) => !available.includes(version)),
    };
  }
  if (policy?.all !== undefined) return { selected: available, missing: [] };
  const count = Math.max(1, policy?.latest?.num_versions ?? 1);
  return { selected: available.slice(-count), missing: [] };
}

/** Changes when anything below `path` is added, removed, renamed or written; equal means nothing to reload. */
export async function fingerprintOf(path: string): Promise<string> {
  const hash = createHash('sha1');
  const pending = [path];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const entry of await list(directory)) {
      const child = join(directory, entry.name);
      const info = await stat(child).catch(() => undefined);
      if (info === undefined) continue;
      if (info.isDirectory()) pending.push(child);
      hash.update(`${child}\0${info.isDirectory() ? '' : `${info.size} ${info.mtimeMs} ${info.ino}`}\0`);
    }
  }
  return hash.digest('hex');
}

async function list(path: string): Promise<Dirent[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function isDirectory(entry: Dirent, path: string): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  const info = await stat(path).catch(() => undefined);
  return info?.isDirectory() ?? false;
}
