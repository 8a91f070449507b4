// The `parameters` of an inference request: Triton's own keys become settings, all others custom parameters.
// Members are taken in document order and the first error wins; each name reads its first value.

import { type ParameterValue, SEQUENCE_END, SEQUENCE_START } from '../../domain/request.ts';
import { invalidArgument, unsupported } from '../../domain/status.ts';
import { asBoolean, asString, asUnsigned, findMember, type JsonValue, memberNames } from './json-value.ts';

export interface InferSettings {
  parameters: Map<string, ParameterValue> | undefined;
  correlationId: bigint | string;
  sequenceFlags: number;
  priority: number;
  timeoutUs: number | bigint;
  isBinaryDefault: boolean;
}

/** As in Triton; counted in bytes. */
const CORRELATION_ID_BYTES_MAX = 128;
const INT64_MAX = 2n ** 63n - 1n;

export function decodeSettings(root: JsonValue): InferSettings {
  const settings: InferSettings = {
    parameters: undefined,
    correlationId: 0n,
    sequenceFlags: 0,
    priority: 0,
    timeoutUs: 0,
    isBinaryDefault: false,
  };
  const parameters = findMember(root, 'parameters');
  if (parameters === undefined) return settings;
  for (const name of memberNames(parameters, 'failed to get request params.')) {
    applyParameter(settings, name, findMember(parameters, name)!);
  }
  return settings;
}

function applyParameter(settings: InferSettings, name: string, value: JsonValue): void {
  const context = `Unable to parse '${name}'`;
  switch (name) {
    case 'sequence_id':
      settings.correlationId = correlationIdOf(value, context);
      return;
    case 'sequence_start':
      if (asBoolean(value, context)) settings.sequenceFlags |= SEQUENCE_START;
      return;
    case 'sequence_end':
      if (asBoolean(value, context)) settings.sequenceFlags |= SEQUENCE_END;
      return;
    case 'priority':
      settings.priority = Number(asUnsigned(value, context));
      return;
    case 'timeout':
      settings.timeoutUs = asUnsigned(value, context);
      return;
    case 'binary_data_output':
      settings.isBinaryDefault = asBoolean(value, context);
      return;
    default:
      if (name.startsWith('triton_')) {
        throw invalidArgument(
          "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
        );
      }
      settings.parameters ??= new Map();
      settings.parameters.set(name, customParameterOf(name, value));
  }
}

function correlationIdOf(value: JsonValue, context: string): bigint | string {
  if ((typeof value === 'number' || typeof value === 'bigint') && value >= 0) return BigInt(value);
  const text = asString(value, context);
  if (Buffer.byteLength(text) > CORRELATION_ID_BYTES_MAX) {
    throw unsupported(`string correlation ID cannot be longer than ${CORRELATION_ID_BYTES_MAX} characters`);
  }
  return text;
}

/** An integer beyond int64 is a double, as Triton makes it. */
export function customParameterOf(name: string, value: JsonValue): ParameterValue {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return BigInt(value);
  if (typeof value === 'bigint') return value <= INT64_MAX ? value : Number(value);
  if (typeof value === 'string' || value?.kind === 'bytes') return asString(value, '');
  if (value?.kind === 'double') return value.value;
  throw invalidArgument(
    `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
  );
}
