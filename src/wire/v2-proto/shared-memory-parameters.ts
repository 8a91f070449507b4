// The three parameters that put a tensor of a request into shared memory, for inputs and for outputs.

import { invalidArgument, type StatusError } from '../../domain/status.ts';
import type { RequestParameter, RequestParameters } from './decode-infer-request.ts';

export interface SharedMemoryRange {
  readonly region: string;
  /** int64 on the wire: may be negative, which the keeper of the regions refuses. */
  readonly offset: number;
  readonly byteSize: number;
}

/** Undefined when the tensor does not lie in shared memory. */
export function toSharedMemoryRange(
  tensorName: string,
  parameters: RequestParameters,
): SharedMemoryRange | undefined {
  if (parameters === undefined) return undefined;
  const region = parameters.get('shared_memory_region');
  if (region !== undefined && region.kind !== 'string') {
    throw wrongKind('shared_memory_region', tensorName, 'string_param');
  }
  const offset = integerOf('shared_memory_offset', tensorName, parameters);
  const byteSize = integerOf('shared_memory_byte_size', tensorName, parameters);
  if (region === undefined) return undefined;
  if (byteSize === undefined) {
    throw invalidArgument(
      `'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '${tensorName}'`,
    );
  }
  return { region: region.value, offset: offset ?? 0, byteSize };
}

function integerOf(
  key: string,
  tensorName: string,
  parameters: ReadonlyMap<string, RequestParameter>,
): number | undefined {
  const parameter = parameters.get(key);
  if (parameter === undefined) return undefined;
  if (!parameters.has('shared_memory_region')) {
    throw invalidArgument(
      `'${key}' can not be specified without 'shared_memory_region' parameter for tensor '${tensorName}'`,
    );
  }
  if (parameter.kind !== 'int64') throw wrongKind(key, tensorName, 'int64_param');
  return Number(parameter.value);
}

function wrongKind(key: string, tensorName: string, expected: string): StatusError {
  return invalidArgument(
    `invalid value type for '${key}' parameter for tensor '${tensorName}', expected ${expected}.`,
  );
}
