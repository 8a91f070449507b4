// The three parameters that place a tensor in shared memory, read for inputs and outputs alike.

import type { MemoryRange } from '../../domain/memory-range.ts';
import { asString, asUnsigned, findMember, type JsonValue } from './json-value.ts';

/** Undefined without a region; Triton checks the types of the other two all the same. */
export function decodeRange(parameters: JsonValue | undefined): MemoryRange | undefined {
  if (parameters === undefined) return undefined;
  const regionValue = findMember(parameters, 'shared_memory_region');
  const region =
    regionValue === undefined ? undefined : asString(regionValue, "Unable to parse 'shared_memory_region'");
  const offset = unsignedOf(parameters, 'shared_memory_offset');
  const byteSize = unsignedOf(parameters, 'shared_memory_byte_size');
  return region === undefined ? undefined : { region, offset, byteSize };
}

function unsignedOf(parameters: JsonValue, name: string): number | bigint {
  const value = findMember(parameters, name);
  return value === undefined ? 0 : asUnsigned(value, `Unable to parse '${name}'`);
}
