// Brings a recorded and a received answer to a comparable form: what may differ between two correct servers
// (times, versions, order of outputs, reasons of parsers, texts of ONNX Runtime) is taken out, all else stays.
// Pure; the rules are those the recording was made for.
import type { CaseCompare, CaseRequest } from './cases.ts';
import { answerHeaders, answerJson } from './http-exchange.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { type Normal, type NormalObject, SLACK } from './normal-form.ts';
import { metricsDelta, normalFamilies } from './normalize-metrics.ts';
import { normalStatistics, statisticsDelta } from './normalize-statistics.ts';

export interface NormalOptions {
  readonly compare: CaseCompare;
  /** The answer of the step that `delta_from` names, of the same side. */
  readonly earlier?: JsonObject | undefined;
  /** An index entry of any other model is not looked at: the recording knew more models than the corpus holds. */
  readonly modelsHeld: ReadonlySet<string>;
}

const BODY_KEYS = [
  'json',
  'json_text',
  'binary_b64',
  'binary_sha256',
  'body_b64',
  'body_sha256',
  'metrics_families',
  'metrics_samples',
];

export function normalAnswer(request: CaseRequest, answer: JsonObject, options: NormalOptions): Normal {
  if (Array.isArray(answer.parallel)) {
    const answers = answer.parallel.filter(isObject);
    return { parallel: answers.map((inner, i) => normalAnswer(request.parallel?.[i] ?? {}, inner, options)) };
  }
  const { only } = options.compare;
  if (only !== undefined) return Object.fromEntries(only.map((key) => [key, answer[key] ?? null]));
  if (answer.status === undefined) return answer;
  const head = normalHead(answer);
  return request.listener === 'metrics'
    ? { ...head, ...normalMetrics(answer, options) }
    : { ...head, ...normalBody(request, answer, options) };
}

function normalHead(answer: JsonObject): NormalObject {
  const out: NormalObject = { status: answer.status ?? null };
  const headers = answerHeaders(answer);
  for (const name of ['content-encoding', 'accept-encoding', 'endpoint-load-metrics']) {
    if (headers[name] !== undefined) out[name] = squeeze(headers[name]);
  }
  if (headers['inference-header-content-length'] !== undefined)
    out['inference-header-content-length'] = 'present';
  const hasBody = BODY_KEYS.some((key) => answer[key] !== undefined) || Boolean(answer.text);
  if (answer.status === 200n && hasBody) out['content-type'] = squeeze(headers['content-type'] ?? '(none)');
  return out;
}

function squeeze(value: Json): string {
  return String(value).toLowerCase().replaceAll(' ', '');
}

function normalMetrics(answer: JsonObject, { compare, earlier }: NormalOptions): NormalObject {
  if (compare.delta_from !== undefined)
    return { delta: metricsDelta(earlier, answer, compare.counters ?? []) };
  const families = answer.status === 200n ? normalFamilies(answer) : undefined;
  return families === undefined ? { body: answerJson(answer) ?? answer.text ?? null } : { families };
}

function normalBody(request: CaseRequest, answer: JsonObject, options: NormalOptions): NormalObject {
  const doc = answerJson(answer);
  const path = request.path?.split('?')[0] ?? '';
  if (doc === undefined) {
    const kept = ['text', 'body_b64', 'body_sha256', 'body_size', 'bad_encoding'];
    return Object.fromEntries(kept.flatMap((key) => (answer[key] === undefined ? [] : [[key, answer[key]]])));
  }
  if (isObject(doc)) {
    if (doc.model_stats !== undefined) {
      if (options.compare.delta_from === undefined) return { model_stats: normalStatistics(doc) };
      const before = options.earlier === undefined ? undefined : answerJson(options.earlier);
      return { delta: statisticsDelta(isObject(before) ? before : {}, doc) };
    }
    if (path === '/v2') return { json: normalServer(doc) };
    if (path.endsWith('/config')) return { json: withDefaultsAllowed(normalError(doc)) };
    if (doc.outputs !== undefined && doc.model_name !== undefined) return normalInfer(doc, answer);
  }
  if (path.endsWith('/index') && Array.isArray(doc)) return { json: normalIndex(doc, options) };
  const out: NormalObject = { json: normalError(doc) };
  if (answer.binary_b64 !== undefined) out.binary_b64 = answer.binary_b64;
  return out;
}

