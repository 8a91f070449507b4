// Each kind of structured output, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMatcher } from './gbnf-matcher.ts';
import { structuredOutputs } from './structured-outputs.ts';

const matcherOf = (value: unknown) => createMatcher(structuredOutputs(value)!);

test('every kind gives its grammar', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
  for (const json of [schema, JSON.stringify(schema)]) {
    const matches = matcherOf({ json });
    assert.ok(matches('{"a": 5}') && !matches('{"b": 5}'));
  }
  const object = matcherOf({ json_object: true });
  assert.ok(
    object('{"a": [1, {"b": null}], "c": "\\u00e9\\n"}') &&
      object('{}') &&
      !object('[1]') &&
      !object('{"a"}'),
  );
  const choice = matcherOf({ choice: ['red', 'a "quote"\n'] });
  assert.ok(choice('red') && choice('a "quote"\n') && !choice('blue'));
  const regex = matcherOf('{"regex": "[0-9]+"}');
  assert.ok(regex('12') && !regex('a'));
  assert.equal(structuredOutputs({ grammar: 'root ::= "x"' }), 'root ::= "x"');
});

test('nothing asked gives none', () => {
  for (const value of [undefined, null, 'null', { json_object: false }])
    assert.equal(structuredOutputs(value), undefined);
  assert.ok(structuredOutputs({ json: {}, regex: null }) !== undefined);
});

test('what is wrong is refused', () => {
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [5, /must be a JSON object/],
    [{}, /exactly one of json, json_object, grammar, regex, choice/],
    [{ json_object: 'yes' }, /json_object must be a boolean/],
    [{ json: '{' }, /\bjson is not valid JSON/],
    [{ json: 5 }, /JSON schema must be an object or a boolean/],
    [{ choice: [] }, /choice must be a list/],
    [{ choice: ['a', ''] }, /choice must be a list/],
    [{ regex: '' }, /regex must be a string/],
    [{ grammar: 'root ::=' + ' (' }, /the grammar is not valid/],
  ];
  for (const [value, reason] of wrong) assert.throws(() => structuredOutputs(value), reason);
});
