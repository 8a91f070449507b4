// Parameters as JSON that keeps their types: int64 apart from double, -0 and NaN as they are. Used for keys and entries.

import type { Parameters, ParameterValue } from '../../domain/request.ts';

export type TaggedParameter = [name: string, tag: 's' | 'b' | 'i' | 'd', text: string];

export function tagParameters(parameters: Parameters | undefined): TaggedParameter[] | undefined {
  if (parameters === undefined || parameters.size === 0) return undefined;
  return Array.from(parameters, ([name, value]) => tagged(name, value));
}

/** Throws on a tag that is none. */
export function untagParameters(
  tags: readonly TaggedParameter[] | null | undefined,
): Map<string, ParameterValue> | undefined {
  if (tags === undefined || tags === null) return undefined;
  return new Map(tags.map(([name, tag, text]) => [name, untagged(tag, text)]));
}

function tagged(name: string, value: ParameterValue): TaggedParameter {
  switch (typeof value) {
    case 'string':
      return [name, 's', value];
    case 'boolean':
      return [name, 'b', String(value)];
    case 'bigint':
      return [name, 'i', String(value)];
    case 'number':
      return [name, 'd', Object.is(value, -0) ? '-0' : String(value)];
  }
}

function untagged(tag: TaggedParameter[1], text: string): ParameterValue {
  switch (tag) {
    case 's':
      return text;
    case 'b':
      return text === 'true';
    case 'i':
      return BigInt(text);
    case 'd':
      return Number(text);
    default:
      throw new TypeError(`'${String(tag)}' is no kind of parameter`);
  }
}
