// Parameters as a model writes them, plain JavaScript values, and as they travel. A whole number is an int64, any other
// number a double; on the way back an int64 is a number as long as that is exact. Pure.

import type { ParameterValue as ModelValue } from '../../backend/model-sdk/model-request.ts';
import type { Parameters, ParameterValue } from '../../domain/request.ts';

type ModelParameters = Readonly<Record<string, ModelValue>>;

export function toParameters(given: ModelParameters | undefined): Parameters | undefined {
  if (given === undefined) return undefined;
  const entries = Object.entries(given);
  if (entries.length === 0) return undefined;
  return new Map(entries.map(([name, value]) => [name, toValue(name, value)]));
}

function toValue(name: string, value: ModelValue): ParameterValue {
  switch (typeof value) {
    case 'number':
      return Number.isSafeInteger(value) ? BigInt(value) : value;
    case 'string':
    case 'boolean':
    case 'bigint':
      return value;
    default:
      throw new TypeError(`parameter '${name}' must be a string, number, bigint or boolean`);
  }
}

export function fromParameters(received: Parameters | undefined): ModelParameters {
  const given: Record<string, ModelValue> = {};
  for (const [name, value] of received ?? []) {
    const isExact = typeof value === 'bigint' && Number.isSafeInteger(Number(value));
    // A parameter named `__proto__` must become a member like any other.
    Object.defineProperty(given, name, { value: isExact ? Number(value) : value, enumerable: true });
  }
  return given;
}
