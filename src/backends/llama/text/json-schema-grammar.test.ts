// JSON schema keywords one by one: texts that are valid pass, others do not, and what is not supported is named.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMatcher } from './gbnf-matcher.ts';
import { jsonSchemaGrammar } from './json-schema-grammar.ts';

function check(schema: unknown, right: readonly string[], wrong: readonly string[]): void {
  const matches = createMatcher(jsonSchemaGrammar(schema));
  for (const text of right) assert.ok(matches(text), `${JSON.stringify(schema)} takes ${text}`);
  for (const text of wrong) assert.ok(!matches(text), `${JSON.stringify(schema)} refuses ${text}`);
}

describe('scalars', () => {
  test('of each type', () => {
    check(
      { type: 'string' },
      ['""', '"a\\n\\u00e9é😀\\ud83d\\ude00/"'],
      ['"\n"', '"a', '"\\x"', '"\\ud800"', 'a'],
    );
    check({ type: 'number' }, ['0', '-1.5', '1e5', '12.25E-3'], ['01', '.5', '1.', '+1', '1e999', 'NaN']);
    check({ type: 'integer' }, ['0', '-12'], ['1.0', '1e1', '-']);
    check({ type: 'boolean' }, ['true', 'false'], ['True', '"true"']);
    check({ type: 'null' }, ['null'], ['']);
    check({ type: ['string', 'null'] }, ['"a"', 'null'], ['5']);
    check({ type: 'string', nullable: true }, ['"a"', 'null'], ['5']);
  });

  test('enumerated', () => {
    check({ enum: ['a', 5, null, { b: [1] }] }, ['"a"', '5', 'null', '{"b":[1]}'], ['"b"', '6']);
    check({ const: 'x"y' }, ['"x\\"y"'], ['"x"']);
    check({ type: 'string', enum: ['a', 5, null] }, ['"a"'], ['5', 'null']);
  });

  test('strings with length, pattern and format', () => {
    check(
      { type: 'string', minLength: 2, maxLength: 3 },
      ['"ab"', '"😀\\ud83d\\ude00"', '"abc"'],
      ['"a"', '"abcd"'],
    );
    check({ maxLength: 1 }, ['""', '"a"'], ['"ab"']);
    check({ type: 'string', pattern: '^a+"$' }, ['"aa\\""'], ['"a"', '"b\\""']);
    check({ type: 'string', pattern: 'b' }, ['"abc"', '"b"'], ['"ac"']);
    const format = (name: string) => ({ type: 'string', format: name });
    check(format('date'), ['"2024-02-29"', '"2025-12-31"'], ['"2025-02-29"', '"2025-04-31"', '"2025-13-01"']);
    check(format('time'), ['"23:59:59Z"', '"00:00:00.5+02:00"'], ['"24:00:00Z"', '"10:00:00"']);
    check(format('date-time'), ['"2025-01-02T03:04:05Z"'], ['"2025-01-02"']);
    check(format('uuid'), ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']);
    check(format('email'), ['"a.b@c.de"'], ['"a@b"', '"@b.c"']);
    check(format('ipv4'), ['"127.0.0.1"', '"255.255.255.255"'], ['"256.0.0.1"', '"1.2.3"']);
    check(
      format('ipv6'),
      ['"::1"', '"::"', '"fe80::1:2"', '"1:2:3:4:5:6:7:8"', '"1::"'],
      ['"1:2"', '"1::2::3"', '":::"'],
    );
    check(format('duration'), ['"P1Y2M3DT4H5M6S"', '"PT1M"', '"P2W"'], ['"P"', '"PT"', '"1Y"']);
    check(format('uri'), ['"https://a.b/c?d=e#f"'], ['"a.b/c"']);
    check(format('hostname'), ['"a-b.example"'], ['"-a"', '"a..b"']);
  });

  test('numbers with bounds', () => {
    check({ type: 'integer', minimum: -5, maximum: 120 }, ['-5', '0', '120'], ['-6', '121', '1.5']);
    check({ type: 'integer', exclusiveMinimum: 0 }, ['1', '99999'], ['0', '-1']);
    check({ type: 'integer', minimum: 1.5, exclusiveMaximum: 3 }, ['2'], ['1', '3']);
    check({ type: 'number', minimum: 0, maximum: 1 }, ['0', '0.5', '1', '1.0'], ['-0.1', '1.01', '2']);
    check({ minimum: 0, exclusiveMinimum: true }, ['0.1', '5'], ['0', '0.0', '-1']);
    check({ type: 'integer', format: 'int32' }, ['2147483647', '-2147483648'], ['2147483648']);
    check({ type: 'integer', multipleOf: 7 }, ['0', '7', '-14', '700'], ['1', '8', '07']);
    check({ type: 'integer', multipleOf: 5, minimum: 3, maximum: 20 }, ['5', '20'], ['0', '25', '7']);
    check({ type: 'number', multipleOf: 0.01 }, ['1', '1.25', '-0.1'], ['1.255']);
    check({ type: 'number', multipleOf: 0.01, minimum: 0 }, ['0', '1.25'], ['-1', '1.255']);
    check({ type: 'number', multipleOf: 0.25, minimum: 0, maximum: 1 }, ['0', '0.75', '1'], ['0.3']);
    check({ type: 'integer', multipleOf: 1, maximum: 3 }, ['3', '-7'], ['4']);
  });
});

describe('objects', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'string' }, c: { type: 'boolean' } },
    required: ['b'],
  };

  test('have their properties in order, required ones always', () => {
    check(
      schema,
      ['{"b":""}', '{"a": 1, "b": "x"}', '{"b":"","c":true}', '{\n  "a": 1,\n  "b": "x",\n  "c": false\n}'],
      [
        '{}',
        '{"a":1}',
        '{"b":"","a":1}',
        '{"b":"",}',
        '{,"b":""}',
        '{"b":"" "c":true}',
        '{"b":"","b":""}',
        '{"b":"","x":1}',
      ],
    );
    check({ ...schema, required: [] }, ['{}', '{"c":true}', '{"a":1,"c":true}'], ['{"c":true,"a":1}']);
    check({ ...schema, required: ['a', 'b', 'c'] }, ['{"a":1,"b":"","c":true}'], ['{"a":1,"b":""}']);
  });

  test('may have more where the schema says so, but no name twice', () => {
    const open = { ...schema, additionalProperties: { type: 'null' } };
    check(
      open,
      ['{"b":"","x":null,"ab":null,"":null,"\\n\\"":null}'],
      ['{"b":"","x":1}', '{"b":"","a":null}', '{"b":"","\\u0061":null}'],
    );
    check(
      { ...open, required: [], additionalProperties: true },
      ['{"x":[1]}', '{}', '{"a":1,"abc":{}}'],
      ['{"a":null}', '{"x":1,"a":1}'],
    );
    check({ additionalProperties: { type: 'integer' } }, ['{}', '{"a":1,"b":2}'], ['{"a":"b"}']);
    check({ type: 'object' }, ['{}', '{"a": {"b": []}}'], ['[]']);
    check({ type: 'object', additionalProperties: false }, ['{}', '{ }'], ['{"a":1}']);
    check({ type: 'object', properties: {} }, ['{}'], ['{"a":1}']);
    check({ type: 'object', required: ['z'] }, ['{"z":5}'], ['{}']);
  });

  test('have names of any kind', () => {
    const odd = {
      properties: { 'a"b\\': { type: 'null' }, é: { type: 'null' }, 'a b': { type: 'null' } },
      required: ['é'],
    };
    check(odd, ['{"a\\"b\\\\":null,"é":null,"a b":null}'], ['{"é":1}']);
  });
});

