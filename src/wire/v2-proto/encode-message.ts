// Plain object → bytes, driven by the message tables; for every RPC but inference, which has an encoder of its own.
// Fields are written in the order of their numbers, defaults are left out, lists of numbers are packed.

import type { FieldSchema } from '../../domain/message-schema.ts';
import { type ProtoMessage, type ProtoValue, wireTypeOf } from './decode-message.ts';
import { enumTableOf, type MessageTable, messageTableOf } from './message-table.ts';
import type { MessageTypes } from './messages.ts';
import { LENGTH } from './proto-reader.ts';
import { ProtoWriter } from './proto-writer.ts';

/** Fields may be missing or undefined; names that the message does not have are ignored. */
export function encodeMessage<Name extends keyof MessageTypes>(
  name: Name,
  value: Partial<MessageTypes[Name]>,
): Buffer;
export function encodeMessage(name: string, value: object): Buffer;
export function encodeMessage(name: string, value: object): Buffer {
  const writer = new ProtoWriter();
  writeMessage(writer, messageTableOf(name), value as ProtoMessage);
  return writer.finish();
}

function writeMessage(writer: ProtoWriter, table: MessageTable, message: ProtoMessage): void {
  for (const field of table.fields) {
    const value = Object.hasOwn(message, field.name) ? message[field.name] : undefined;
    if (value === undefined) continue;
    if (field.type === 'map') writeMap(writer, field, value as ProtoMessage);
    else if (field.repeated) writeList(writer, field, value as ProtoValue[]);
    else if (field.oneof !== undefined || !isDefault(field, value)) writeField(writer, field, value);
  }
}

function isDefault(field: FieldSchema, value: ProtoValue): boolean {
  switch (field.type) {
    case 'message':
      return false;
    case 'string':
    case 'bytes':
      return (value as string | Buffer).length === 0;
    case 'bool':
      return value === false;
    case 'enum':
      return enumNumberOf(field, value) === 0;
    case 'float':
    case 'double':
      // Minus zero has bits of its own.
      return Object.is(value, 0);
    default:
      return value === 0 || value === 0n;
  }
}

function writeField(writer: ProtoWriter, field: FieldSchema, value: ProtoValue): void {
  if (field.type !== 'message') {
    writer.tag(field.number, wireTypeOf(field));
    writeScalar(writer, field, value);
    return;
  }
  const start = writer.open(field.number);
  writeMessage(writer, messageTableOf(field.typeName), value as ProtoMessage);
  writer.close(start);
}

function writeList(writer: ProtoWriter, field: FieldSchema, values: readonly ProtoValue[]): void {
  if (values.length === 0) return;
  if (wireTypeOf(field) === LENGTH) {
    for (const value of values) writeField(writer, field, value);
    return;
  }
  const start = writer.open(field.number);
  for (const value of values) writeScalar(writer, field, value);
  writer.close(start);
}

/** Key and value are always written, also when they are defaults, as C++ does. */
function writeMap(writer: ProtoWriter, field: FieldSchema, map: ProtoMessage): void {
  const { key: keyField, value: valueField } = field.map!;
  for (const [key, value] of Object.entries(map)) {
    const start = writer.open(field.number);
    writeField(writer, keyField, keyField.type === 'string' ? key : BigInt(key));
    writeField(writer, valueField, value);
    writer.close(start);
  }
}

function writeScalar(writer: ProtoWriter, field: FieldSchema, value: ProtoValue): void {
  switch (field.type) {
    case 'string':
      writer.string(value as string);
      return;
    case 'bytes':
      writer.bytes(value as Buffer);
      return;
    case 'bool':
      writer.bool(value as boolean);
      return;
    case 'int32':
      writer.int32(value as number);
      return;
    case 'uint32':
      writer.uint32(value as number);
      return;
    case 'int64':
      writer.int64(value as number | bigint);
      return;
    case 'uint64':
      writer.uint64(value as number | bigint);
      return;
    case 'float':
      writer.float(value as number);
      return;
    case 'double':
      writer.double(value as number);
      return;
    case 'enum':
      writer.int32(enumNumberOf(field, value));
      return;
    default:
      throw new Error(`${field.name} is no scalar`);
  }
}

function enumNumberOf(field: FieldSchema, value: ProtoValue): number {
  if (typeof value === 'number') return value;
  const number = enumTableOf(field.typeName).numberByName.get(value as string);
  if (number === undefined) throw new Error(`no value ${String(value)} in enum ${field.typeName}`);
  return number;
}
