// Every message that the server speaks, by name, as the codec wants it: fields by number and in the order of their
// numbers. Messages of `inference` go by their name without the package, those of gRPC itself by their full name.

import type { FieldSchema } from '../../domain/message-schema.ts';
import { MODEL_CONFIG_ENUMS } from '../../domain/model-config-enums.ts';
import { MODEL_CONFIG_MESSAGES } from '../../domain/model-config-schema.ts';
import { GRPC_SERVICE_MESSAGES } from './generated/grpc-service-messages.ts';
import { STANDARD_ENUMS, STANDARD_MESSAGES } from './generated/standard-messages.ts';

export interface MessageTable {
  readonly name: string;
  /** Ascending by number, the order in which they are written. */
  readonly fields: readonly FieldSchema[];
  readonly fieldByNumber: ReadonlyMap<number, FieldSchema>;
  /** Oneof → names of its members. */
  readonly oneofs: ReadonlyMap<string, readonly string[]>;
}

export interface EnumTable {
  readonly numberByName: ReadonlyMap<string, number>;
  readonly nameByNumber: ReadonlyMap<number, string>;
}

const messages = new Map<string, MessageTable>();
for (const { name, fields } of MODEL_CONFIG_MESSAGES.values()) messages.set(name, toTable(name, fields));
for (const table of [GRPC_SERVICE_MESSAGES, STANDARD_MESSAGES]) {
  for (const [name, fields] of Object.entries(table)) messages.set(name, toTable(name, fields));
}

const enums = new Map<string, EnumTable>();
for (const [name, values] of [...Object.entries(MODEL_CONFIG_ENUMS), ...Object.entries(STANDARD_ENUMS)]) {
  const entries = Object.entries(values);
  enums.set(name, {
    numberByName: new Map(entries),
    nameByNumber: new Map(entries.map(([value, number]) => [number, value])),
  });
}

export function messageTableOf(name: string): MessageTable {
  const found = messages.get(name);
  if (found === undefined) throw new Error(`no message ${name}`);
  return found;
}

export function enumTableOf(name: string): EnumTable {
  const found = enums.get(name);
  if (found === undefined) throw new Error(`no enum ${name}`);
  return found;
}

export function messageNames(): string[] {
  return [...messages.keys()];
}

function toTable(name: string, declared: readonly FieldSchema[]): MessageTable {
  const fields = [...declared].sort((a, b) => a.number - b.number);
  const oneofs = new Map<string, string[]>();
  for (const field of fields) {
    if (field.oneof === undefined) continue;
    const members = oneofs.get(field.oneof) ?? [];
    members.push(field.name);
    oneofs.set(field.oneof, members);
  }
  return { name, fields, fieldByNumber: new Map(fields.map((field) => [field.number, field])), oneofs };
}
