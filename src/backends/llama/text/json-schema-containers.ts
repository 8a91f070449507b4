// Objects and arrays of a JSON schema as grammar expressions: chains of rules, one per property or element, so that
// the grammar grows with the schema and not with its combinations. Called by json-schema-grammar.ts.
import { type CodeRange, characterClass, joined, literal } from './gbnf.ts';
import { isSchemaObject, type Schema, schemaError } from './json-schema.ts';
import type { SchemaContext } from './json-schema-grammar.ts';
import { countsOf } from './json-schema-scalars.ts';

interface Property {
  readonly name: string;
  readonly isRequired: boolean;
  /** `"name": value` */
  readonly member: string;
}

/**
 * first(i): nothing was written yet;  rest(i): something was, so a comma comes before the next member.
 *   required:  first(i) = member rest(i+1)             rest(i) = "," member rest(i+1)
 *   optional:  first(i) = member rest(i+1) | first(i+1)  rest(i) = ("," member)? rest(i+1)
 */
export function addObject(schema: Schema, hint: string, context: SchemaContext): string {
  const { grammar, json } = context;
  const properties = propertiesOf(schema, hint, context);
  const more = additionalOf(schema);
  if (properties.length === 0 && (more === true || (more === undefined && schema.properties === undefined))) {
    return json.object;
  }
  let first = '"}"';
  let rest = `${json.space} "}"`;
  if (more !== undefined && more !== false) {
    const value = context.visit(more, `${hint}-more`);
    const key = keyExcept(
      properties.map(({ name }) => name),
      context,
    );
    const member = grammar.rule(`${hint}-member`, joined(key, json.colon, value));
    const next = grammar.rule(`${hint}-next`, `${json.comma} ${member}`);
    rest = `${next}* ${json.space} "}"`;
    first = `${member} ${rest} | "}"`;
  }
  first = grammar.rule(`${hint}-none`, first);
  rest = grammar.rule(`${hint}-end`, rest);
  const firstRequired = properties.findIndex(({ isRequired }) => isRequired);
  for (let index = properties.length - 1; index >= 0; index--) {
    const { member, isRequired } = properties[index]!;
    const isFirstNeeded = firstRequired < 0 || index <= firstRequired;
    const whole = `${member} ${rest}`;
    if (isFirstNeeded) first = grammar.rule(`${hint}-first`, isRequired ? whole : `${whole} | ${first}`);
    const comma = isRequired ? `${json.comma} ${member}` : `(${json.comma} ${member})?`;
    if (index > 0) rest = grammar.rule(`${hint}-rest`, `${comma} ${rest}`);
  }
  return `"{" ${json.space} ${first}`;
}

function additionalOf(schema: Schema): unknown {
  return schema.additionalProperties;
}

function propertiesOf(schema: Schema, hint: string, context: SchemaContext): Property[] {
  const { grammar, json } = context;
  const declared = schema.properties ?? {};
  if (!isSchemaObject(declared)) throw schemaError("keyword 'properties' must be an object");
  const required = schema.required ?? [];
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string')) {
    throw schemaError("keyword 'required' must be a list of names");
  }
  const undeclared = required.filter((name) => !Object.hasOwn(declared, name));
  if (undeclared.length > 0 && additionalOf(schema) === false) {
    throw schemaError(`requires '${undeclared[0]}', which is not one of its 'properties'`);
  }
  const all: [string, unknown][] = [
    ...Object.entries(declared),
    ...undeclared.map((name): [string, unknown] => [name, additionalOf(schema) ?? true]),
  ];
  return all.map(([name, part]) => {
    const value = context.visit(part, `${hint}-${name}`);
    const member = grammar.rule(
      `${hint}-${name}-member`,
      joined(literal(JSON.stringify(name)), json.colon, value),
    );
    return { name, isRequired: required.includes(name), member };
  });
}

/** Where a key of a trie may go on. */
interface KeyNode {
  isName: boolean;
  readonly next: Map<string, KeyNode>;
}

/**
 * A JSON string that is none of the names: one that leaves the tree of names at some character, or ends inside it.
 * It is written without \u, so that no name comes in by another spelling.
 */
