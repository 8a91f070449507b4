// The trace settings of the command line: --trace-config and the five flags it replaced.
// Called by parse-flags.ts; the two ways cannot be mixed.

import type { TraceLevel, TraceMode, TraceOptions } from '../domain/trace-options.ts';
import type { FlagValues } from './flag-values.ts';
import { parseInteger, parseSetting, type Setting } from './setting-values.ts';
import { badOption, UsageError } from './usage-error.ts';

const OLD_FLAGS = ['trace-file', 'trace-level', 'trace-rate', 'trace-count', 'trace-log-frequency'] as const;

/** The batch span processor: spans that wait, milliseconds between two exports, spans in one. */
const BATCH_DEFAULTS: Readonly<Record<string, string>> = {
  bsp_max_queue_size: '2048',
  bsp_schedule_delay: '5000',
  bsp_max_export_batch_size: '512',
};
const UINT32_MAX = 2 ** 32 - 1;

export function traceOptions(values: FlagValues): TraceOptions {
  const settings = values
    .texts('trace-config')
    .map((text) => parseSetting('trace-config', text, 'trace mode'))
    .map((setting) => ({ ...setting, name: setting.name && parseMode(setting.name, 'trace-config') }));
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
  const mode = parseMode(last('', 'mode') ?? 'triton', 'trace-config mode');
  return {
    mode,
    levels: parseLevels(levels, 'trace-config level'),
    rate: integer('', 'rate', 1000),
    count: integer('', 'count', -1),
    file: last('triton', 'file') ?? '',
    logFrequency: integer('triton', 'log-frequency', 0),
    opentelemetry: mode === 'opentelemetry' ? opentelemetrySettings(settings) : [],
  };
}

/** Those given, then the batch processor's from the environment or with their defaults, as Triton lists them. */
function opentelemetrySettings(settings: readonly Setting[]): TraceOptions['opentelemetry'] {
  const given = settings
    .filter(({ name }) => name === 'opentelemetry')
    .map(({ key, value }): [string, string] => [
      key,
      key in BATCH_DEFAULTS ? unsignedText(`trace-config opentelemetry,${key}`, value) : value,
    ]);
  const missing = Object.entries(BATCH_DEFAULTS).filter(([key]) => !given.some(([other]) => other === key));
  return [
    ...given,
    ...missing.map(([key, fallback]): [string, string] => {
      const variable = `OTEL_${key.toUpperCase()}`;
      return [key, unsignedText(variable, process.env[variable] ?? fallback)];
    }),
  ];
}

function unsignedText(flag: string, text: string): string {
  const value = parseInteger(flag, text);
  if (value < 0 || value > UINT32_MAX) throw badOption(flag, `Invalid option value. Got ${text}`);
  return String(value);
}

function fromOldFlags(values: FlagValues): TraceOptions {
  return {
    mode: 'triton',
    levels: parseLevels(values.texts('trace-level'), 'trace-level'),
    rate: values.number('trace-rate'),
    count: values.number('trace-count'),
    file: values.text('trace-file'),
    logFrequency: values.number('trace-log-frequency'),
    opentelemetry: [],
  };
}

function parseMode(text: string, flag: string): TraceMode {
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
