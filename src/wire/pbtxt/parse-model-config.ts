// Text format → ModelConfig, driven by the schema; accepts what protobuf's TextFormat accepts, and throws nothing
// but PbtxtError. Called at model load and by `validate`. The schema is not recursive, so neither is any
// text: nesting is bounded by it.

import type { FieldSchema, MessageSchema } from '../../domain/message-schema.ts';
import { createMessage, defaultOf, type MessageValue, setMapEntry } from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { messageSchemaOf, PACKAGE } from '../../domain/model-config-schema.ts';
import { type Cursor, createCursor, expectSymbol, fail, isAt, peek, shown, take, tryTake } from './cursor.ts';
import { nearestName } from './nearest-name.ts';
import { parseScalar } from './parse-scalar.ts';
import type { PbtxtError } from './pbtxt-error.ts';
import type { Token } from './tokenizer.ts';

export function parseModelConfig(text: string): ModelConfig {
  const cursor = createCursor(text);
  const schema = messageSchemaOf('ModelConfig');
  const message = createMessage(schema.name);
  parseFields(cursor, schema, message, () => peek(cursor).kind === 'end');
  return message as unknown as ModelConfig;
}

/** Fields up to the end that `isDone` sees. */
function parseFields(
  cursor: Cursor,
  schema: MessageSchema,
  message: MessageValue,
  isDone: () => boolean,
): void {
  const seen = new Set<string>();
  while (!isDone()) {
    const name = peek(cursor);
    const field = parseFieldName(cursor, schema);
    checkNotSetBefore(cursor, { schema, field, name, seen });
    seen.add(field.name);
    parseFieldBody(cursor, field, message);
    if (!tryTake(cursor, ';')) tryTake(cursor, ',');
  }
}

function parseFieldName(cursor: Cursor, schema: MessageSchema): FieldSchema {
  const token = peek(cursor);
  if (isAt(cursor, '[')) throw fail(cursor, `Message type "${schema.fullName}" has no extensions.`);
  if (token.kind !== 'identifier') throw fail(cursor, `Expected identifier, got: ${shown(token)}`);
  const field = schema.fieldByName.get(token.text);
  if (field === undefined) throw unknownField(cursor, schema, token);
  take(cursor);
  return field;
}

function unknownField(cursor: Cursor, schema: MessageSchema, token: Token): PbtxtError {
  const nearest = nearestName(token.text, schema.fieldByName.keys());
  const hint = nearest === undefined ? '' : ` Did you mean "${nearest}"?`;
  return fail(
    cursor,
    `Message type "${schema.fullName}" has no field named "${shown(token)}".${hint}`,
    token,
  );
}

function checkNotSetBefore(
  cursor: Cursor,
  at: { schema: MessageSchema; field: FieldSchema; name: Token; seen: ReadonlySet<string> },
): void {
  const { schema, field, name, seen } = at;
  if (field.repeated || field.type === 'map') return;
  if (seen.has(field.name)) {
    throw fail(cursor, `Non-repeated field "${field.name}" is specified multiple times.`, name);
  }
  if (field.oneof === undefined) return;
  const other = schema.fields.find((f) => f.oneof === field.oneof && seen.has(f.name));
  if (other === undefined) return;
  const along = `is specified along with field "${other.name}", another member of oneof "${field.oneof}".`;
  throw fail(cursor, `Field "${field.name}" ${along}`, name);
}

function parseFieldBody(cursor: Cursor, field: FieldSchema, message: MessageValue): void {
  // The colon may be left out before a message, never before a scalar.
  const isMessage = field.type === 'message' || field.type === 'map';
  if (!tryTake(cursor, ':') && !isMessage) expectSymbol(cursor, ':');
  if (!field.repeated && field.type !== 'map') {
    message[field.name] = isMessage ? parseMessage(cursor, field.typeName) : parseScalar(cursor, field);
  } else if (tryTake(cursor, '[')) {
    parseList(cursor, field, message);
  } else {
    parseElement(cursor, field, message);
  }
}

function parseList(cursor: Cursor, field: FieldSchema, message: MessageValue): void {
  if (tryTake(cursor, ']')) return;
  for (;;) {
    parseElement(cursor, field, message);
    if (tryTake(cursor, ']')) return;
    expectSymbol(cursor, ',');
  }
}

function parseElement(cursor: Cursor, field: FieldSchema, message: MessageValue): void {
  if (field.map !== undefined) {
    parseMapEntry(cursor, field, message[field.name] as MessageValue);
    return;
  }
  const isMessage = field.type === 'message';
  const element = isMessage ? parseMessage(cursor, field.typeName) : parseScalar(cursor, field);
  (message[field.name] as MessageValue[string][]).push(element);
}

function parseMessage(cursor: Cursor, messageName: string): MessageValue {
  const message = createMessage(messageName);
  parseDelimited(cursor, messageSchemaOf(messageName), message);
  return message;
}

/** `{ key: "k" value { … } }`; a key or value left out has its default. */
function parseMapEntry(cursor: Cursor, field: FieldSchema, map: MessageValue): void {
  const { key, value } = field.map!;
  const name = `${field.name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Entry`;
  const fieldByName = new Map([key, value].map((f) => [f.name, f]));
  const entry: MessageValue = {};
  parseDelimited(cursor, { name, fullName: `${PACKAGE}.${name}`, fields: [key, value], fieldByName }, entry);
  setMapEntry(map, String(entry.key ?? defaultOf(key)), entry.value ?? defaultOf(value));
}

function parseDelimited(cursor: Cursor, schema: MessageSchema, message: MessageValue): void {
  const isAngle = tryTake(cursor, '<');
  if (!isAngle) expectSymbol(cursor, '{');
  const close = isAngle ? '>' : '}';
  parseFields(cursor, schema, message, () => {
    if (peek(cursor).kind === 'end') throw fail(cursor, `Expected "${close}", found end of text.`);
    return tryTake(cursor, close);
  });
}
