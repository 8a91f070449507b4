// A finished trace → the objects of Triton's trace file, one per event, without the brackets around them.
// Pure; called by trace-setting.ts.

import type { FinishedTrace, TraceEntry, TraceRecord } from './trace-record.ts';

/** Triton's steady clock counts from the start of the machine, ours from the start of the process. */
const CLOCK_OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Empty when nothing was recorded. */
export function traceJson(trace: FinishedTrace): string {
  return trace.flatMap((record) => record.entries.map((entry) => entryJson(record, entry))).join(',');
}

function entryJson(record: TraceRecord, entry: TraceEntry): string {
  const { id } = record;
  if ('tensor' in entry) {
    const { name, text, shape, datatype } = entry.tensor;
    const tensor = { name, data: text, shape: shape.join(','), dtype: datatype };
    return JSON.stringify({ id, activity: entry.activity, tensor });
  }
  const ns = Math.round((CLOCK_OFFSET_MS + entry.atMs) * 1e6);
  const timestamp = JSON.stringify({ id, timestamps: [{ name: entry.activity, ns }] });
  return entry.activity === 'REQUEST_START' ? `${headJson(record)},${timestamp}` : timestamp;
}

/** Written where the core takes the request over, as in Triton: a trace of tensors alone has none. */
function headJson(record: TraceRecord): string {
  const { id, parentId, model, requestId } = record;
  return JSON.stringify({
    id,
    model_name: model?.name ?? '',
    model_version: model?.version ?? -1,
    ...(requestId === '' ? {} : { request_id: requestId }),
    ...(parentId === 0 ? {} : { parent_id: parentId }),
  });
}
