// What a host that asks for it is told of a request beside its tensors, as JSON (docs/host-protocol.md, request
// info). Written by hand, because JSON.stringify knows neither int64 nor the difference between 1 and 1.0.

import type { InferRequest, ParameterValue } from '../../domain/request.ts';

/** `traceparent` is given where the request is traced and its trace goes further. */
export function encodeRequestInfo(request: InferRequest, traceparent?: string): Buffer {
  if (traceparent === undefined && isPlain(request)) return PLAIN;
  const { correlationId } = request;
  const parameters: string[] = [];
  if (request.parameters !== undefined) {
    for (const [name, value] of request.parameters)
      parameters.push(`${JSON.stringify(name)}:${textOf(value)}`);
  }
  return Buffer.from(
    `{"id":${JSON.stringify(request.id)},"correlationId":${textOf(correlationId)},"flags":${request.sequenceFlags},` +
      `"priority":${request.priority},"timeoutUs":${request.timeoutUs},"parameters":{${parameters.join(',')}}` +
      (traceparent === undefined ? '}' : `,"traceparent":"${traceparent}"}`),
  );
}

/** Most requests say nothing beside their tensors; they share one text. */
const PLAIN = Buffer.from('{"id":"","correlationId":0,"flags":0,"priority":0,"timeoutUs":0,"parameters":{}}');

function isPlain(request: InferRequest): boolean {
  return (
    request.id === '' &&
    request.parameters === undefined &&
    request.correlationId === 0n &&
    request.sequenceFlags === 0 &&
    request.priority === 0 &&
    request.timeoutUs === 0
  );
}

function textOf(value: ParameterValue): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return doubleText(value);
  return JSON.stringify(value);
}

/** NaN and the infinities as Python's json reads them. */
function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  const text = Object.is(value, -0) ? '-0' : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
