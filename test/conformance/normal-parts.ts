// Comparable forms that HTTP and gRPC answers share: error texts, index entries, server metadata, configs. Pure.
import type { CaseCompare } from './cases.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { type Normal, type NormalObject, SLACK } from './normal-form.ts';

export interface NormalOptions {
  readonly compare: CaseCompare;
  /** The answer of the step that `delta_from` names, of the same side. */
  readonly earlier?: JsonObject | undefined;
  /** An index entry of any other model is not looked at: the recording knew more models than the corpus holds. */
  readonly modelsHeld: ReadonlySet<string>;
}

/** The version is some text; extensions have no order. */
export function normalServer(doc: JsonObject): Json {
  const version = doc.version;
  const extensions = Array.isArray(doc.extensions) ? doc.extensions.map(String).sort() : [];
  return {
    ...doc,
    version: typeof version === 'string' && version !== '' ? 'text' : (version ?? null),
    extensions,
  };
}

/** A config may hold more fields than the recorded one, as long as they hold their defaults. */
export function withDefaultsAllowed(value: Json): Normal {
  if (Array.isArray(value)) return value.map(withDefaultsAllowed);
  if (!isObject(value)) return value;
  const out: NormalObject = Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withDefaultsAllowed(inner)]),
  );
  out[SLACK] = 'defaults';
  return out;
}

export function normalIndex(items: readonly Json[], { compare, modelsHeld }: NormalOptions): JsonObject[] {
  const looked = compare.models === undefined ? modelsHeld : new Set(compare.models);
  return items
    .filter(isObject)
    .filter((item) => looked.has(String(item.name)))
    .map((item) =>
      item.reason === undefined ? item : { ...item, reason: normalErrorText(String(item.reason)) },
    )
    .sort(byText('name', 'version'));
}

export function byText(...keys: string[]): (a: JsonObject, b: JsonObject) => number {
  const text = (item: JsonObject) => keys.map((key) => String(item[key])).join('\0');
  return (a, b) => (text(a) < text(b) ? -1 : Number(text(a) > text(b)));
}

const ERROR_RULES: ReadonlyArray<readonly [RegExp, string]> = [
  // Folders of the machine.
  [/\/[^\s'"():;,]*\/((?:models|models_explicit)\/)/g, '<dir>/$1'],
  [/\/[^\s'"():;,]*\/folder[A-Za-z0-9]{6}\//g, '<dir>/'],
  // Reasons of other people's parsers.
  [/(onnx runtime error \d+:).*/s, '$1 ...'],
  [/(failed to parse the request JSON buffer:).*/s, '$1 ...'],
  // Tracebacks, and numbers of instances in the names that the Python backend gives them.
  [/for model (?:instance )?'([^']+?)(?:_\d+)+'/g, "for model '$1'"],
  [/\n\nAt:\n.*/s, ''],
];

export function normalErrorText(text: string): string {
  let out = text.replace(
    /Got input\(s\) \[([^\]]*)\]/,
    (_, names: string) => `Got input(s) [${names.split(',').sort().join(',')}]`,
  );
  for (const [pattern, replacement] of ERROR_RULES) out = out.replace(pattern, replacement);
  return out;
}
