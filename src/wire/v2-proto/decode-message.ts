// Bytes → plain object, driven by the message tables; for every RPC but inference, which has a decoder of its own.
// As proto3 has it: what is absent gets its default, but for messages and members of a oneof, which stay absent.

import type { FieldSchema } from '../../domain/message-schema.ts';
import { enumTableOf, type MessageTable, messageTableOf } from './message-table.ts';
import type { MessageTypes } from './messages.ts';
import { FIXED32, FIXED64, LENGTH, ProtoReader, VARINT } from './proto-reader.ts';

/** int64 and uint64 are numbers where that is exact, else bigints. An enum is its name, or an unknown number. */
export type ProtoValue = string | number | bigint | boolean | Buffer | ProtoValue[] | ProtoMessage;
export interface ProtoMessage {
  [field: string]: ProtoValue;
}

/** Throws ProtoError for bytes that are not such a message. Fields of type bytes are views on `bytes`. */
export function decodeMessage<Name extends keyof MessageTypes>(name: Name, bytes: Buffer): MessageTypes[Name];
export function decodeMessage(name: string, bytes: Buffer): object;
export function decodeMessage(name: string, bytes: Buffer): object {
  const table = messageTableOf(name);
  const message = createProtoMessage(table);
  readMessage(new ProtoReader(bytes), table, message);
  return message;
}

function createProtoMessage(table: MessageTable): ProtoMessage {
  const message: ProtoMessage = {};
  for (const field of table.fields) {
    if (field.type === 'map') message[field.name] = {};
    else if (field.repeated) message[field.name] = [];
    else if (field.type !== 'message' && field.oneof === undefined) message[field.name] = defaultOf(field);
  }
  return message;
}

function defaultOf(field: FieldSchema): ProtoValue {
  switch (field.type) {
    case 'string':
      return '';
    case 'bytes':
      return Buffer.alloc(0);
    case 'bool':
      return false;
    case 'enum':
      return enumTableOf(field.typeName).nameByNumber.get(0) ?? 0;
    case 'message':
      return createProtoMessage(messageTableOf(field.typeName));
    default:
      return 0;
  }
}

/** Reads to the reader's end; fields that are there already are added to, as protobuf merges them. */
function readMessage(reader: ProtoReader, table: MessageTable, message: ProtoMessage): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    const field = table.fieldByNumber.get(tag >>> 3);
    if (field === undefined || !readField(reader, { table, field, message, wireType: tag & 7 })) {
      reader.skip(tag);
    }
  }
}

interface FieldPlace {
  readonly table: MessageTable;
  readonly field: FieldSchema;
  readonly message: ProtoMessage;
  readonly wireType: number;
}

/** False when the wire type is not one of the field's: it counts as unknown then. */
function readField(reader: ProtoReader, place: FieldPlace): boolean {
  const { table, field, message, wireType } = place;
  if (field.type === 'map') {
    if (wireType !== LENGTH) return false;
    readMapEntry(reader, field, message[field.name] as ProtoMessage);
    return true;
  }
  const expected = wireTypeOf(field);
  if (field.repeated) {
    const list = message[field.name] as ProtoValue[];
    if (wireType === expected) {
      list.push(readValue(reader, field, undefined));
      return true;
    }
    if (wireType !== LENGTH) return false;
    const outerEnd = reader.enter();
    while (reader.at < reader.end) list.push(readValue(reader, field, undefined));
    reader.leave(outerEnd);
    return true;
  }
  if (wireType !== expected) return false;
  if (field.oneof !== undefined) {
    for (const member of table.oneofs.get(field.oneof) ?? []) {
      if (member !== field.name) delete message[member];
    }
  }
  message[field.name] = readValue(reader, field, message[field.name]);
  return true;
}

function readValue(reader: ProtoReader, field: FieldSchema, present: ProtoValue | undefined): ProtoValue {
  switch (field.type) {
    case 'string':
      return reader.string();
    case 'bytes':
      return reader.bytes();
    case 'bool':
      return reader.bool();
    case 'int32':
      return reader.int32();
    case 'uint32':
      return reader.uint32();
    case 'int64':
      return reader.int64();
    case 'uint64':
      return reader.uint64();
    case 'float':
      return reader.float();
    case 'double':
      return reader.double();
    case 'enum': {
      const number = reader.int32();
      return enumTableOf(field.typeName).nameByNumber.get(number) ?? number;
    }
    default: {
      const table = messageTableOf(field.typeName);
      const message = present === undefined ? createProtoMessage(table) : (present as ProtoMessage);
      const outerEnd = reader.enter();
      readMessage(reader, table, message);
      reader.leave(outerEnd);
      return message;
    }
  }
}

function readMapEntry(reader: ProtoReader, field: FieldSchema, map: ProtoMessage): void {
  const { key: keyField, value: valueField } = field.map!;
  let key = defaultOf(keyField);
  let value: ProtoValue | undefined;
  const outerEnd = reader.enter();
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === (8 | wireTypeOf(keyField))) key = readValue(reader, keyField, undefined);
    else if (tag === (16 | wireTypeOf(valueField))) value = readValue(reader, valueField, value);
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  // A key named `__proto__` must become a member like any other.
  Object.defineProperty(map, String(key), {
    value: value ?? defaultOf(valueField),
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

export function wireTypeOf(field: FieldSchema): number {
  switch (field.type) {
    case 'string':
    case 'bytes':
    case 'message':
    case 'map':
      return LENGTH;
    case 'float':
      return FIXED32;
    case 'double':
      return FIXED64;
    default:
      return VARINT;
  }
}
