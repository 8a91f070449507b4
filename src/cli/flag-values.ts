// argv → the values of flags, each checked against its row of the table.
// Nothing here knows what a flag means; parse-flags.ts does.

import { closest } from './closest.ts';
import { type Flag, findFlag, flagNames } from './flags.ts';
import { badOption, UsageError } from './usage-error.ts';

export interface FlagValues {
  /** Whether it was on the command line. */
  has(name: string): boolean;
  /** The last value given, or the default. */
  text(name: string): string;
  /** Every value given, in order. */
  texts(name: string): readonly string[];
  boolean(name: string): boolean;
  /** Of an integer, float or level flag. */
  number(name: string): number;
  /** Names in the order of the command line, without repeats. */
  given(): readonly string[];
}

const INT_MAX = 2 ** 31 - 1;

/** `--flag=value` and `--flag value`; throws UsageError. */
export function parseFlagValues(argv: readonly string[]): FlagValues {
  const given = new Map<string, string[]>();
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    const equals = argument.indexOf('=');
    const name = argument.slice(2, equals < 0 ? undefined : equals);
    const flag = argument.startsWith('--') ? findFlag(name) : undefined;
    if (flag === undefined) throw unexpected(argument);
    let value = equals < 0 ? undefined : argument.slice(equals + 1);
    if (flag.type === 'switch') {
      if (value !== undefined) throw new UsageError(`option '--${name}' doesn't allow an argument`);
      value = 'true';
    } else if (value === undefined) {
      i++;
      value = argv[i];
      if (value === undefined) throw new UsageError(`option '--${name}' requires an argument`);
    }
    checkValue(flag, value);
    const values = given.get(name);
    if (values === undefined) given.set(name, [value]);
    else values.push(value);
  }
  return valuesOf(given);
}

function valuesOf(given: ReadonlyMap<string, readonly string[]>): FlagValues {
  function text(name: string): string {
    const flag = findFlag(name);
    if (flag === undefined) throw new Error(`no such flag: ${name}`);
    return given.get(name)?.at(-1) ?? flag.default;
  }
  return {
    has: (name) => given.has(name),
    text,
    texts: (name) => given.get(name) ?? [],
    boolean: (name) => parseBoolean(text(name)) ?? false,
    number: (name) => parseLevel(text(name)),
    given: () => [...given.keys()],
  };
}

function unexpected(argument: string): UsageError {
  const message = `Unexpected argument: ${argument}`;
  const equals = argument.indexOf('=');
  const name = argument.replace(/^-+/, '').slice(0, equals < 0 ? undefined : equals);
  const guess = closest(name.replace(/=.*$/s, '').replaceAll('_', '-'), flagNames());
  return new UsageError(guess === undefined ? message : `${message}\nDid you mean --${guess}?`);
}

function checkValue(flag: Flag, value: string): void {
  switch (flag.type) {
    case 'boolean':
      if (parseBoolean(value) === undefined) {
        throw badOption(flag.name, `invalid value for bool option: ${value}`);
      }
      return;
    case 'integer':
    case 'float':
    case 'level':
      checkNumber(flag, value);
      return;
    case 'string':
      if (flag.choices !== undefined && !flag.choices.includes(value.toLowerCase())) {
        throw badOption(
          flag.name,
          `invalid argument for --${flag.name}\nGot ${value}; it is one of: ${flag.choices.join(', ')}.`,
        );
      }
      return;
    case 'switch':
      return;
  }
}

const INTEGER = /^[+-]?\d+$/;
const FLOAT = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

function checkNumber(flag: Flag, value: string): void {
  const isNumber =
    (flag.type === 'float' ? FLOAT : INTEGER).test(value) ||
    (flag.type === 'level' && parseBoolean(value) !== undefined);
  if (!isNumber) throw badOption(flag.name, `Invalid option value. Got ${value}`);
  const number = parseLevel(value);
  const max = flag.max ?? Number.MAX_SAFE_INTEGER;
  const min = flag.min ?? -INT_MAX;
  if (number < min || number > max) {
    throw badOption(
      flag.name,
      `Provided option value is out of bound. Got ${value}\nIt is between ${min} and ${max}.`,
    );
  }
}

/** As Triton: also on and off, in any case; undefined for anything else. */
export function parseBoolean(text: string): boolean | undefined {
  const lower = text.toLowerCase();
  if (lower === 'true' || lower === 'on' || lower === '1') return true;
  if (lower === 'false' || lower === 'off' || lower === '0') return false;
  return undefined;
}

function parseLevel(text: string): number {
  const flag = parseBoolean(text);
  return flag === undefined ? Number(text) : Number(flag);
}
