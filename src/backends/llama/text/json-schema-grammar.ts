// JSON schema → GBNF: every text of the grammar is JSON that is valid for the schema. Keys come in the order of the
// schema. A keyword that cannot be kept is refused by name. The engine calls it for structured outputs and tools.
// An object without "additionalProperties" has only the properties it names, as in OpenAI's strict mode; oneOf is
// read as anyOf.
import { createGrammarBuilder, either, type GrammarBuilder, literal } from './gbnf.ts';
import { findLeftRecursion, parseGrammar } from './gbnf-parser.ts';
import { addJsonRules, type JsonRules } from './json-grammar.ts';
import {
  checkKeywords,
  combiningKeywords,
  flatten,
  hasAssertions,
  isSchemaObject,
  resolveReference,
  type Schema,
  schemaError,
  schemaList,
} from './json-schema.ts';
import { addArray, addObject } from './json-schema-containers.ts';
import { addNumber, addString } from './json-schema-scalars.ts';

/** What the makers of single types need. */
export interface SchemaContext {
  readonly grammar: GrammarBuilder;
  readonly json: JsonRules;
  /** The rule of a schema inside this one. */
  visit(schema: unknown, hint: string): string;
}

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const;
type SchemaType = (typeof TYPES)[number];

/** Deeper than any schema that people write, and well inside the stack. */
const DEPTH_MAX = 100;

export function jsonSchemaGrammar(schema: unknown): string {
  const grammar = createGrammarBuilder();
  return grammar.print(addJsonSchema(grammar, addJsonRules(grammar), schema));
}

/** Adds the rules of a schema to a grammar and returns the name of the rule that stands for it. */
export function addJsonSchema(grammar: GrammarBuilder, json: JsonRules, schema: unknown): string {
  // By identity: a reference leads back to the same object, which is how recursion ends.
  const known = new Map<object, string>();
  let depth = 0;

  const context: SchemaContext = { grammar, json, visit };

  function visit(part: unknown, hint: string): string {
    if (part === true) return json.value;
    if (part === false) throw schemaError("'false' allows no value");
    if (!isSchemaObject(part)) throw schemaError('must be an object or a boolean');
    const name = known.get(part);
    if (name !== undefined) return name;
    if (depth >= DEPTH_MAX) throw schemaError(`is nested more than ${DEPTH_MAX} levels deep`);
    checkKeywords(part);
    const combining = combiningKeywords(part);
    if (combining.length === 0 && !hasAssertions(part)) return json.value;
    const rule = grammar.reserve(hint);
    known.set(part, rule);
    depth++;
    grammar.define(rule, bodyOf(part, combining, hint));
    depth--;
    return rule;
  }

  function bodyOf(part: Schema, combining: readonly string[], hint: string): string {
    const [only] = combining;
    if (only === undefined) return addPlain(part, hint, context);
    if (combining.length === 1 && !hasAssertions(part)) {
      if (only === '$ref') return visit(resolveReference(schema, part.$ref), nameOf(part.$ref));
      const list = schemaList(part, only);
      if (only !== 'allOf' || list.length === 1) {
        return list.map((item, index) => visit(item, `${hint}-${index + 1}`)).join(' | ');
      }
    }
    const alternatives = flatten(part, schema);
    if (alternatives.length === 0) throw schemaError('has parts that contradict each other');
    return alternatives
      .map((item, index) =>
        hasAssertions(item) ? addPlain(item, `${hint}-${index + 1}`, context) : json.value,
      )
      .join(' | ');
  }

  const root = visit(schema, 'schema');
  if (findLeftRecursion(parseGrammar(grammar.print(root))) !== undefined) {
    throw schemaError('refers to itself with nothing in between');
  }
  return root;
}

function nameOf(reference: unknown): string {
  return String(reference).split('/').at(-1) || 'schema';
}

/** A schema without combining keywords, as alternatives. */
function addPlain(schema: Schema, hint: string, context: SchemaContext): string {
  const types = typesOf(schema);
  const alternatives =
    schema.enum !== undefined || schema.const !== undefined
      ? enumeration(schema, types)
      : types.map((type) => addType(type, schema, hint, context));
  if (schema.nullable === true && !types.includes('null')) alternatives.push(context.json.null);
  return alternatives.join(' | ');
}

function addType(type: SchemaType, schema: Schema, hint: string, context: SchemaContext): string {
  const { json } = context;
  switch (type) {
    case 'object':
      return addObject(schema, hint, context);
    case 'array':
      return addArray(schema, hint, context);
    case 'string':
      return addString(schema, context);
    case 'number':
    case 'integer':
      return addNumber(schema, type, context);
    case 'boolean':
      return json.boolean;
    case 'null':
      return json.null;
  }
}

/** The types that are said, or that the keywords speak of. */
function typesOf(schema: Schema): readonly SchemaType[] {
  const said = schema.type;
  if (said !== undefined) {
    const list = Array.isArray(said) ? said : [said];
    if (list.length === 0) throw schemaError("keyword 'type' must name a type");
    for (const type of list) {
      if (!TYPES.includes(type)) throw schemaError(`type '${String(type)}' is not supported`);
    }
    // An integer is a number too: one way to write it is enough.
    return list.includes('number') ? list.filter((type) => type !== 'integer') : list;
  }
  const speaks = (...keywords: string[]) => keywords.some((keyword) => schema[keyword] !== undefined);
  const types: SchemaType[] = [];
  if (speaks('properties', 'required', 'additionalProperties')) types.push('object');
  if (speaks('items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems')) types.push('array');
  if (speaks('pattern', 'format', 'minLength', 'maxLength')) types.push('string');
  if (speaks('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'))
    types.push('number');
  return types.length > 0 ? types : TYPES.filter((type) => type !== 'integer');
}

/** Values are written without white space. */
function enumeration(schema: Schema, types: readonly SchemaType[]): string[] {
  const other = Object.keys(schema).find(
    (keyword) =>
      hasAssertions({ [keyword]: true }) && !['enum', 'const', 'type', 'nullable'].includes(keyword),
  );
  if (other !== undefined)
    throw schemaError(`has '${other}' beside 'enum' or 'const': that is not supported`);
  const listed = schema.enum === undefined ? [schema.const] : schemaList(schema, 'enum');
  const isConstant = (value: unknown) =>
    schema.const === undefined || JSON.stringify(value) === JSON.stringify(schema.const);
  const isTyped = (value: unknown) =>
    schema.type === undefined || types.some((type) => isOfType(value, type));
  const values = listed.filter((value) => isConstant(value) && isTyped(value));
  if (values.length === 0) throw schemaError("has an 'enum' or 'const' with no value of its type");
  return [either([...new Set(values.map((value) => literal(JSON.stringify(value))))])];
}

function isOfType(value: unknown, type: SchemaType): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isSchemaObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
