// How each requested output is to be sent: binary or JSON, as a tensor or as its best classes.
// Decoded from the `outputs` of a request, read again when the response is written.

import { invalidArgument, unsupported } from '../../domain/status.ts';
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
}

export interface DecodedOutputs {
  readonly requestedOutputs: readonly string[];
  readonly byName: ReadonlyMap<string, OutputOption>;
}

const NONE: DecodedOutputs = { requestedOutputs: [], byName: new Map() };

export function optionOf(options: OutputOptions, name: string): OutputOption {
  return options.byName.get(name) ?? { isBinary: options.isBinaryDefault, classCount: 0 };
}

/** An output listed twice is one output; its first entry decides. */
export function decodeOutputs(root: JsonValue): DecodedOutputs {
  const member = findMember(root, 'outputs');
  if (member === undefined) return NONE;
  const byName = new Map<string, OutputOption>();
  for (const item of itemsOf(asArray(member, "Unable to parse 'outputs'"))) {
    const parameters = findMember(item, 'parameters');
    checkSharedMemory(parameters);
    const name = asString(requireMember(item, 'name', "Unable to parse 'name'"), "Unable to parse 'name'");
    const option = decodeOption(parameters);
    if (!byName.has(name)) byName.set(name, option);
  }
  return { requestedOutputs: [...byName.keys()], byName };
}

function decodeOption(parameters: JsonValue | undefined): OutputOption {
  const classification = findMember(parameters, 'classification');
  const classCount =
    classification === undefined ? 0 : Number(asUnsigned(classification, "Unable to set 'classification'"));
  if (findMember(parameters, 'shared_memory_region') !== undefined) {
    throw unsupported('shared memory is not supported yet');
  }
  const binary = findMember(parameters, 'binary_data');
  const isBinary = binary === undefined ? false : asBoolean(binary, "Unable to parse 'binary_data'");
  return { isBinary, classCount };
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
