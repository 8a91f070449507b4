// The trace settings of the command line: --trace-config and the five flags it replaced.
// Called by parse-flags.ts; the two ways cannot be mixed.

import type { FlagValues } from './flag-values.ts';
import type { TraceLevel, TraceOptions } from './options.ts';
import { parseInteger, parseSetting, type Setting } from './setting-values.ts';
import { badOption, UsageError } from './usage-error.ts';

const OLD_FLAGS = ['trace-file', 'trace-level', 'trace-rate', 'trace-count', 'trace-log-frequency'] as const;

export function traceOptions(values: FlagValues): TraceOptions {
  const settings = values
    .texts('trace-config')
    .map((text) => parseSetting('trace-config', text, 'trace mode'));
  for (const { name } of settings) if (name !== '') parseMode(name, 'trace-config');
  const old = OLD_FLAGS.find((flag) => values.has(flag));
  if (old !== undefined && settings.length > 0) {
    throw new UsageError(
      `Error: Incompatible flags --${old} and --trace-config both provided. Please use --trace-config.`,
    );
  }
  return settings.length > 0 ? fromSettings(settings) : fromOldFlags(values);
}

function fromSettings(settings: readonly Setting[]): TraceOptions {
  const last = (name: string, key: string) =>
    settings.findLast((setting) => setting.name === name && setting.key === key)?.value;
  const integer = (name: string, key: string, fallback: number) => {
    const value = last(name, key);
    const place = name === '' ? key : `${name},${key}`;
    return value === undefined ? fallback : parseInteger(`trace-config ${place}`, value);
  };
  const levels = settings.filter(({ name, key }) => name === '' && key === 'level').map(({ value }) => value);
  const forOpentelemetry = settings.filter(({ name }) => name === 'opentelemetry');
  return {
    mode: parseMode(last('', 'mode') ?? 'triton', 'trace-config mode'),
    levels: parseLevels(levels, 'trace-config level'),
    rate: integer('', 'rate', 1000),
    count: integer('', 'count', -1),
    file: last('triton', 'file') ?? '',
    logFrequency: integer('triton', 'log-frequency', 0),
    opentelemetry: Object.fromEntries(forOpentelemetry.map(({ key, value }) => [key, value])),
  };
}

function fromOldFlags(values: FlagValues): TraceOptions {
  return {
    mode: 'triton',
    levels: parseLevels(values.texts('trace-level'), 'trace-level'),
    rate: values.number('trace-rate'),
    count: values.number('trace-count'),
    file: values.text('trace-file'),
    logFrequency: values.number('trace-log-frequency'),
    opentelemetry: {},
  };
}

function parseMode(text: string, flag: string): TraceOptions['mode'] {
  const mode = text.toLowerCase();
  if (mode === 'triton' || mode === 'opentelemetry') return mode;
  throw badOption(
    flag,
    `invalid value for trace mode option: ${text}. Available options are "triton" and "opentelemetry"`,
  );
}

/** Levels add up, but one OFF among them switches all off. */
function parseLevels(texts: readonly string[], flag: string): TraceLevel[] {
  const levels = new Set<TraceLevel>();
  let isOff = false;
  for (const text of texts) {
    switch (text.toLowerCase()) {
      case 'off':
      case 'false':
        isOff = true;
        break;
      // the older words for the same
      case 'on':
      case 'true':
      case 'min':
      case 'max':
      case 'timestamps':
        levels.add('TIMESTAMPS');
        break;
      case 'tensors':
        levels.add('TENSORS');
        break;
      default:
        throw badOption(flag, `invalid value for trace level option: ${text}`);
    }
  }
  return isOff ? [] : [...levels];
}
