// Regular expressions as grammars, held against JavaScript's own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng, type Prng } from '../../../lib/prng.ts';
import { createMatcher } from './gbnf-matcher.ts';
import { checkGrammar } from './gbnf-parser.ts';
import { jsonSchemaGrammar } from './json-schema-grammar.ts';
import { regexGrammar } from './regex-grammar.ts';

test('match what the expression matches', () => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['^\\d{3}-[a-z]+$', ['123-a', '000-xyz'], ['12-a', '123-', '123-A']],
    ['(foo|ba[rz])?x*', ['', 'foo', 'bazxx'], ['fo', 'bax']],
    ['a|b|', ['a', 'b', ''], ['ab']],
    ['(?:a{2,}){1,2}', ['aa', 'aaaaa'], ['a', '']],
    ['(?<year>\\d+)\\.(?P<x>\\w)', ['1.a', '22._'], ['1a', '1.-']],
    ['[^\\s"\\\\]+', ['ab', '-'], ['a b', '"', '\\']],
    ['\\u0041\\x42[\\]\\-^]', ['AB]', 'AB-', 'AB^'], ['ABx']],
    ['.\\.\\/\\$', ['x./$', '€./$'], ['\n./$', 'xx/$']],
    ['a+?b*?c??', ['a', 'aabbc'], ['b']],
    ['[\\w-]+@[a-zA-Z_]+?\\.[a-zA-Z]{2,3}', ['a-b@c.de'], ['a@b']],
    ['x{0}y', ['y'], ['xy']],
    ['()', [''], ['a']],
    ['(|)+(a{0,900}|b{0,900}|c{0,900}|)', ['', 'aaa'], ['ab']],
    ['((a?b?)*c?){2,5}', ['', 'abbac', 'cc', 'ccccc'], ['cccccc', 'd']],
    ['[a-]', ['a', '-'], ['b']],
    ['\\D\\W\\S', ['a-b'], ['1-b', 'aab', 'a- ']],
  ];
  for (const [pattern, right, wrong] of cases) {
    const matches = createMatcher(regexGrammar(pattern));
    for (const text of right) assert.ok(matches(text), `${pattern} matches ${JSON.stringify(text)}`);
    for (const text of wrong) assert.ok(!matches(text), `${pattern} does not match ${JSON.stringify(text)}`);
  }
});

test('what a grammar cannot say is refused', () => {
  for (const pattern of [
    '(?=a)b',
    '(?<!a)b',
    'a\\b',
    '(a)\\1',
    '\\p{L}',
    'a^b',
    '(^a)',
    '(a$)b',
    '*a',
    'a{3,2}',
    '(a',
    'a)',
    '[a',
    '[z-a]',
    'a\\',
    'a{0,200000}',
  ]) {
    assert.throws(() => regexGrammar(pattern), { code: 'INVALID_ARG' }, pattern);
  }
  assert.throws(
    () => regexGrammar('(?=a)b'),
    /^StatusError: regular expression '\(\?=a\)b': '\(\?=a' is not supported$/,
  );
});

function randomPattern(random: Prng, depth: number): string {
  const kind = depth === 0 ? random.integer(0, 2) : random.integer(0, 6);
  const inner = () => randomPattern(random, depth - 1);
  switch (kind) {
    case 0:
      return random.pick(['a', 'b', '\\.', '\\d', '\\\\', '"', '\\n', 'é']);
    case 1:
      return random.pick(['[ab]', '[^a]', '[a-c"]', '[\\d.]', '[^"\\\\]']);
    case 2:
      return random.pick(['.', '\\w', '\\s']);
    case 3:
      return `(?:${inner()}|${inner()})`;
    case 4:
      return `(${inner()})${random.pick(['*', '+', '?', '{2}', '{1,2}', '{1,}'])}`;
    default:
      return inner() + inner();
  }
}

test('random expressions agree with JavaScript on random texts, alone and in a JSON string', () => {
  const random = createPrng(17);
  let matchCount = 0;
  for (let round = 0; round < 300; round++) {
    const inner = randomPattern(random, 3);
    const pattern = random.pick([`^(?:${inner})$`, inner, `^${inner}`, `${inner}$`]);
    const search = new RegExp(pattern, 'u');
    const whole = new RegExp(`^(?:${inner})$`, 'u');
    const grammar = regexGrammar(pattern);
    checkGrammar(grammar);
    const matchesAlone = createMatcher(grammar);
    const matchesJson = createMatcher(jsonSchemaGrammar({ type: 'string', pattern }));
    for (let count = 0; count < 15; count++) {
      const text = Array.from({ length: random.integer(0, 5) }, () =>
        random.pick([...'aabbc.1"\\\né ']),
      ).join('');
      assert.equal(matchesAlone(text), whole.test(text), `${pattern} on ${JSON.stringify(text)}`);
      assert.equal(
        matchesJson(JSON.stringify(text)),
        search.test(text),
        `pattern ${pattern} on ${JSON.stringify(text)}`,
      );
      if (whole.test(text)) matchCount++;
    }
  }
  assert.ok(matchCount > 300, `only ${matchCount} texts matched: the test says little`);
});
