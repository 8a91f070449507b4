// The comparable form of a Prometheus page: families with type, help and label names, and differences of
// counters. Values themselves depend on what ran before and are never compared.
import { isObject, type Json, type JsonObject } from './json.ts';
import { type NormalObject, SLACK } from './normal-form.ts';

interface Family {
  type?: string;
  help?: string;
  readonly labels: Set<string>;
}

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Undefined when the answer is no metrics page. */
export function normalFamilies(answer: JsonObject): NormalObject | undefined {
  const recorded = answer.metrics_families;
  const families = isObject(recorded)
    ? recordedFamilies(recorded)
    : typeof answer.text === 'string'
      ? parseMetrics(answer.text).families
      : new Map<string, Family>();
  if (families.size === 0) return undefined;
  const out: NormalObject = { [SLACK]: 'superset' };
  for (const [name, family] of families) {
    const labels: NormalObject = Object.fromEntries([...family.labels].map((label) => [label, true]));
    labels[SLACK] = 'superset';
    out[name] = { type: family.type ?? null, help: family.help ?? null, labels };
  }
  return out;
}

export function metricsDelta(
  earlier: JsonObject | undefined,
  answer: JsonObject,
  counters: readonly string[],
): Json {
  const before = earlier === undefined ? new Map<string, number>() : samplesOf(earlier);
  const after = samplesOf(answer);
  return Object.fromEntries(counters.map((key) => [key, (after.get(key) ?? 0) - (before.get(key) ?? 0)]));
}

function samplesOf(answer: JsonObject): Map<string, number> {
  const recorded = answer.metrics_samples;
  if (isObject(recorded))
    return new Map(Object.entries(recorded).map(([key, value]) => [key, Number(value)]));
  return parseMetrics(typeof answer.text === 'string' ? answer.text : '').samples;
}

function recordedFamilies(recorded: JsonObject): Map<string, Family> {
  return new Map(
    Object.entries(recorded).map(([name, value]) => {
      const family = isObject(value) ? value : {};
      const labels = Array.isArray(family.labels) ? family.labels.map(String) : [];
      return [name, { type: String(family.type), help: String(family.help), labels: new Set(labels) }];
    }),
  );
}

function parseMetrics(text: string): { families: Map<string, Family>; samples: Map<string, number> } {
  const families = new Map<string, Family>();
  const samples = new Map<string, number>();
  const family = (name: string): Family => {
    const found = families.get(name) ?? { labels: new Set() };
    families.set(name, found);
    return found;
  };
  for (const line of text.split('\n')) {
    const described = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line);
    if (described !== null) {
      const [, what, name = '', rest = ''] = described;
      family(name)[what === 'HELP' ? 'help' : 'type'] = rest;
      continue;
    }
    const sample = line.startsWith('#') ? null : SAMPLE.exec(line);
    if (sample === null) continue;
    const [, name = '', labelText = '', value] = sample;
    const labels = [...labelText.matchAll(LABEL)].map(([, key = '', text = '']) => [key, text] as const);
    labels.sort(([a], [b]) => (a < b ? -1 : 1));
    family(name).labels.add(labels.map(([key]) => key).join(','));
    samples.set(`${name}{${labels.map(([key, text]) => `${key}="${text}"`).join(',')}}`, Number(value));
  }
  return { families, samples };
}
