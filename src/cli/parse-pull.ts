// The arguments of `nereid pull`, as --flag=value or --flag value. Called by command.ts; throws UsageError.
// Values that only a look at the hub can refuse are left to the pull itself.

import { closest } from './closest.ts';
import { UsageError } from './usage-error.ts';

export interface PullOptions {
  /** owner/name of the hub, or a URL. */
  readonly source: string;
  readonly repository: string;
  readonly name: string | undefined;
  readonly file: string | undefined;
  readonly revision: string | undefined;
  readonly token: string | undefined;
  readonly sha256: string | undefined;
  readonly isForced: boolean;
}

const DEFAULT_REPOSITORY = 'models';
const VALUE_FLAGS = ['model-repository', 'name', 'file', 'revision', 'token', 'sha256'] as const;
const FLAGS: readonly string[] = [...VALUE_FLAGS, 'force'];

type ValueFlag = (typeof VALUE_FLAGS)[number];

export function parsePull(rest: readonly string[]): PullOptions {
  const values = new Map<ValueFlag, string>();
  let source: string | undefined;
  let isForced = false;
  for (let index = 0; index < rest.length; index++) {
    const argument = rest[index]!;
    if (!argument.startsWith('-')) {
      if (source !== undefined) throw new UsageError(`Unexpected argument: ${argument}`);
      source = argument;
      continue;
    }
    const [flag = '', given] = argument.replace(/^--/, '').split(/=(.*)/s);
    if (flag === 'force' && given === undefined) {
      isForced = true;
      continue;
    }
    if (!isValueFlag(flag)) throw unknownFlag(argument);
    const value = given ?? rest[++index];
    if (value === undefined || value === '') throw new UsageError(`--${flag} needs a value`);
    values.set(flag, value);
  }
  if (source === undefined) {
    throw new UsageError(
      'pull needs a source: nereid pull <owner/name or URL> [--model-repository=<directory>]',
    );
  }
  const sha256 = values.get('sha256')?.toLowerCase();
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256)) {
    throw new UsageError(`--sha256 takes 64 hexadecimal digits, found '${values.get('sha256')}'`);
  }
  return {
    source,
    repository: values.get('model-repository') ?? DEFAULT_REPOSITORY,
    name: values.get('name'),
    file: values.get('file'),
    revision: values.get('revision'),
    token: values.get('token'),
    sha256,
    isForced,
  };
}

function isValueFlag(flag: string): flag is ValueFlag {
  return (VALUE_FLAGS as readonly string[]).includes(flag);
}

function unknownFlag(argument: string): UsageError {
  const guess = closest(argument.replace(/^--?/, '').replace(/=.*$/s, ''), FLAGS);
  return new UsageError(
    `Unexpected argument: ${argument}${guess === undefined ? '' : `\nDid you mean --${guess}?`}`,
  );
}
