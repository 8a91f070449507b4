// How a row of the flag tables is written: name, type, default, help, and what else there is to say.
// Only flag-table.ts and listener-flags.ts use it.

import type { Flag, FlagType } from './flags.ts';

export type Extra = Omit<Flag, 'name' | 'type' | 'default' | 'help'>;

export function row(name: string, type: FlagType, fallback: string, help: string, extra: Extra = {}): Flag {
  return { name, type, default: fallback, help, ...extra };
}

export const COUNT: Extra = { min: 0, max: 2 ** 31 - 1 };
export const THREADS: Extra = {
  ...COUNT,
  inert: 'requests are handled by one event loop, not by a pool of threads',
};
