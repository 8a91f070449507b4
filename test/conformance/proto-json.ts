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
  const found = root.lookup(`inference.${name}`);
  return found instanceof protobuf.Type ? found : undefined;
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
    if (field instanceof protobuf.MapField) {
      const entries = Object.entries(value).map(
        ([key, inner]) => [mapKey(field, key), fieldValue(field, inner)] as const,
      );
      if (entries.length > 0) out[field.name] = Object.fromEntries(entries);
    } else if (field.repeated) {
      const items = (value as unknown[]).map((item) => fieldValue(field, item));
      if (items.length > 0) out[field.name] = items;
    } else if (hasPresence(field) || !isDefault(field, value)) {
      out[field.name] = fieldValue(field, value);
    }
  }
  return out;
}

/** protobufjs packs a 64-bit key into eight characters. */
function mapKey(field: protobuf.MapField, key: string): string {
  return field.keyType.endsWith('64')
    ? String(protobuf.util.longFromHash(key, field.keyType === 'uint64'))
    : key;
}

function hasPresence(field: protobuf.Field): boolean {
  return field.partOf !== null || field.resolvedType instanceof protobuf.Type;
}

function isDefault(field: protobuf.Field, value: unknown): boolean {
  if (typeof value === 'string') return value === '';
  if (value instanceof Uint8Array) return value.length === 0;
  return field.type === 'bool' ? value === false : Number(value) === 0;
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
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  if (field.type === 'float' || field.type === 'double') return Number(value);
  // A number, or a Long where the field has 64 bits.
  return BigInt(String(value));
}