function normalServer(doc: JsonObject): Json {
  const version = doc.version;
  const extensions = Array.isArray(doc.extensions) ? doc.extensions.map(String).sort() : [];
  return {
    ...doc,
    version: typeof version === 'string' && version !== '' ? 'text' : (version ?? null),
    extensions,
  };
}

function withDefaultsAllowed(value: Json): Normal {
  if (Array.isArray(value)) return value.map(withDefaultsAllowed);
  if (!isObject(value)) return value;
  const out: NormalObject = Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withDefaultsAllowed(inner)]),
  );
  out[SLACK] = 'defaults';
  return out;
}

function normalInfer(doc: JsonObject, answer: JsonObject): NormalObject {
  const binary = typeof answer.binary_b64 === 'string' ? Buffer.from(answer.binary_b64, 'base64') : undefined;
  let at = 0;
  const outputs = (Array.isArray(doc.outputs) ? doc.outputs : []).filter(isObject).map((output) => {
    const copy: JsonObject = { ...output };
    if (copy.data !== undefined) copy.data = roundData(copy);
    const size = isObject(copy.parameters) ? copy.parameters.binary_data_size : undefined;
    if (typeof size === 'bigint' && binary !== undefined) {
      copy['(binary)'] = binary.subarray(at, at + Number(size)).toString('base64');
      at += Number(size);
    }
    return copy;
  });
  const json: JsonObject = { ...doc, outputs: outputs.sort(byText('name')) };
  if (binary !== undefined && at !== binary.length) {
    json['(binary bytes not described by any output)'] = BigInt(binary.length - at);
  }
  const out: NormalObject = { json };
  if (answer.binary_sha256 !== undefined) out.binary = [answer.binary_sha256, answer.binary_size ?? null];
  return out;
}

/** FP32 values may be printed with more or fewer digits as long as they are the same FP32. */
function roundData(output: JsonObject): Json {
  const data = output.data ?? null;
  if (output.datatype !== 'FP32' || !Array.isArray(data)) return data;
  return data.map((value) => (typeof value === 'number' ? Math.fround(value) : value));
}

function normalIndex(items: Json[], { compare, modelsHeld }: NormalOptions): Json {
  const looked = compare.models === undefined ? modelsHeld : new Set(compare.models);
  return items
    .filter(isObject)
    .filter((item) => looked.has(String(item.name)))
    .map((item) =>
      item.reason === undefined ? item : { ...item, reason: normalErrorText(String(item.reason)) },
    )
    .sort(byText('name', 'version'));
}

function byText(...keys: string[]): (a: JsonObject, b: JsonObject) => number {
  const text = (item: JsonObject) => keys.map((key) => String(item[key])).join('\0');
  return (a, b) => (text(a) < text(b) ? -1 : Number(text(a) > text(b)));
}

function normalError(doc: Json): Json {
  return isObject(doc) && typeof doc.error === 'string' ? { ...doc, error: normalErrorText(doc.error) } : doc;
}

const ERROR_RULES: ReadonlyArray<readonly [RegExp, string]> = [
  // Folders of the machine.
  [/\/[^\s'"():;,]*\/((?:models|models_explicit)\/)/g, '<dir>/$1'],
  [/\/[^\s'"():;,]*\/folder[A-Za-z0-9]{6}\//g, '<dir>/'],
  // Reasons of other people's parsers.
  [/(onnx runtime error \d+:).*/s, '$1 ...'],
  [/(failed to parse the request JSON buffer:).*/s, '$1 ...'],
];

export function normalErrorText(text: string): string {
  let out = text.replace(
    /Got input\(s\) \[([^\]]*)\]/,
    (_, names: string) => `Got input(s) [${names.split(',').sort().join(',')}]`,
  );
  for (const [pattern, replacement] of ERROR_RULES) out = out.replace(pattern, replacement);
  return out;
}
