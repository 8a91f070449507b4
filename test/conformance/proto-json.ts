// Proto JSON of the cases to protobuf bytes and back, by protobufjs on proto/*.proto: deliberately not the server's
// own codec, so that one cannot hide the other's mistakes.
import protobuf from 'protobufjs';
import { inRoot } from '../support/paths.ts';
import { bytesField, type Fill, fillBytes } from './case-bytes.ts';
import type { PlainObject } from './cases.ts';
import type { Json, JsonObject } from './json.ts';

const root = new protobuf.Root();
root.resolvePath = (_, file) => inRoot('proto', file);
root.loadSync(['grpc_service.proto', 'model_config.proto'], { keepCase: true });
root.resolveAll();

/** Undefined where the service has no message of this name. */
export function messageType(name: string): protobuf.Type | undefined {
  return root.get(['inference', name]) instanceof protobuf.Type ? root.lookupType(`inference.${name}`) : undefined;
}

/** `raw_fill` is not of the protocol: each entry becomes one of raw_input_contents. */
export function encodeMessage(type: protobuf.Type, message: PlainObject): Buffer {
  const { raw_fill: fills = [], ...fields } = message;
  const raw = (fields.raw_input_contents as string[] | undefined) ?? [];
  const filled = (fills as Fill[]).map(fillBytes);
  const all = filled.length === 0 ? fields : { ...fields, raw_input_contents: [...raw, ...filled] };
  return Buffer.from(type.encode(type.fromObject(all)).finish());
}

/**
 * The fields that are present, under their proto names: bytes as base64, integers as bigint, enum values by name. A
 * field without presence that holds its default is left out even where it was sent.
 */
export function decodeMessage(type: protobuf.Type, data: Buffer): JsonObject {
  return messageFields(type, type.decode(data) as unknown as Record<string, unknown>);
}

function messageFields(type: protobuf.Type, message: Record<string, unknown>): JsonObject {
  const out: JsonObject = {};
  for (const field of type.fieldsArray) {
    const value = Object.hasOwn(message, field.name) ? message[field.name] : undefined;
    if (value === undefined || value === null) continue;
    if (field.map) {
      const entries = Object.entries(value).map(([key, inner]) => [key, fieldValue(field, inner)] as const);
      if (entries.length > 0) out[field.name] = Object.fromEntries(entries);
    } else if (field.repeated) {
      const items = (value as unknown[]).map((item) => fieldValue(field, item));
      if (items.length > 0) out[field.name] = items;
    } else if (hasPresence(field) || !isDefault(value)) {
      out[field.name] = fieldValue(field, value);
    }
  }
  return out;
}

function hasPresence(field: protobuf.Field): boolean {
  return field.partOf !== null || field.resolvedType instanceof protobuf.Type;
}

function isDefault(value: unknown): boolean {
  if (protobuf.util.Long.isLong(value)) return value.isZero();
  return value instanceof Uint8Array ? value.length === 0 : !value;
}

function fieldValue(field: protobuf.Field, value: unknown): Json {
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Type) {
    return messageFields(resolvedType, value as Record<string, unknown>);
  }
  if (resolvedType instanceof protobuf.Enum) {
    return resolvedType.valuesById[value as number] ?? BigInt(value as number);
  }
  if (value instanceof Uint8Array) return bytesField(Buffer.from(value));
  if (protobuf.util.Long.isLong(value)) return BigInt(value.toString());
  if (typeof value !== 'number') return value as string | boolean;
  return field.type === 'float' || field.type === 'double' ? value : BigInt(value);
}
