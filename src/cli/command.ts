// argv → what to do: serve, validate, pull, help, version.
// `serve` is the default, so that a tritonserver command line works as it is.

import { closest } from './closest.ts';
import type { ServerOptions } from './options.ts';
import { parseFlags } from './parse-flags.ts';
import { type PullOptions, parsePull } from './parse-pull.ts';
import { UsageError } from './usage-error.ts';

export type Command =
  | { readonly kind: 'serve'; readonly options: ServerOptions }
  | ({ readonly kind: 'validate' } & ValidateOptions)
  | { readonly kind: 'pull'; readonly options: PullOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' };

export interface ValidateOptions {
  readonly directory: string;
  readonly isPrintConfig: boolean;
  /** Where Python-based backends are, as the server's flag of this name says. */
  readonly backendDirectory: string | undefined;
}

const BACKEND_DIRECTORY = '--backend-directory=';

const COMMANDS = ['serve', 'validate', 'pull', 'help'] as const;

/** `argv` without the program's name; throws UsageError. */
export function parseCommand(argv: readonly string[]): Command {
  const [first, ...rest] = argv;
  // asked for anywhere, they come before any complaint about the rest
  if (argv.includes('--help') || argv.includes('-h')) return { kind: 'help' };
  if (argv.includes('--version')) return { kind: 'version' };
  switch (first) {
    case 'help':
      return { kind: 'help' };
    case 'validate':
      return parseValidate(rest);
    case 'pull':
      return { kind: 'pull', options: parsePull(rest) };
    case 'serve':
      return { kind: 'serve', options: parseFlags(rest) };
    default:
      if (first !== undefined && !first.startsWith('-')) throw unknownCommand(first);
      return { kind: 'serve', options: parseFlags(argv) };
  }
}

function parseValidate(rest: readonly string[]): Command {
  let directory: string | undefined;
  let isPrintConfig = false;
  let backendDirectory: string | undefined;
  for (const argument of rest) {
    if (argument === '--print-config') isPrintConfig = true;
    else if (argument.startsWith(BACKEND_DIRECTORY))
      backendDirectory = argument.slice(BACKEND_DIRECTORY.length);
    else if (argument.startsWith('-') || directory !== undefined) {
      throw new UsageError(`Unexpected argument: ${argument}`);
    } else directory = argument;
  }
  if (directory === undefined) {
    throw new UsageError('validate needs the directory of a model repository: nereid validate <directory>');
  }
  return { kind: 'validate', directory, isPrintConfig, backendDirectory };
}

function unknownCommand(word: string): UsageError {
  const guess = closest(word, COMMANDS);
  const hint = guess === undefined ? '' : `\nDid you mean ${guess}?`;
  return new UsageError(`Unexpected argument: ${word}${hint}`);
}
