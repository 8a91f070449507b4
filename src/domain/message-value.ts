// Messages of the ModelConfig schema as plain objects, untyped: what schema-driven parsers fill and
// schema-driven printers walk. Callers cast to the typed interfaces once the schema has been followed.

import type { FieldSchema } from './message-schema.ts';
import { enumNameOf } from './model-config-enums.ts';
import { messageSchemaOf } from './model-config-schema.ts';

export type FieldValue = string | number | boolean | FieldValue[] | MessageValue;
export interface MessageValue {
  [field: string]: FieldValue;
}

/** A message with every scalar at its default, [] and {} for lists and maps, no sub-message, no oneof member. */
export function createMessage(messageName: string): MessageValue {
  const message: MessageValue = {};
  for (const field of messageSchemaOf(messageName).fields) {
    if (field.type === 'map') message[field.name] = {};
    else if (field.repeated) message[field.name] = [];
    else if (field.type !== 'message' && field.oneof === undefined) message[field.name] = defaultOf(field);
  }
  return message;
}

/** The value of a field that is not written; a message for a message field (as in a map entry without a value). */
export function defaultOf(field: FieldSchema): FieldValue {
  switch (field.type) {
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'enum':
      return enumNameOf(field.typeName, 0) ?? '';
    case 'message':
      return createMessage(field.typeName);
    case 'map':
      return {};
    default:
      return 0;
  }
}

/** Sets a map entry; a key named `__proto__` must become a member like any other. */
export function setMapEntry(map: MessageValue, key: string, value: FieldValue): void {
  Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Entries by ascending key (by number where keys are numbers), so that printed documents are stable. */
export function sortedMapEntries(field: FieldSchema, map: MessageValue): [string, FieldValue][] {
  const entries = Object.entries(map);
  const isNumeric = field.map !== undefined && field.map.key.type !== 'string';
  return entries.sort(([a], [b]) => (isNumeric ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0));
}
