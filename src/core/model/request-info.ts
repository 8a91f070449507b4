// What a host that asks for it is told of a request beside its tensors, as JSON (docs/host-protocol.md, request
// info). Written by hand, because JSON.stringify knows neither int64 nor the difference between 1 and 1.0.

import type { InferRequest, ParameterValue } from '../../domain/request.ts';

export function encodeRequestInfo(request: InferRequest): Buffer {
  const { correlationId } = request;
  const parameters: string[] = [];
  if (request.parameters !== undefined) {
    for (const [name, value] of request.parameters)
      parameters.push(`${JSON.stringify(name)}:${textOf(value)}`);
  }
  return Buffer.from(
    `{"id":${JSON.stringify(request.id)},"correlationId":${textOf(correlationId)},"flags":${request.sequenceFlags},` +
      `"priority":${request.priority},"timeoutUs":${request.timeoutUs},"parameters":{${parameters.join(',')}}}`,
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