function keyExcept(names: readonly string[], context: SchemaContext): string {
  const { grammar, json } = context;
  if (names.length === 0) return json.string;
  const top: KeyNode = { isName: false, next: new Map() };
  for (const name of names) {
    let node = top;
    for (const character of name) {
      const next = node.next.get(character) ?? { isName: false, next: new Map() };
      node.next.set(character, next);
      node = next;
    }
    node.isName = true;
  }
  const anything = grammar.rule('key-rest', `${plainExcept([])}*`);
  const write = (node: KeyNode): string => {
    const leaving = `${plainExcept([...node.next.keys()])} ${anything}`;
    const staying = [...node.next].map(([character, next]) => {
      const written = JSON.stringify(character).slice(1, -1);
      return `${literal(written)} ${grammar.rule('key', write(next))}`;
    });
    return [...(node.isName ? [] : ['""']), leaving, ...staying].join(' | ');
  };
  return grammar.rule('other-key', `"\\"" ${grammar.rule('key', write(top))} "\\""`);
}

const SHORT_ESCAPES: readonly (readonly [character: string, letter: string])[] = [
  ['"', '"'],
  ['\\', '\\'],
  ['\b', 'b'],
  ['\f', 'f'],
  ['\n', 'n'],
  ['\r', 'r'],
  ['\t', 't'],
];

/** One character of a key but none of these. */
function plainExcept(characters: readonly string[]): string {
  const codes = ['"', '\\', ...characters].map((character): CodeRange => {
    const code = character.codePointAt(0)!;
    return [code, code];
  });
  const plain = characterClass([[0, 0x1f], ...codes]).replace('[', '[^');
  const letters = SHORT_ESCAPES.filter(([character]) => !characters.includes(character));
  const escapes = letters.map(([, letter]) => literal(`\\${letter}`));
  return `(${[plain, ...escapes].join(' | ')})`;
}

/** Elements of "prefixItems" each have their schema; those after them are of "items". */
export function addArray(schema: Schema, hint: string, context: SchemaContext): string {
  const { grammar, json } = context;
  const { prefix, items } = elementsOf(schema);
  const counts = countsOf(schema, 'minItems', 'maxItems');
  const isPlain = schema.minItems === undefined && schema.maxItems === undefined;
  if (prefix.length === 0 && items === true && isPlain) return json.array;
  // A tuple is wanted whole unless the schema says otherwise.
  const min =
    schema.minItems === undefined ? Math.min(prefix.length, counts.max ?? prefix.length) : counts.min;
  const max = items === false ? Math.min(counts.max ?? prefix.length, prefix.length) : counts.max;
  if (max !== null && min > max) throw schemaError("has fewer kinds of elements than 'minItems'");
  const end = `${json.space} "]"`;
  if (max === 0) return `"[" ${end}`;

  const heads = prefix
    .slice(0, max ?? prefix.length)
    .map((part, index) => context.visit(part, `${hint}-${index + 1}`));
  const item = items === false || max === heads.length ? undefined : context.visit(items, `${hint}-item`);
  if (heads.length === 0) heads.push(item!);
  let rest = end;
  if (item !== undefined) {
    const next = grammar.rule(`${hint}-next`, `${json.comma} ${item}`);
    const [least, most] = [Math.max(0, min - heads.length), max === null ? null : max - heads.length];
    rest = joined(most === 0 ? '' : grammar.repeat(next, least, most), end);
  }
  rest = grammar.rule(`${hint}-end`, rest);
  for (let index = heads.length - 1; index > 0; index--) {
    const more = `${json.comma} ${heads[index]} ${rest}`;
    rest = grammar.rule(`${hint}-rest`, index < min ? more : `${more} | ${end}`);
  }
  const whole = `${heads[0]} ${rest}`;
  return `"[" ${json.space} ${min > 0 ? whole : `(${whole} | "]")`}`;
}

/** "items" as a list is the older spelling of "prefixItems". */
function elementsOf(schema: Schema): { readonly prefix: readonly unknown[]; readonly items: unknown } {
  const isOld = Array.isArray(schema.items);
  const prefix = isOld ? schema.items : (schema.prefixItems ?? []);
  if (!Array.isArray(prefix)) throw schemaError("keyword 'prefixItems' must be a list");
  const items = isOld ? schema.additionalItems : schema.items;
  const isLonger = Number(schema.minItems ?? 0) > prefix.length;
  return { prefix, items: items ?? (prefix.length === 0 || isLonger) };
}
