// The `parameters` of a ModelInferRequest: Triton's own keys become settings, all others custom parameters.
// The first error in the order of the message wins; Triton walks a hash map, so no order is the right one.

import { type ParameterValue, SEQUENCE_END, SEQUENCE_START } from '../../domain/request.ts';
import { invalidArgument, type StatusError, unsupported } from '../../domain/status.ts';
import type { RequestParameter, RequestParameters } from './decode-infer-request.ts';

export interface RequestSettings {
  parameters: Map<string, ParameterValue> | undefined;
  correlationId: bigint | string;
  sequenceFlags: number;
  priority: number;
  timeoutUs: number | bigint;
  /** Decoupled models: a last answer without outputs is wanted. */
  isEmptyFinalWanted: boolean;
}

const EMPTY_FINAL = 'triton_enable_empty_final_response';
/** As in Triton; counted in bytes. */
const CORRELATION_ID_BYTES_MAX = 128;

export function toSettings(parameters: RequestParameters): RequestSettings {
  const settings: RequestSettings = {
    parameters: undefined,
    correlationId: 0n,
    sequenceFlags: 0,
    priority: 0,
    timeoutUs: 0,
    isEmptyFinalWanted: false,
  };
  if (parameters === undefined) return settings;
  for (const [name, parameter] of parameters) applyParameter(settings, name, parameter);
  return settings;
}

function applyParameter(settings: RequestSettings, name: string, parameter: RequestParameter): void {
  switch (name) {
    case 'sequence_id':
      settings.correlationId = correlationIdOf(parameter);
      return;
    case 'sequence_start':
      if (boolOf(name, parameter)) settings.sequenceFlags |= SEQUENCE_START;
      return;
    case 'sequence_end':
      if (boolOf(name, parameter)) settings.sequenceFlags |= SEQUENCE_END;
      return;
    case 'priority':
      settings.priority = priorityOf(parameter);
      return;
    case 'timeout':
      if (parameter.kind !== 'int64') throw wrongKind(name, 'int64_param.');
      // Unsigned in Triton: a negative timeout is a very long one.
      settings.timeoutUs = exactNumber(BigInt.asUintN(64, parameter.value));
      return;
    case EMPTY_FINAL:
      settings.isEmptyFinalWanted = boolOf(name, parameter);
      return;
    default:
      settings.parameters ??= new Map();
      settings.parameters.set(name, customParameterOf(name, parameter));
  }
}

function correlationIdOf(parameter: RequestParameter): bigint | string {
  if (parameter.kind === 'int64') return BigInt.asUintN(64, parameter.value);
  if (parameter.kind !== 'string') throw wrongKind('sequence_id', 'int64_param or string_param.');
  const text = untilNul(parameter.value);
  if (Buffer.byteLength(text) > CORRELATION_ID_BYTES_MAX) {
    throw unsupported(`string correlation ID cannot be longer than ${CORRELATION_ID_BYTES_MAX} characters`);
  }
  return text;
}

function boolOf(name: string, parameter: RequestParameter): boolean {
  if (parameter.kind !== 'bool') throw wrongKind(name, 'bool_param.');
  return parameter.value;
}

function priorityOf(parameter: RequestParameter): number {
  if (parameter.kind !== 'int64' && parameter.kind !== 'uint64') {
    throw wrongKind('priority', 'int64_param or uint64_param.');
  }
  if (parameter.value < 0n) throw invalidArgument("invalid value for 'priority', expected value >= 0.");
  return Number(parameter.value);
}

function customParameterOf(name: string, parameter: RequestParameter): ParameterValue {
  if (name.startsWith('triton_')) {
    throw invalidArgument(
      `parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: ${EMPTY_FINAL}`,
    );
  }
  switch (parameter.kind) {
    case 'int64':
    case 'bool':
    case 'double':
      return parameter.value;
    case 'string':
      return untilNul(parameter.value);
    default:
      // Doubles are taken as well; the text is older than they are.
      throw wrongKind(name, 'int64_param, bool_param, or string_param.');
  }
}

function wrongKind(name: string, expected: string): StatusError {
  return invalidArgument(`invalid value type for '${name}' parameter, expected ${expected}`);
}

/** Triton hands texts on as C strings. */
export function untilNul(text: string): string {
  const nul = text.indexOf('\0');
  return nul < 0 ? text : text.slice(0, nul);
}

function exactNumber(value: bigint): number | bigint {
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
