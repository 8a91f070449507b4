// The values that have a form of their own: `<name>,<setting>=<value>`, restricted APIs, resources, quantiles,
// patterns. Pure; every refusal is worded as Triton words it.

import {
  DEFAULT_METRICS_CONFIG,
  type MetricsConfig,
  type SummaryQuantile,
} from '../domain/metrics-config.ts';
import { parseBoolean } from './flag-values.ts';
import {
  type RateLimitResource,
  RESTRICTED_CATEGORIES,
  type RestrictedAccess,
  type RestrictedApis,
  type RestrictedCategory,
} from './options.ts';
import { badOption } from './usage-error.ts';

export interface Setting {
  /** Empty: for all. */
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** `<name>,<setting>=<value>` or `<setting>=<value>`; `what` is the word for a name: `backend`, `trace mode`. */
export function parseSetting(flag: string, text: string, what: string): Setting {
  const comma = text.indexOf(',');
  const equals = text.indexOf('=', comma + 1);
  const name = comma < 0 ? '' : text.slice(0, comma);
  if (comma === 0) {
    throw badOption(
      flag,
      `No ${what} specified. --${flag} option format is <${what} name>,<setting>=<value> or <setting>=<value>. Got ${text}`,
    );
  }
  const key = text.slice(comma + 1, Math.max(equals, 0));
  const value = text.slice(equals + 1);
  if (equals < 0 || key === '' || value === '') {
    throw badOption(flag, `--${flag} option format is '<${what} name>,<setting>=<value>'. Got ${text}`);
  }
  return { name, key, value };
}

/** As parseSetting, but a cache has no settings for all. */
export function parseCacheSetting(text: string): Setting {
  if (text.indexOf(',') <= 0) {
    const format = 'No cache specified. --cache-config option format is <cache name>,<setting>=<value>.';
    throw badOption('cache-config', `${format} Got ${text}`);
  }
  return parseSetting('cache-config', text, 'cache');
}

/** By name, later settings of the same key win. */
export function groupSettings(settings: readonly Setting[]): Map<string, Record<string, string>> {
  const groups = new Map<string, Record<string, string>>();
  for (const { name, key, value } of settings) {
    groups.set(name, { ...groups.get(name), [key]: value });
  }
  return groups;
}

export interface RestrictedFlag {
  readonly flag: string;
  /** The word in messages: `api` or `protocol`. */
  readonly what: string;
  readonly headerPrefix: string;
}

/** `<category>[,<category>…]:<header>=<value>`, each category in one group only. */
export function parseRestricted(texts: readonly string[], options: RestrictedFlag): RestrictedApis {
  const { flag, what, headerPrefix } = options;
  const restricted = new Map<RestrictedCategory, RestrictedAccess>();
  for (const text of texts) {
    const colon = text.indexOf(':');
    const equals = text.indexOf('=', colon + 1);
    const key = text.slice(colon + 1, Math.max(equals, 0));
    const value = text.slice(equals + 1);
    if (colon <= 0 || equals < 0 || key === '' || value === '') {
      throw badOption(flag, `--${flag} option format is '<config name>:<setting>=<value>'. Got ${text}`);
    }
    for (const category of text.slice(0, colon).split(',')) {
      if (!isRestrictedCategory(category)) {
        const known = RESTRICTED_CATEGORIES.join(', ');
        throw badOption(flag, `unknown restricted ${what} '${category}' \nIt is one of: ${known}.`);
      }
      if (restricted.has(category)) {
        const message = `restricted ${what} '${category}' can not be specified in multiple config groups`;
        throw badOption(flag, message);
      }
      restricted.set(category, { header: `${headerPrefix}${key}`, value });
    }
  }
  return restricted;
}

function isRestrictedCategory(text: string): text is RestrictedCategory {
  return (RESTRICTED_CATEGORIES as readonly string[]).includes(text);
}

/** `<name>:<count>[:<device>]` */
export function parseResource(text: string): RateLimitResource {
  const [name, count, device, ...rest] = text.split(':');
  const format = "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'";
  if (name === undefined || count === undefined || rest.length > 0) {
    throw badOption('rate-limit-resource', `--rate-limit-resource option format is ${format}. Got ${text}`);
  }
  return {
    name,
    count: parseInteger('rate-limit-resource', count),
    device: device === undefined ? -1 : parseInteger('rate-limit-resource', device),
  };
}

/** `flag` is what the message names; for a setting it is the flag and the setting. */
export function parseInteger(flag: string, text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw badOption(flag, `Invalid option value. Got ${text}`);
  return Number(text);
}

/** A setting that Triton does not know has no effect there; here its name is an error, since it is a typo. */
export function parseMetricsConfig(texts: readonly string[]): MetricsConfig {
  let config = DEFAULT_METRICS_CONFIG;
  for (const text of texts) {
    const equals = text.indexOf('=');
    const key = text.slice(0, Math.max(equals, 0));
    const value = text.slice(equals + 1);
    if (key === '' || key.includes(',') || value === '') {
      throw badOption('metrics-config', `--metrics-config option format is <setting>=<value>. Got ${text}`);
    }
    config = { ...config, ...metricsSetting(key, value) };
  }
  return config;
}

function metricsSetting(key: string, value: string): Partial<MetricsConfig> {
  switch (key) {
    case 'counter_latencies':
      return { isCounterLatencies: settingBoolean(key, value) };
    case 'histogram_latencies':
      return { isHistogramLatencies: settingBoolean(key, value) };
    case 'summary_latencies':
      return { isSummaryLatencies: settingBoolean(key, value) };
    case 'summary_quantiles':
      return { summaryQuantiles: parseQuantiles(value) };
    default:
      throw badOption(
        'metrics-config',
        `unknown setting '${key}'. It is one of: counter_latencies, histogram_latencies, summary_latencies, summary_quantiles.`,
      );
  }
}

function settingBoolean(key: string, value: string): boolean {
  const isOn = parseBoolean(value);
  if (isOn === undefined) throw badOption(`metrics-config ${key}`, `invalid value for bool option: ${value}`);
  return isOn;
}

/** `0.5:0.05,0.9:0.01` */
function parseQuantiles(text: string): SummaryQuantile[] {
  return text.split(',').map((pair) => {
    const match = /^([\d.]+):([\d.]+)$/.exec(pair);
    const quantile = Number(match?.[1]);
    const error = Number(match?.[2]);
    if (!(quantile >= 0 && quantile <= 1 && error >= 0 && error <= 1)) {
      const flag = 'metrics-config summary_quantiles';
      throw badOption(flag, `expected <quantile>:<error>,... with numbers from 0 to 1. Got ${pair}`);
    }
    return { quantile, error };
  });
}

/**
 * RE2 → RegExp. Triton matches anywhere in a name and ignores case unless the pattern starts with `(?-i)`.
 * The spellings that differ are translated; what JavaScript cannot compile is refused.
 */
export function parsePattern(flag: string, text: string): RegExp | undefined {
  if (text === '') return undefined;
  const prefix = /^\(\?([imsU]*)(?:-([imsU]+))?\)/.exec(text);
  const isCaseKept = prefix?.[2]?.includes('i') ?? false;
  const source = text
    .slice(prefix?.[0].length ?? 0)
    .replaceAll('(?P<', '(?<')
    .replaceAll('\\A', '^')
    .replaceAll('\\z', '$');
  try {
    return new RegExp(source, isCaseKept ? '' : 'i');
  } catch (error) {
    throw badOption(
      flag,
      `invalid pattern '${text}': ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** `<prefix>[,<prefix>…]`; undefined when the flag is absent. A prefix of nothing would allow every key. */
export function parseShmPrefixes(texts: readonly string[]): readonly string[] | undefined {
  if (texts.length === 0) return undefined;
  const prefixes = texts.flatMap((text) => text.split(',')).map((text) => text.replace(/^\/+/, ''));
  if (prefixes.includes('')) {
    throw badOption(
      'shared-memory-allow',
      `--shared-memory-allow option format is '<prefix>[,<prefix>...]' without empty prefixes. Got ${texts.join(' ')}`,
    );
  }
  return prefixes;
}
