// The command line as data: what a flag is, and how the table in flag-table.ts is looked up. The parser, the
// usage text and the start-up warning about flags without effect all read the same rows.

import { FLAG_GROUPS } from './flag-table.ts';

/** `switch` takes no value; `level` is an integer that also accepts true and false, as --log-verbose does. */
export type FlagType = 'boolean' | 'integer' | 'float' | 'string' | 'switch' | 'level';

export interface Flag {
  /** Without the two dashes. */
  readonly name: string;
  readonly type: FlagType;
  /** As it would be typed; empty when there is none. */
  readonly default: string;
  readonly help: string;
  /** What the usage shows in place of a value, when the type alone says too little. */
  readonly argument?: string;
  readonly isRepeatable?: boolean;
  readonly min?: number;
  readonly max?: number;
  /** Lower case; the value is compared without regard to case. */
  readonly choices?: readonly string[];
  /** Why this version accepts the flag and does nothing with it. */
  readonly inert?: string;
}

export interface FlagGroup {
  readonly title: string;
  readonly flags: readonly Flag[];
}

const BY_NAME: ReadonlyMap<string, Flag> = new Map(
  FLAG_GROUPS.flatMap((group) => group.flags.map((flag) => [flag.name, flag] as const)),
);

export function findFlag(name: string): Flag | undefined {
  return BY_NAME.get(name);
}

export function flagNames(): string[] {
  return [...BY_NAME.keys()];
}
