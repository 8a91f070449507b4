// Proto3 JSON → ModelConfig, for the `config` of a load request: names in snake_case or camelCase, enums by
// name (any case) or number, 64-bit integers as numbers or text, null for the default. Anything else is an
// INVALID_ARG that names the path of the member.

import type { FieldSchema, MessageSchema } from '../../domain/message-schema.ts';
import {
  createMessage,
  type FieldValue,
  type MessageValue,
  setMapEntry,
} from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { enumNameOf, enumSchemaOf } from '../../domain/model-config-enums.ts';
import { MODEL_CONFIG_MESSAGES, messageSchemaOf } from '../../domain/model-config-schema.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';

export function modelConfigFromJson(text: string): ModelConfig {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidArgument(`model config is not valid JSON: ${reason}`);
  }
  return messageFrom('ModelConfig', document, '') as unknown as ModelConfig;
}

/** Both spellings of every field, per message. */
const FIELD_BY_JSON_NAME: ReadonlyMap<string, ReadonlyMap<string, FieldSchema>> = new Map(
  [...MODEL_CONFIG_MESSAGES.values()].map((schema) => [schema.name, bothSpellings(schema)]),
);

function bothSpellings(schema: MessageSchema): ReadonlyMap<string, FieldSchema> {
  const names = new Map<string, FieldSchema>();
  for (const field of schema.fields) {
    names.set(field.name, field);
    names.set(
      field.name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
      field,
    );
  }
  return names;
}

function messageFrom(messageName: string, json: unknown, path: string): MessageValue {
  const schema = messageSchemaOf(messageName);
  if (!isObject(json)) throw unexpected(path, 'an object', json);
  const message = createMessage(messageName);
  const choices = new Map<string, string>();
  for (const [key, value] of Object.entries(json)) {
    const field = FIELD_BY_JSON_NAME.get(messageName)!.get(key);
    const at = path === '' ? key : `${path}.${key}`;
    if (field === undefined) {
      throw invalidArgument(
        `model config: ${at}: message type "${schema.fullName}" has no field named "${key}"`,
      );
    }
    if (value === null) continue;
    if (field.oneof !== undefined) {
      const other = choices.get(field.oneof) ?? field.name;
      if (other !== field.name) {
        throw invalidArgument(`model config: ${at}: oneof "${field.oneof}" is already set by "${other}"`);
      }
      choices.set(field.oneof, field.name);
    }
    message[field.name] = fieldFrom(field, value, at);
  }
  return message;
}

function fieldFrom(field: FieldSchema, json: unknown, path: string): FieldValue {
  if (field.map !== undefined) return mapFrom(field.map, json, path);
  if (!field.repeated) return valueFrom(field, json, path);
  if (!Array.isArray(json)) throw unexpected(path, 'an array', json);
  return json.map((element: unknown, i) => valueFrom(field, element, `${path}[${i}]`));
}

function mapFrom(entry: NonNullable<FieldSchema['map']>, json: unknown, path: string): MessageValue {
  if (!isObject(json)) throw unexpected(path, 'an object', json);
  const map: MessageValue = {};
  for (const [key, value] of Object.entries(json)) {
    const at = `${path}[${JSON.stringify(key)}]`;
    setMapEntry(map, String(valueFrom(entry.key, key, at)), valueFrom(entry.value, value, at));
  }
  return map;
}

function valueFrom(field: FieldSchema, json: unknown, path: string): FieldValue {
  switch (field.type) {
    case 'message':
      return messageFrom(field.typeName, json, path);
    case 'enum':
      return enumFrom(field.typeName, json, path);
    case 'string':
      if (typeof json !== 'string') throw unexpected(path, 'a string', json);
      return json;
    case 'bool':
      if (typeof json !== 'boolean') throw unexpected(path, 'true or false', json);
      return json;
    case 'float':
      return Math.fround(doubleFrom(json, path));
    case 'double':
      return doubleFrom(json, path);
    default:
      return integerFrom(field.type, json, path);
  }
}

function enumFrom(enumName: string, json: unknown, path: string): string {
  const values = enumSchemaOf(enumName);
  const name =
    typeof json === 'number'
      ? enumNameOf(enumName, json)
      : typeof json === 'string'
        ? Object.keys(values).find((value) => value === json.toUpperCase())
        : undefined;
  if (name === undefined) throw unexpected(path, `one of ${Object.keys(values).join(', ')}`, json);
  return name;
}

const NON_FINITE: ReadonlySet<string> = new Set(['NaN', 'Infinity', '-Infinity']);
const DECIMAL = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;

function doubleFrom(json: unknown, path: string): number {
  if (typeof json === 'number') return json;
  if (typeof json !== 'string' || !(NON_FINITE.has(json) || DECIMAL.test(json))) {
    throw unexpected(path, 'a number', json);
  }
  return Number(json);
}

/** The bounds as doubles: above 2^53 the neighbours of a bound cannot be told apart, which does no harm. */
const INTEGER_RANGES: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  int64: [-(2 ** 63), 2 ** 63],
  uint32: [0, 2 ** 32 - 1],
  uint64: [0, 2 ** 64],
};

function integerFrom(type: string, json: unknown, path: string): number {
  const number = typeof json === 'string' && DECIMAL.test(json) ? Number(json) : json;
  if (typeof number !== 'number' || !Number.isInteger(number)) throw unexpected(path, `an ${type}`, json);
  const [min, max] = INTEGER_RANGES[type]!;
  if (number < min || number > max)
    throw invalidArgument(`model config: ${path}: ${number} is out of range for ${type}`);
  // -0 is an integer in JSON, and zero.
  return number + 0;
}

function isObject(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

const SHOWN_CHARACTERS_MAX = 80;

function unexpected(path: string, expected: string, json: unknown): StatusError {
  const text = JSON.stringify(json);
  const shown = text.length <= SHOWN_CHARACTERS_MAX ? text : `${text.slice(0, SHOWN_CHARACTERS_MAX)}...`;
  return invalidArgument(
    `model config: ${path === '' ? 'document' : path}: expected ${expected}, got ${shown}`,
  );
}
