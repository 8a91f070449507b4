// GET and POST /v2/trace/setting and /v2/models/…/trace/setting: JSON in and out around core/trace. The rules of the
// settings are there; here only what is particular to Triton's JSON form.

import { parseTraceTexts } from '../../core/trace/parse-trace-update.ts';
import type { TraceSettingsView, TraceUpdate } from '../../core/trace/trace-settings.ts';
import { itemsOf, parseJson } from '../../wire/v2-json/json-reader.ts';
import { asArray, asString, findMember, type JsonValue } from '../../wire/v2-json/json-value.ts';
import { type HttpAnswer, jsonAnswer } from './answer.ts';
import type { HttpServices } from './services.ts';

/** The model is '' for the global settings; without a body they are only read. */
export function traceSettings(
  services: Pick<HttpServices, 'trace'>,
  call: { model: string; body: Buffer | undefined },
): HttpAnswer {
  const { model, body } = call;
  const view = services.trace.exchange(model, () =>
    body === undefined ? undefined : parseDocument(parseJson(body)),
  );
  return jsonAnswer(traceSettingsDocument(view));
}

/** Levels are an array of texts, every other setting is one text; null clears. */
function parseDocument(document: JsonValue): TraceUpdate {
  return parseTraceTexts({
    gap: '',
    has: (setting) => findMember(document, setting) !== undefined,
    valuesOf: (setting) => {
      const value = findMember(document, setting);
      if (value === undefined || value === null) return value;
      if (setting !== 'trace_level') return [asString(value, '')];
      return itemsOf(asArray(value, '')).map((item) => asString(item, ''));
    },
  });
}

/** A setting that was given several times is a member as often, as in Triton. */
function traceSettingsDocument(view: TraceSettingsView): string {
  const members = view.flatMap(([setting, values]) => {
    const name = JSON.stringify(setting);
    if (setting === 'trace_level') return `${name}:${JSON.stringify(values)}`;
    return values.map((value) => `${name}:${JSON.stringify(value)}`);
  });
  return `{${members.join(',')}}`;
}
