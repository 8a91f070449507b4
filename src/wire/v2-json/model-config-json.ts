// ModelConfig → the JSON document of the configuration endpoint, as Triton renders it: declaration order, every
// primitive printed, unset messages left out, a few 64-bit integers as text. The way back (a load request's
// `config`) is parse-model-config-json.ts.

import type { FieldSchema } from '../../domain/message-schema.ts';
import { type FieldValue, type MessageValue, sortedMapEntries } from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { messageSchemaOf } from '../../domain/model-config-schema.ts';

export { modelConfigFromJson } from './parse-model-config-json.ts';

export function modelConfigToJson(config: ModelConfig): string {
  return messageText('ModelConfig', config as unknown as MessageValue);
}

/** Triton turns protobuf's textual 64-bit integers into numbers everywhere but here; clients rely on both. */
const TEXTUAL_INTEGERS: ReadonlySet<string> = new Set([
  'ModelOptimizationPolicy.Cuda.GraphSpec.Shape.dim',
  'ModelInstanceGroup.SecondaryDevice.device_id',
  'ModelSequenceBatching.InitialState.dims',
]);

/** Fields younger than the protocol we copy, and our own: printed only when set, so that its documents stay the same. */
const PRINTED_WHEN_SET: ReadonlySet<string> = new Set([
  'ModelEnsembling.max_inflight_requests',
  'ModelConfig.version_labels',
  'ModelRouter.Target.rolled_back',
]);

function messageText(messageName: string, message: MessageValue): string {
  const members: string[] = [];
  // As protobuf's converter: a scalar of a oneof comes after all other members.
  const late: string[] = [];
  for (const field of messageSchemaOf(messageName).fields) {
    const value = message[field.name];
    const path = `${messageName}.${field.name}`;
    if (value === undefined || (PRINTED_WHEN_SET.has(path) && isUnset(value))) continue;
    const isLate = field.oneof !== undefined && field.type !== 'message';
    const text = fieldText(field, value, TEXTUAL_INTEGERS.has(path));
    (isLate ? late : members).push(`"${field.name}":${text}`);
  }
  return `{${[...members, ...late].join(',')}}`;
}

function isUnset(value: FieldValue): boolean {
  return value === 0 || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
}

function fieldText(field: FieldSchema, value: FieldValue, isTextual: boolean): string {
  if (field.map !== undefined) {
    const schema = field.map.value;
    const entries = sortedMapEntries(field, value as MessageValue);
    const members = entries.map(
      ([key, entry]) => `${JSON.stringify(key)}:${valueText(schema, entry, isTextual)}`,
    );
    return `{${members.join(',')}}`;
  }
  if (!field.repeated) return valueText(field, value, isTextual);
  return `[${(value as FieldValue[]).map((element) => valueText(field, element, isTextual)).join(',')}]`;
}

function valueText(field: FieldSchema, value: FieldValue, isTextual: boolean): string {
  if (field.type === 'message') return messageText(field.typeName, value as MessageValue);
  if (typeof value !== 'number') return JSON.stringify(value);
  if (field.type === 'float' || field.type === 'double') return doubleText(value, field.type);
  return isTextual ? `"${value}"` : String(value);
}

/** A float prints as the shortest text that is the same float; integral values keep their `.0`. */
function doubleText(value: number, type: 'float' | 'double'): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return `${Object.is(value, -0) ? '-0' : value}.0`;
  if (type === 'double') return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}
