// How each requested output is to be sent: binary, JSON or through shared memory, as a tensor or as its best classes.
// Decoded from the `outputs` of a request, read again when the response is written.

import type { MemoryRange } from '../../domain/memory-range.ts';
import { invalidArgument } from '../../domain/status.ts';
import { itemsOf } from './json-reader.ts';
import {
  asArray,
  asBoolean,
  asString,
  asUnsigned,
  findMember,
  type JsonValue,
  requireMember,
} from './json-value.ts';
import { decodeRange } from './memory-range.ts';

export interface OutputOption {
  readonly isBinary: boolean;
  /** 0 sends the tensor itself. */
  readonly classCount: number;
}

export interface OutputOptions {
  /** The outputs that the request lists. */
  readonly byName: ReadonlyMap<string, OutputOption>;
  /** For those it does not list. */
  readonly isBinaryDefault: boolean;
  /** The outputs that go to shared memory; absent when there is none. */
  readonly rangeByName?: ReadonlyMap<string, MemoryRange>;
}

export interface DecodedOutputs {
  readonly requestedOutputs: readonly string[];
  readonly byName: ReadonlyMap<string, OutputOption>;
  readonly rangeByName: ReadonlyMap<string, MemoryRange> | undefined;
}

const NONE: DecodedOutputs = { requestedOutputs: [], byName: new Map(), rangeByName: undefined };

export function optionOf(options: OutputOptions, name: string): OutputOption {
  return options.byName.get(name) ?? { isBinary: options.isBinaryDefault, classCount: 0 };
}

/** An output listed twice is one output; its first entry decides. */
export function decodeOutputs(root: JsonValue): DecodedOutputs {
  const member = findMember(root, 'outputs');
  if (member === undefined) return NONE;
  const byName = new Map<string, OutputOption>();
  let rangeByName: Map<string, MemoryRange> | undefined;
  for (const item of itemsOf(asArray(member, "Unable to parse 'outputs'"))) {
    const parameters = findMember(item, 'parameters');
    checkSharedMemory(parameters);
    const name = asString(requireMember(item, 'name', "Unable to parse 'name'"), "Unable to parse 'name'");
    const classCount = decodeClassCount(parameters);
    const range = decodeRange(parameters);
    const isBinary = range === undefined && decodeIsBinary(parameters);
    if (byName.has(name)) continue;
    byName.set(name, { isBinary, classCount });
    if (range === undefined) continue;
    rangeByName ??= new Map();
    rangeByName.set(name, range);
  }
  return { requestedOutputs: [...byName.keys()], byName, rangeByName };
}

function decodeClassCount(parameters: JsonValue | undefined): number {
  const value = findMember(parameters, 'classification');
  return value === undefined ? 0 : Number(asUnsigned(value, "Unable to set 'classification'"));
}

function decodeIsBinary(parameters: JsonValue | undefined): boolean {
  const value = findMember(parameters, 'binary_data');
  return value === undefined ? false : asBoolean(value, "Unable to parse 'binary_data'");
}

function checkSharedMemory(parameters: JsonValue | undefined): void {
  if (findMember(parameters, 'shared_memory_region') === undefined) return;
  if (findMember(parameters, 'classification') !== undefined) {
    throw invalidArgument("Output can't set both 'shared_memory_region' and 'classification'");
  }
  const binary = findMember(parameters, 'binary_data');
  if (binary !== undefined && asBoolean(binary, "Unable to set 'binary_data'")) {
    throw invalidArgument("Output can't set both 'shared_memory_region' and 'binary_data'");
  }
}