describe('arrays', () => {
  test('count their elements', () => {
    check(
      { type: 'array', items: { type: 'integer' } },
      ['[]', '[1]', '[1, 2,\n 3]'],
      ['["a"]', '[1,]', '[,1]', '[1 2]'],
    );
    check(
      { items: { type: 'integer' }, minItems: 2, maxItems: 3 },
      ['[1,2]', '[1,2,3]'],
      ['[]', '[1]', '[1,2,3,4]'],
    );
    check({ type: 'array', minItems: 1 }, ['[{}]'], ['[]']);
    check({ type: 'array', maxItems: 0 }, ['[]', '[ ]'], ['[1]']);
    check({ type: 'array', maxItems: 1 }, ['[]', '[1]'], ['[1,2]']);
    check({ type: 'array', items: false }, ['[]'], ['[1]']);
  });

  test('have a schema for each of the first', () => {
    const pair = [{ type: 'integer' }, { type: 'string' }];
    check({ prefixItems: pair }, ['[1,"a"]'], ['[1]', '["a",1]', '[1,"a",2]']);
    check({ prefixItems: pair, minItems: 0 }, ['[]', '[1]', '[1,"a"]'], ['["a"]']);
    check({ prefixItems: pair, items: { type: 'null' } }, ['[1,"a"]', '[1,"a",null,null]'], ['[1,"a",2]']);
    check(
      { prefixItems: pair, items: { type: 'null' }, minItems: 3, maxItems: 4 },
      ['[1,"a",null]', '[1,"a",null,null]'],
      ['[1,"a"]'],
    );
    check({ prefixItems: pair, maxItems: 1 }, ['[1]'], ['[1,"a"]', '[]']);
    check({ items: pair }, ['[1,"a"]'], ['[1]']);
  });
});

