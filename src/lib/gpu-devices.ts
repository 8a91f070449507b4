// The NVIDIA devices of a Linux machine, by number; none on any other system.

import { readdirSync } from 'node:fs';

export function findGpus(): number[] {
  try {
    return readdirSync('/dev')
      .map((name) => /^nvidia([0-9]+)$/.exec(name)?.[1])
      .filter((digits) => digits !== undefined)
      .map(Number)
      .sort((a, b) => a - b);
  } catch {
    // No /dev: not a system where these devices exist.
    return [];
  }
}
