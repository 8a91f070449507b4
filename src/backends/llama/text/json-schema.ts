// JSON schemas before they become a grammar: which keywords are known, references, and the merging of allOf and of
// keywords that stand beside anyOf. Called by json-schema-grammar.ts.
import { invalidArgument, type StatusError } from '../../../domain/status.ts';

export type Schema = Readonly<Record<string, unknown>>;

/** Keywords that say something about values and are not supported: left out, the answer could break the schema. */
const UNSUPPORTED = new Set([
  'not',
  'if',
  'then',
  'else',
  'patternProperties',
  'propertyNames',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'contains',
  'minContains',
  'maxContains',
  'unevaluatedItems',
  'unevaluatedProperties',
  'minProperties',
  'maxProperties',
  '$dynamicRef',
  '$recursiveRef',
  'contentSchema',
]);
const COMBINING = ['$ref', 'allOf', 'anyOf', 'oneOf'] as const;
const ASSERTING = new Set([
  ...['type', 'enum', 'const', 'nullable'],
  ...['properties', 'required', 'additionalProperties'],
  ...['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems'],
  ...['pattern', 'format', 'minLength', 'maxLength'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]);
/** Alternatives that a merge may give; more of them is a mistake, or an attack. */
const ALTERNATIVES_MAX = 256;
const DEPTH_MAX = 64;

export function isSchemaObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function schemaError(reason: string): StatusError {
  return invalidArgument(`JSON schema ${reason}`);
}

export function notSupported(keyword: string): StatusError {
  return schemaError(`keyword '${keyword}' is not supported`);
}

export function checkKeywords(schema: Schema): void {
  for (const [keyword, value] of Object.entries(schema)) {
    if (UNSUPPORTED.has(keyword) || (keyword === 'uniqueItems' && value === true))
      throw notSupported(keyword);
  }
}

/** Without the combining keywords; annotations and words that JSON schema does not know say nothing. */
export function hasAssertions(schema: Schema): boolean {
  return Object.keys(schema).some((keyword) => ASSERTING.has(keyword));
}

export function combiningKeywords(schema: Schema): readonly (typeof COMBINING)[number][] {
  return COMBINING.filter((keyword) => schema[keyword] !== undefined);
}

/** References inside the document: "#", "#/$defs/name" and any other JSON pointer. */
export function resolveReference(root: unknown, reference: unknown): unknown {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) {
    throw schemaError(`reference '${reference}' is not supported: it must begin with '#/'`);
  }
  let value = root;
  for (const part of reference.split('/').slice(1)) {
    const key = decodeURIComponentSafe(part).replaceAll('~1', '/').replaceAll('~0', '~');
    const isInside = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
    if (!isInside) throw schemaError(`reference '${reference}' leads nowhere`);
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function schemaList(schema: Schema, keyword: string): readonly unknown[] {
  const list = schema[keyword];
  if (!Array.isArray(list) || list.length === 0)
    throw schemaError(`keyword '${keyword}' must be a list with elements`);
  return list;
}

/** The alternatives of a schema, each without $ref, allOf, anyOf and oneOf. */
export function flatten(schema: unknown, root: unknown, depth = 0): readonly Schema[] {
  if (depth > DEPTH_MAX) throw schemaError('refers to itself with nothing in between, or is nested too deep');
  if (schema === true) return [{}];
  if (schema === false) return [];
  if (!isSchemaObject(schema)) throw schemaError('must be an object or a boolean');
  checkKeywords(schema);
  const keywords = combiningKeywords(schema);
  const base = Object.fromEntries(Object.entries(schema).filter(([keyword]) => ASSERTING.has(keyword)));
  let alternatives: readonly Schema[] = [base];
  const join = (others: readonly Schema[]): void => {
    alternatives = alternatives.flatMap((one) =>
      others.flatMap((other): Schema[] => mergeSchemas(one, other)),
    );
    if (alternatives.length > ALTERNATIVES_MAX) throw schemaError('has too many alternatives');
  };
  for (const keyword of keywords) {
    if (keyword === '$ref') join(flatten(resolveReference(root, schema.$ref), root, depth + 1));
    else if (keyword === 'allOf') {
      for (const part of schemaList(schema, keyword)) join(flatten(part, root, depth + 1));
    } else join(schemaList(schema, keyword).flatMap((part) => flatten(part, root, depth + 1)));
  }
  return alternatives;
}

/** Both at once; empty when no value can be valid for both. */
function mergeSchemas(one: Schema, other: Schema): Schema[] {
  const merged: Record<string, unknown> = { ...one };
  for (const [keyword, value] of Object.entries(other)) {
    if (merged[keyword] === undefined) merged[keyword] = value;
    else if (keyword !== 'properties' && keyword !== 'additionalProperties') {
      const both = mergeKeyword(keyword, merged[keyword], value);
      if (both === undefined) return [];
      merged[keyword] = both;
    }
  }
  mergeProperties(merged, one, other);
  return [merged];
}

/** A property of both must be valid for both; one that the other schema closes out cannot be. */
function mergeProperties(merged: Record<string, unknown>, one: Schema, other: Schema): void {
  const [mine, theirs] = [propertiesOf(one), propertiesOf(other)];
  if (one.properties === undefined || other.properties === undefined) {
    if (!isOpen(one) || !isOpen(other)) checkClosed(one, other, mine, theirs);
  } else {
    checkClosed(one, other, mine, theirs);
    const both = new Map(mine);
    for (const [name, schema] of theirs)
      both.set(name, both.has(name) ? { allOf: [both.get(name), schema] } : schema);
    merged.properties = Object.fromEntries(both);
  }
  const [mineMore, theirMore] = [one.additionalProperties, other.additionalProperties];
  if (mineMore !== undefined && theirMore !== undefined) {
    if (mineMore === false || theirMore === false) merged.additionalProperties = false;
    else if (mineMore === true) merged.additionalProperties = theirMore;
    else if (theirMore !== true) merged.additionalProperties = { allOf: [mineMore, theirMore] };
  }
}

function propertiesOf(schema: Schema): ReadonlyMap<string, unknown> {
  return new Map(isSchemaObject(schema.properties) ? Object.entries(schema.properties) : []);
}

function isOpen(schema: Schema): boolean {
  return schema.additionalProperties === undefined || schema.additionalProperties === true;
}

function checkClosed(
  one: Schema,
  other: Schema,
  mine: ReadonlyMap<string, unknown>,
  theirs: ReadonlyMap<string, unknown>,
): void {
  const isClosedOut =
    (!isOpen(one) && [...theirs.keys()].some((name) => !mine.has(name))) ||
    (!isOpen(other) && [...mine.keys()].some((name) => !theirs.has(name)));
  if (isClosedOut)
    throw schemaError("joins objects of which one has 'additionalProperties': that is not supported");
}

function mergeKeyword(keyword: string, one: unknown, other: unknown): unknown {
  switch (keyword) {
    case 'type':
      return mergeTypes(one, other);
    case 'enum':
      return intersect(one, other);
    case 'required':
      return [...new Set([...asList(one), ...asList(other)])];
    case 'minimum':
    case 'exclusiveMinimum':
    case 'minLength':
    case 'minItems':
      return Math.max(Number(one), Number(other));
    case 'maximum':
    case 'exclusiveMaximum':
    case 'maxLength':
    case 'maxItems':
      return Math.min(Number(one), Number(other));
    case 'items':
      return { allOf: [one, other] };
    case 'nullable':
      return one === true && other === true;
    default:
      if (JSON.stringify(one) === JSON.stringify(other)) return one;
      if (keyword === 'const') return undefined;
      throw schemaError(`joins two different values of '${keyword}': that is not supported`);
  }
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function intersect(one: unknown, other: unknown): readonly unknown[] | undefined {
  const texts = new Set(asList(other).map((value) => JSON.stringify(value)));
  const both = asList(one).filter((value) => texts.has(JSON.stringify(value)));
  return both.length === 0 ? undefined : both;
}

function mergeTypes(one: unknown, other: unknown): readonly unknown[] | undefined {
  const accepts = (types: readonly unknown[], type: unknown) =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  const [mine, theirs] = [asList(one), asList(other)];
  const both = [
    ...mine.filter((type) => accepts(theirs, type)),
    ...theirs.filter((type) => accepts(mine, type)),
  ];
  return both.length === 0 ? undefined : [...new Set(both)];
}
