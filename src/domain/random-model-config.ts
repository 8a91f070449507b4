// Random ModelConfigs from a seed, for property tests of parsers and printers: every field of the schema turns up,
// with the values that break things (limits of the types, escapes, empty messages). Used by tests alone.

import type { Prng } from '../lib/prng.ts';
import type { FieldSchema } from './message-schema.ts';
import { createMessage, type FieldValue, type MessageValue, setMapEntry } from './message-value.ts';
import type { ModelConfig } from './model-config.ts';
import { enumSchemaOf } from './model-config-enums.ts';
import { messageSchemaOf } from './model-config-schema.ts';

const STRINGS = [
  '',
  'X',
  'a b',
  'quo"te',
  "it's",
  'back\\slash',
  'tab\tnew\nline',
  '\u0000\u0001\u007f',
  'é漢😀',
];
const KEYS = [...STRINGS, '__proto__', 'constructor', 'k1', 'k2'];
const INTEGERS: Readonly<Record<string, readonly number[]>> = {
  int32: [0, 1, -1, 8, 2 ** 31 - 1, -(2 ** 31)],
  int64: [0, 1, -1, 16, 2 ** 53 - 1, 2 ** 63, -(2 ** 63)],
  uint32: [0, 1, 4, 2 ** 32 - 1],
  uint64: [0, 1, 5_000_000, 2 ** 53 - 1, 2 ** 64],
};
const DOUBLES = [0, 0.5, 1, -2.25, 0.1, 1e-9, 1e300, Number.NaN, Number.POSITIVE_INFINITY, -0];

export function randomModelConfig(prng: Prng): ModelConfig {
  return randomMessage('ModelConfig', prng) as unknown as ModelConfig;
}

function randomMessage(messageName: string, prng: Prng): MessageValue {
  const message = createMessage(messageName);
  const chosen = new Set<string>();
  for (const field of prng.shuffle([...messageSchemaOf(messageName).fields])) {
    if (!prng.boolean(0.4) || (field.oneof !== undefined && chosen.has(field.oneof))) continue;
    if (field.oneof !== undefined) chosen.add(field.oneof);
    message[field.name] = randomField(field, prng);
  }
  return message;
}

function randomField(field: FieldSchema, prng: Prng): FieldValue {
  const length = prng.integer(0, 3);
  if (field.map !== undefined) {
    const { key, value } = field.map;
    const map: MessageValue = {};
    for (let i = 0; i < length; i++) {
      const name = key.type === 'string' ? prng.pick(KEYS) : String(prng.pick(INTEGERS[key.type]!));
      setMapEntry(map, name, randomValue(value, prng));
    }
    return map;
  }
  return field.repeated ? Array.from({ length }, () => randomValue(field, prng)) : randomValue(field, prng);
}

function randomValue(field: FieldSchema, prng: Prng): FieldValue {
  switch (field.type) {
    case 'message':
      return randomMessage(field.typeName, prng);
    case 'enum':
      return prng.pick(Object.keys(enumSchemaOf(field.typeName)));
    case 'string':
      return prng.pick(STRINGS);
    case 'bool':
      return prng.boolean(0.5);
    case 'float':
      return Math.fround(prng.boolean(0.5) ? prng.float() : prng.pick(DOUBLES));
    case 'double':
      return prng.boolean(0.5) ? prng.float() * 1000 : prng.pick(DOUBLES);
    default:
      return prng.pick(INTEGERS[field.type]!);
  }
}