describe('schemas of schemas', () => {
  test('anyOf and oneOf are alternatives, also beside other keywords', () => {
    check({ anyOf: [{ type: 'integer' }, { type: 'null' }] }, ['1', 'null'], ['"a"']);
    check({ oneOf: [{ const: 1 }, { const: 'b' }] }, ['1', '"b"'], ['2']);
    const beside = {
      type: 'object',
      properties: { kind: { type: 'string' } },
      required: ['kind'],
      anyOf: [
        { properties: { kind: { const: 'a' }, n: { type: 'integer' } }, required: ['n'] },
        { properties: { kind: { const: 'b' } } },
      ],
    };
    check(
      beside,
      ['{"kind":"a","n":1}', '{"kind":"b"}'],
      ['{"kind":"a"}', '{"kind":"c"}', '{"kind":"b","n":1}'],
    );
  });

  test('allOf holds all at once', () => {
    check(
      {
        allOf: [
          { type: 'integer', minimum: 2 },
          { type: 'number', maximum: 4 },
        ],
      },
      ['2', '4'],
      ['1', '5', '2.5'],
    );
    const parts = {
      $defs: { base: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] } },
      allOf: [{ $ref: '#/$defs/base' }, { properties: { name: { type: 'string' } }, required: ['name'] }],
    };
    check(parts, ['{"id":1,"name":"a"}'], ['{"id":1}', '{"name":"a"}']);
    check({ allOf: [{ enum: [1, 2, 3] }, { enum: [2, 3, 4] }] }, ['2', '3'], ['1', '4']);
    check(
      { allOf: [{ anyOf: [{ const: 1 }, { const: 2 }] }, { anyOf: [{ const: 2 }, { const: 3 }] }] },
      ['2'],
      ['1', '3'],
    );
    assert.throws(
      () => jsonSchemaGrammar({ allOf: [{ type: 'string' }, { type: 'null' }] }),
      /contradict each other/,
    );
  });

  test('references lead anywhere in the document, also back', () => {
    const tree = {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: {
            value: { type: 'integer' },
            children: { type: 'array', items: { $ref: '#/$defs/node' } },
          },
          required: ['value'],
        },
      },
    };
    check(
      tree,
      ['{"value":1}', '{"value":1,"children":[{"value":2,"children":[]},{"value":3}]}'],
      ['{"value":1,"children":[{}]}'],
    );
    check(
      { properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } } },
      ['{}', '{"next":{"next":null}}'],
      ['{"next":1}'],
    );
    check(
      { properties: { 'a/b': { type: 'null' }, c: { $ref: '#/properties/a~1b' } } },
      ['{"c":null}'],
      ['{"c":1}'],
    );
    const described = {
      $defs: {
        a: { type: 'object', properties: { x: { allOf: [{ $ref: '#/$defs/a' }], description: 'd' } } },
      },
      $ref: '#/$defs/a',
    };
    check(described, ['{"x":{"x":{}}}'], ['{"x":1}']);
  });

  test('true, {} and annotations alone are any value', () => {
    for (const schema of [true, {}, { title: 'x', description: 'y', default: 1, unheardOf: 2 }]) {
      check(schema, ['1', '"a"', '[{"b":null}]', '{"a":[]}'], ['', 'undefined', '{a:1}']);
    }
  });
});

