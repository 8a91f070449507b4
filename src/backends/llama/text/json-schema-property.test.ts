// Random schemas with random values: a valid value is always let through, a broken one never. A small validator of
// the keywords in use is the judge.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng, type Prng } from '../../../lib/prng.ts';
import { createMatcher } from './gbnf-matcher.ts';
import { jsonSchemaGrammar } from './json-schema-grammar.ts';

type Json = Readonly<Record<string, unknown>>;

const NAMES = ['a', 'ab', 'abc', 'b', 'é"', 'x y'];

function randomSchema(random: Prng, depth: number): Json {
  const kind = depth === 0 ? random.integer(0, 6) : random.integer(0, 10);
  const inner = () => randomSchema(random, depth - 1);
  switch (kind) {
    case 0:
      return random.pick([
        { type: 'boolean' },
        { type: 'null' },
        { enum: ['a', 1, null, 'é"'] },
        { const: 'x\n' },
      ]);
    case 1: {
      const minLength = random.integer(0, 3);
      return { type: 'string', minLength, maxLength: minLength + random.integer(0, 3) };
    }
    case 2: {
      const minimum = random.integer(-150, 150);
      return { type: 'integer', minimum, maximum: minimum + random.integer(0, 300) };
    }
    case 3: {
      const minimum = random.integer(-500, 500) / 10;
      return {
        type: 'number',
        minimum,
        [random.pick(['maximum', 'exclusiveMaximum'])]: minimum + random.integer(1, 500) / 100,
      };
    }
    case 4:
      return { type: 'integer', multipleOf: random.integer(2, 12) };
    case 5:
      return random.pick([{ type: 'string' }, { type: 'number' }, { type: 'integer' }]);
    case 6:
      return {
        type: random.pick([
          ['string', 'null'],
          ['integer', 'boolean'],
        ]),
      };
    case 7:
      return { anyOf: [inner(), inner()] };
    case 8: {
      const minItems = random.integer(0, 2);
      return { type: 'array', items: inner(), minItems, maxItems: minItems + random.integer(0, 3) };
    }
    case 9: {
      const prefixItems = [inner(), inner()];
      return { type: 'array', prefixItems, items: random.pick([false, { type: 'null' }]) };
    }
    default: {
      const names = random.shuffle([...NAMES]).slice(0, random.integer(1, 4));
      const properties = Object.fromEntries(names.map((name) => [name, inner()]));
      const required = names.filter(() => random.boolean());
      return {
        type: 'object',
        properties,
        required,
        additionalProperties: random.pick<unknown>([false, true, { type: 'integer' }]),
      };
    }
  }
}

function randomText(random: Prng, length: number): string {
  return Array.from({ length }, () => random.pick([...'ab"\\\n é😀/'])).join('');
}

function randomValue(schema: Json, random: Prng): unknown {
  if (schema.enum !== undefined) return random.pick(schema.enum as unknown[]);
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf !== undefined) return randomValue(random.pick(schema.anyOf as Json[]), random);
  const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type;
  switch (type) {
    case 'boolean':
      return random.boolean();
    case 'null':
      return null;
    case 'string':
      return randomText(random, random.integer(Number(schema.minLength ?? 0), Number(schema.maxLength ?? 6)));
    case 'integer': {
      const step = Number(schema.multipleOf ?? 1);
      return random.integer(Number(schema.minimum ?? -99), Number(schema.maximum ?? 99)) * step;
    }
    case 'number': {
      const low = Number(schema.minimum ?? -5);
      const high = Number(schema.maximum ?? schema.exclusiveMaximum ?? 5);
      const value = Number((low + random.float() * (high - low)).toFixed(random.integer(0, 4)));
      return isValid(value, schema) ? value : low;
    }
    case 'array':
      return randomArray(schema, random);
    default:
      return randomObject(schema, random);
  }
}

function randomArray(schema: Json, random: Prng): unknown[] {
  if (schema.prefixItems !== undefined) {
    const heads = (schema.prefixItems as Json[]).map((item) => randomValue(item, random));
    return schema.items === false
      ? heads
      : [...heads, ...Array.from({ length: random.integer(0, 2) }, () => null)];
  }
  const length = random.integer(Number(schema.minItems), Number(schema.maxItems));
  return Array.from({ length }, () => randomValue(schema.items as Json, random));
}

