// The comparable form of model statistics: the names of all fields, and differences of counters. Durations
// and time stamps are never compared.
import { isObject, type Json, type JsonObject } from './json.ts';

const COUNTED = [
  'success',
  'fail',
  'queue',
  'compute_input',
  'compute_infer',
  'compute_output',
  'cache_hit',
  'cache_miss',
  'empty_response',
  'cancel',
];

export function normalStatistics(doc: JsonObject): Json {
  return entriesOf(doc)
    .map((entry) => ({
      name: entry.name ?? null,
      version: entry.version ?? null,
      keys: Object.keys(entry).sort(),
      inference_stats: skeleton(entry.inference_stats ?? null),
    }))
    .sort((a, b) => (modelKey(a) < modelKey(b) ? -1 : 1));
}

/** The gRPC form prints no zero counters, so that fields cannot be compared; only who is listed is. */
export function statisticsNames(doc: JsonObject): Json {
  return entriesOf(doc)
    .map(({ name = null, version = null }) => ({ name, version }))
    .sort((a, b) => (modelKey(a) < modelKey(b) ? -1 : 1));
}

/** Counters of `after` that differ from `before`, by model and version. */
export function statisticsDelta(before: JsonObject, after: JsonObject): Json {
  const old = new Map(entriesOf(before).map((entry) => [modelKey(entry), counts(entry)]));
  return Object.fromEntries(
    entriesOf(after).map((entry) => {
      const base = old.get(modelKey(entry));
      const changed = [...counts(entry)]
        .map(([key, value]) => [key, value - (base?.get(key) ?? 0)] as const)
        .filter(([, change]) => change !== 0);
      return [modelKey(entry), Object.fromEntries(changed)];
    }),
  );
}

function entriesOf(doc: JsonObject): JsonObject[] {
  return Array.isArray(doc.model_stats) ? doc.model_stats.filter(isObject) : [];
}

function modelKey(entry: JsonObject): string {
  return `${String(entry.name)}/${String(entry.version)}`;
}

function counts(entry: JsonObject): Map<string, number> {
  const out = new Map<string, number>();
  for (const key of ['inference_count', 'execution_count']) out.set(key, numberOf(entry[key]));
  addCounts(out, 'inference_stats', entry.inference_stats);
  for (const batch of Array.isArray(entry.batch_stats) ? entry.batch_stats : []) {
    if (isObject(batch)) addCounts(out, `batch_stats[${String(batch.batch_size)}]`, batch);
  }
  const responses = isObject(entry.response_stats) ? entry.response_stats : {};
  for (const [index, stats] of Object.entries(responses)) addCounts(out, `response_stats[${index}]`, stats);
  return out;
}

function addCounts(out: Map<string, number>, prefix: string, stats: Json | undefined): void {
  if (!isObject(stats)) return;
  for (const key of COUNTED) {
    const value = stats[key];
    if (isObject(value)) out.set(`${prefix}.${key}`, numberOf(value.count));
  }
}

function numberOf(value: Json | undefined): number {
  return typeof value === 'bigint' || typeof value === 'number' ? Number(value) : 0;
}

/** Keys and kinds of values only. */
function skeleton(value: Json): Json {
  if (Array.isArray(value)) return value.map(skeleton);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, skeleton(v)]));
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'bigint' || typeof value === 'number' ? 'number' : value;
}