test('white space has a bound', () => {
  check(
    { type: 'array' },
    ['[1, 2]', `[\n${' '.repeat(20)}1\n]`],
    ['[1,  2]', `[\n${' '.repeat(21)}1]`, '[\n\n1]', ' [1]', '[1] '],
  );
});

test('large schemas grow with their size, not with their combinations', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 300 }, (_, index) => [`key${index}`, { type: 'integer' }]),
  );
  const grammar = jsonSchemaGrammar({ type: 'object', properties });
  assert.ok(grammar.length < 150_000, `${grammar.length} characters`);
  const matches = createMatcher(grammar);
  assert.ok(matches('{"key0":1,"key150":2,"key299":3}') && !matches('{"key150":2,"key0":1}'));
});

test('what is not supported is refused by name', () => {
  const unsupported = [
    'not',
    'if',
    'patternProperties',
    'propertyNames',
    'dependentRequired',
    'contains',
    'unevaluatedProperties',
    'minProperties',
    'maxProperties',
  ];
  for (const keyword of unsupported) {
    const schema = { properties: { a: { type: 'object', [keyword]: {} } } };
    assert.throws(
      () => jsonSchemaGrammar(schema),
      new RegExp(`JSON schema keyword '${keyword}' is not supported`),
    );
  }
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [{ type: 'array', uniqueItems: true }, /keyword 'uniqueItems' is not supported/],
    [{ type: 'text' }, /type 'text' is not supported/],
    [{ type: 'string', format: 'iban' }, /format 'iban' is not supported/],
    [{ type: 'string', pattern: '(?=a)' }, /is not supported/],
    [{ type: 'string', pattern: 'a', minLength: 5 }, /'minLength' beside 'pattern'/],
    [{ type: 'string', minLength: 5, maxLength: 4 }, /'maxLength' below 'minLength'/],
    [{ type: 'string', maxLength: -1 }, /'maxLength' must be an integer/],
    [{ type: 'string', maxLength: 1e6 }, /'maxLength' must be at most 100000/],
    [{ type: 'integer', minimum: 5, maximum: 4 }, /no integer between/],
    [{ type: 'number', multipleOf: 0.3 }, /'multipleOf' 0.3 is not supported/],
    [{ $ref: 'https://example.com/a' }, /must begin with '#\/'/],
    [{ $ref: '#/$defs/none' }, /leads nowhere/],
    [{ $ref: '#' }, /refers to itself/],
    [
      {
        $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { anyOf: [{ $ref: '#/$defs/a' }, {}] } },
        $ref: '#/$defs/a',
      },
      /refers to itself/,
    ],
    [{ properties: { a: false } }, /'false' allows no value/],
    [{ type: 'object', required: ['a'], additionalProperties: false }, /requires 'a'/],
    [{ enum: [] }, /'enum' must be a list/],
    [{ type: 'integer', enum: ['a'] }, /no value of its type/],
    [{ enum: ['abc'], maxLength: 2 }, /'maxLength' beside 'enum'/],
    [5, /must be an object or a boolean/],
    [
      { allOf: [{ properties: { a: {} }, additionalProperties: false }, { properties: { b: {} } }] },
      /additionalProperties/,
    ],
  ];
  for (const [schema, reason] of wrong)
    assert.throws(() => jsonSchemaGrammar(schema), reason, JSON.stringify(schema));
});
