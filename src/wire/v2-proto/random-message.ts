// Random messages from a seed, for property tests of the codecs: every field turns up, with the values that break
// things. Used by tests alone.

import type { FieldSchema } from '../../domain/message-schema.ts';
import type { Prng } from '../../lib/prng.ts';
import { decodeMessage, type ProtoMessage, type ProtoValue } from './decode-message.ts';
import { enumTableOf, messageTableOf } from './message-table.ts';

const STRINGS = ['', 'X', 'INPUT0', 'a b', '\u0000', 'é漢😀', 'n'.repeat(200)];
const VALUES: Readonly<Record<string, readonly (number | bigint)[]>> = {
  int32: [0, 1, -1, 127, 128, 2 ** 31 - 1, -(2 ** 31)],
  uint32: [0, 1, 127, 128, 2 ** 32 - 1],
  int64: [
    0,
    1,
    -1,
    128,
    2 ** 32,
    2 ** 53 - 1,
    -(2 ** 53) + 1,
    2n ** 53n,
    -(2n ** 53n),
    2n ** 63n - 1n,
    -(2n ** 63n),
  ],
  uint64: [0, 1, 300, 2 ** 32, 2 ** 53 - 1, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n],
  double: [0, -0, 0.1, 1e300, Number.NaN, Number.NEGATIVE_INFINITY],
  float: [0, -0, 0.5, Math.fround(0.1), Number.NaN, Number.POSITIVE_INFINITY],
};
/** Below this only scalars are filled in, so that messages which hold each other come to an end. */
const DEPTH_MAX = 5;

export function randomProtoMessage(name: string, prng: Prng, depth = 0): ProtoMessage {
  const message = decodeMessage(name, Buffer.alloc(0)) as ProtoMessage;
  const chosen = new Set<string>();
  for (const field of prng.shuffle([...messageTableOf(name).fields])) {
    const isNested = field.type === 'message' || field.map?.value.type === 'message';
    if (prng.boolean(0.4) || (isNested && depth >= DEPTH_MAX)) continue;
    if (field.oneof !== undefined && chosen.has(field.oneof)) continue;
    if (field.oneof !== undefined) chosen.add(field.oneof);
    message[field.name] = randomField(field, prng, depth);
  }
  return message;
}

function randomField(field: FieldSchema, prng: Prng, depth: number): ProtoValue {
  const length = prng.integer(0, 3);
  if (field.map === undefined) {
    return field.repeated
      ? Array.from({ length }, () => randomValue(field, prng, depth))
      : randomValue(field, prng, depth);
  }
  const { key, value } = field.map;
  const map: ProtoMessage = {};
  for (let i = 0; i < length; i++)
    map[String(randomValue(key, prng, depth))] = randomValue(value, prng, depth);
  return map;
}

function randomValue(field: FieldSchema, prng: Prng, depth: number): ProtoValue {
  switch (field.type) {
    case 'message':
      return randomProtoMessage(field.typeName, prng, depth + 1);
    case 'enum':
      return prng.pick([...enumTableOf(field.typeName).numberByName.keys()]);
    case 'string':
      return prng.pick(STRINGS);
    case 'bytes':
      return Buffer.from(Array.from({ length: prng.integer(0, 200) }, () => prng.integer(0, 255)));
    case 'bool':
      return prng.boolean();
    default:
      return prng.pick(VALUES[field.type]!);
  }
}