function randomObject(schema: Json, random: Prng): unknown {
  const required = schema.required as string[];
  const entries = Object.entries(schema.properties as Record<string, Json>)
    .filter(([name]) => required.includes(name) || random.boolean())
    .map(([name, part]): [string, unknown] => [name, randomValue(part, random)]);
  if (schema.additionalProperties !== false) {
    for (const name of ['more', 'abcd', 'a"', '\n'].slice(0, random.integer(0, 4)))
      entries.push([name, random.integer(0, 9)]);
  }
  return Object.fromEntries(entries);
}

function isValid(value: unknown, schema: unknown): boolean {
  if (typeof schema === 'boolean') return schema;
  const rules = schema as Json;
  const text = JSON.stringify(value);
  if (rules.enum !== undefined) return (rules.enum as unknown[]).some((one) => JSON.stringify(one) === text);
  if (rules.const !== undefined) return JSON.stringify(rules.const) === text;
  if (rules.anyOf !== undefined) return (rules.anyOf as unknown[]).some((part) => isValid(value, part));
  const types = Array.isArray(rules.type) ? rules.type : [rules.type];
  if (!types.includes(typeOf(value)) && !(typeOf(value) === 'integer' && types.includes('number')))
    return false;
  if (typeof value === 'string') return isInside([...value].length, rules.minLength, rules.maxLength);
  if (typeof value === 'number') {
    if (rules.exclusiveMaximum !== undefined && value >= Number(rules.exclusiveMaximum)) return false;
    if (rules.multipleOf !== undefined && value % Number(rules.multipleOf) !== 0) return false;
    return isInside(value, rules.minimum, rules.maximum);
  }
  if (Array.isArray(value)) return isValidArray(value, rules);
  return typeof value !== 'object' || value === null || isValidObject(value as Json, rules);
}

function isInside(value: number, min: unknown, max: unknown): boolean {
  return (min === undefined || value >= Number(min)) && (max === undefined || value <= Number(max));
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

function isValidArray(value: readonly unknown[], rules: Json): boolean {
  const prefix = (rules.prefixItems ?? []) as unknown[];
  // A tuple is wanted whole, which is what the grammar promises.
  if (!isInside(value.length, rules.minItems ?? prefix.length, rules.maxItems)) return false;
  return value.every((item, index) => isValid(item, prefix[index] ?? rules.items ?? true));
}

function isValidObject(value: Json, rules: Json): boolean {
  const properties = rules.properties as Record<string, unknown>;
  if (!(rules.required as string[]).every((name) => Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, item]) =>
    isValid(item, properties[name] ?? rules.additionalProperties),
  );
}

/** The value with one thing in it changed; keys keep their order. */
function mutate(value: unknown, random: Prng): unknown {
  const isInner = random.boolean(0.7);
  if (Array.isArray(value)) {
    const at = random.integer(0, Math.max(0, value.length - 1));
    if (isInner && value.length > 0) return value.with(at, mutate(value[at], random));
    return random.boolean() ? value.slice(1) : [...value, random.pick<unknown>([null, 'z', 5])];
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    const at = random.integer(0, Math.max(0, entries.length - 1));
    const entry = entries[at];
    if (entry !== undefined && isInner) {
      return Object.fromEntries(entries.with(at, [entry[0], mutate(entry[1], random)]));
    }
    if (entry !== undefined && random.boolean()) return Object.fromEntries(entries.toSpliced(at, 1));
    return Object.fromEntries([...entries, ['zz', 'new']]);
  }
  if (typeof value === 'number') return value + random.pick([-1000, -1, -0.5, 0.01, 1, 1000]);
  if (typeof value === 'string') return random.boolean() ? `${value}abcd` : value.slice(1);
  return random.pick<unknown>([1.5, 'other', null, true, [], {}]);
}

test('valid values pass, compact and indented; broken ones do not', () => {
  const random = createPrng(2024);
  let brokenCount = 0;
  for (let round = 0; round < 500; round++) {
    const schema = randomSchema(random, 3);
    const matches = createMatcher(jsonSchemaGrammar(schema));
    for (let count = 0; count < 5; count++) {
      const value = randomValue(schema, random);
      const about = `${JSON.stringify(schema)} with ${JSON.stringify(value)}`;
      assert.ok(isValid(value, schema), `the test made an invalid value: ${about}`);
      assert.ok(matches(JSON.stringify(value)), about);
      assert.ok(matches(JSON.stringify(value, null, 2)), `indented: ${about}`);
      const changed = mutate(value, random);
      if (isValid(changed, schema)) continue;
      brokenCount++;
      assert.ok(!matches(JSON.stringify(changed)), `${about}, changed to ${JSON.stringify(changed)}`);
    }
  }
  assert.ok(brokenCount > 1000, `only ${brokenCount} broken values: the test says little`);
});
