// The name under which the answers of one load of a model are kept. In the memory of one server every load has a new one, so a
// reload forgets. In a shared store it follows from the model's files and config: servers with the same model share their
// answers, also over restarts, and a changed model never meets answers of the old one.

import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { ModelConfig } from '../../domain/model-config.ts';

/** A link to a folder above itself would never end. */
const DEPTH_MAX = 16;

export interface ScopeSource {
  readonly config: ModelConfig;
  readonly version: number;
  readonly modelDirectory: string;
}

export async function scopeOf(source: ScopeSource, isShared: boolean): Promise<string> {
  const { config, version } = source;
  // An ensemble or a router answers with other models, which are not in its own files.
  const isOwn = isShared && config.backend !== '' && !['ensemble', 'router'].includes(config.platform);
  const load = (isOwn ? await contentDigest(source).catch(() => undefined) : undefined) ?? randomUUID();
  return `${config.name}:${version}:${load}`;
}

/** Rejects when a file cannot be read; then nothing is known about the model that another server could know too. */
async function contentDigest({ config, version, modelDirectory }: ScopeSource): Promise<string> {
  const hash = createHash('sha256');
  hash.update(JSON.stringify(config, (_key, value: unknown) => plain(value)));
  const isWanted = (name: string) => !/^\d+$/.test(name) || Number(name) === version;
  for await (const path of filesOf(modelDirectory, isWanted)) {
    hash.update(`\0${relative(modelDirectory, path)}\0`);
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  }
  return hash.digest('base64url');
}

/** JSON knows neither bigint, Map nor the numbers that are none. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return value instanceof Map ? [...value] : value;
}

/** In a fixed order, through links, without what Python leaves behind. */
async function* filesOf(
  directory: string,
  isWanted: (name: string) => boolean = () => true,
  depth = 0,
): AsyncGenerator<string> {
  if (depth > DEPTH_MAX) throw new RangeError(`${directory} lies too deep`);
  for (const name of (await readdir(directory)).sort()) {
    if (name === '__pycache__' || !isWanted(name)) continue;
    const path = join(directory, name);
    if ((await stat(path)).isDirectory()) yield* filesOf(path, undefined, depth + 1);
    else yield path;
  }
}
