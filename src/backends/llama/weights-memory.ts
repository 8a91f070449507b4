// Where the weights lie: in memory of the host's own, or mapped from the file. Linux gives pages of 2 MB only to the former,
// and a CPU that reads all weights for every token is 5 to 15 % faster with them (docs/adr/0010); a mapped file needs no memory
// that other hosts cannot use too, so it stays mapped where memory is short. Called by llama-backend.ts for each GGUF.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { freemem } from 'node:os';
import { basename, dirname, join } from 'node:path';

const PAGES_FILE = '/sys/kernel/mm/transparent_hugepage/enabled';
/** Of the free memory. The rest is for the KV cache, for other models, and for the file that Linux keeps as well while it is read. */
const SHARE_MAX = 0.5;

export interface WeightsFacts {
  /** Of the parameter `mmap`; undefined: not given. */
  readonly isMapped: boolean | undefined;
  readonly isOnGpu: boolean;
  readonly fileBytes: number;
  readonly freeBytes: number;
  readonly hasLargePages: boolean;
}

export function isMappedBest({
  isMapped,
  isOnGpu,
  fileBytes,
  freeBytes,
  hasLargePages,
}: WeightsFacts): boolean {
  if (isMapped !== undefined) return isMapped;
  return isOnGpu || !hasLargePages || fileBytes > freeBytes * SHARE_MAX;
}

/** Whether memory that asks for them gets pages of 2 MB. */
export function hasLargePages(): boolean {
  try {
    return !readFileSync(PAGES_FILE, 'utf8').includes('[never]');
  } catch {
    // Not Linux, or a kernel without them.
    return false;
  }
}

/** Of a model in parts, all of them. */
export function weightsBytes(file: string): number {
  const parts = /^(.*)-\d{5}-of-(\d{5})\.gguf$/.exec(basename(file));
  if (parts === null) return statSync(file).size;
  const [, stem, count] = parts;
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(`${stem}-`) && name.endsWith(`-of-${count}.gguf`))
    .reduce((sum, name) => sum + statSync(join(dirname(file), name)).size, 0);
}

/** Older releases of Node do not know the limit of a container. */
export function freeMemoryBytes(): number {
  return process.availableMemory?.() ?? freemem();
}
