// The comparable form of an HTTP answer. Pure; called by normalize.ts.
import type { CaseRequest } from './cases.ts';
import { answerHeaders, answerJson } from './http-exchange.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import type { NormalObject } from './normal-form.ts';
import {
  byText,
  type NormalOptions,
  normalErrorText,
  normalIndex,
  normalServer,
  withDefaultsAllowed,
} from './normal-parts.ts';
import { metricsDelta, normalFamilies } from './normalize-metrics.ts';
import { normalStatistics, statisticsDelta } from './normalize-statistics.ts';

const BODY_KEYS = [
  'json',
  'json_text',
  'events',
  'binary_b64',
  'binary_sha256',
  'body_b64',
  'body_sha256',
  'metrics_families',
  'metrics_samples',
];

export function normalHttp(request: CaseRequest, answer: JsonObject, options: NormalOptions): NormalObject {
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
    if (Array.isArray(answer.events)) return { events: answer.events.map(normalError) };
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
  if (path.endsWith('/status') && Array.isArray(doc))
    return { json: doc.filter(isObject).sort(byText('name')) };
  if (path.endsWith('/index') && Array.isArray(doc)) return { json: normalIndex(doc, options) };
  const out: NormalObject = { json: normalError(doc) };
  if (answer.binary_b64 !== undefined) out.binary_b64 = answer.binary_b64;
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

function normalError(doc: Json): Json {
  return isObject(doc) && typeof doc.error === 'string' ? { ...doc, error: normalErrorText(doc.error) } : doc;
}
