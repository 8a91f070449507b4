// How many cores this process may really use: physical cores, because two threads of one core share the units that
// matrix products need; within what the scheduler allows us, and within the quota of a container.

import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const CPU_DIRECTORY = '/sys/devices/system/cpu';
const QUOTA_FILE = '/sys/fs/cgroup/cpu.max';

export function usableCoreCount(): number {
  const allowed = availableParallelism();
  const physical = physicalCoreCount(readSiblings()) ?? allowed;
  const quota = quotaCores(readQuietly(QUOTA_FILE)) ?? allowed;
  return Math.max(1, Math.min(allowed, physical, quota));
}

/** `siblings[i]` names the threads that share a core with thread i; undefined when nothing is known. */
export function physicalCoreCount(siblings: readonly string[]): number | undefined {
  const cores = new Set(siblings.map((list) => list.trim()).filter((list) => list !== ''));
  return cores.size === 0 ? undefined : cores.size;
}

/** The content of cgroup v2's cpu.max: `<quota> <period>` or `max <period>`; a part of a core counts as one. */
export function quotaCores(text: string | undefined): number | undefined {
  const match = /^(\d+) (\d+)/.exec(text ?? '');
  if (match === null || Number(match[2]) === 0) return undefined;
  return Math.ceil(Number(match[1]) / Number(match[2]));
}

function readSiblings(): string[] {
  try {
    return readdirSync(CPU_DIRECTORY)
      .filter((name) => /^cpu[0-9]+$/.test(name))
      .map((name) => readQuietly(`${CPU_DIRECTORY}/${name}/topology/thread_siblings_list`) ?? '');
  } catch {
    // Not Linux.
    return [];
  }
}

function readQuietly(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // No such file on this system.
    return undefined;
  }
}
