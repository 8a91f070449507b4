// The notation itself: what is written is read back as the same, and wrong grammars are refused with a reason.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { characterClass, createGrammarBuilder, literal } from './gbnf.ts';
import { createMatcher } from './gbnf-matcher.ts';
import { checkGrammar } from './gbnf-parser.ts';

describe('the writer of grammars', () => {
  test('escapes what literals and classes cannot hold', () => {
    const text = '"\\\n\r\t\u0001 é😀[]^-';
    const matches = createMatcher(`root ::= ${literal(text)}`);
    assert.ok(matches(text));
    assert.ok(!matches(`${text}x`));
    const inClass = createMatcher(
      `root ::= ${characterClass([...'^]\\[-\n😀'].map((c) => [c.codePointAt(0)!, c.codePointAt(0)!]))}`,
    );
    assert.deepEqual([...'^]\\[-\n😀ax'].map(inClass), [
      true,
      true,
      true,
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  test('counts exactly, also further than libllama does', () => {
    for (const [min, max] of [
      [0, 3],
      [2, 2],
      [1, null],
      [0, 1],
      [1500, 1500],
      [0, 2500],
      [999, 3001],
    ] as const) {
      const grammar = createGrammarBuilder();
      const matches = createMatcher(grammar.print(grammar.repeat('[a]', min, max)));
      for (const count of [0, 1, 2, 3, 4, 998, 999, 1000, 1001, 1499, 1500, 1501, 2500, 2501, 3001, 3002]) {
        const isInside = count >= min && (max === null || count <= max);
        assert.equal(matches('a'.repeat(count)), isInside, `${count} of {${min},${max}}`);
      }
    }
    assert.throws(() => createGrammarBuilder().repeat('[a]', 0, 200_000), /cannot count further than 100000/);
  });

  test('never asks libllama for more than it counts', () => {
    const grammar = createGrammarBuilder();
    const text = grammar.print(grammar.repeat('"ab"', 1234, 99_999));
    const counts = [...text.matchAll(/\{(\d+)(?:,(\d+))?\}/g)].flatMap((match) =>
      [match[1], match[2] ?? 0].map(Number),
    );
    assert.ok(Math.max(...counts) <= 1000);
    checkGrammar(text);
  });

  test('gives every rule a name of its own', () => {
    const grammar = createGrammarBuilder();
    const names = ['a', 'a', 'a-2', 'a_2', 'root', 'é', 'x y'].map((hint, index) =>
      grammar.rule(hint, `"${index}"`),
    );
    assert.equal(new Set(names).size, names.length);
    assert.ok(names.every((name) => /^[a-zA-Z0-9-]+$/.test(name) && name !== 'root'));
    assert.equal(grammar.rule('other', '"0"'), names[0], 'an equal body is one rule');
  });
});

test('grammars of clients are read as libllama reads them', () => {
  const chess = `# a comment
root ::= (
    # moves
    "1. " move " " move "\\n"
    ([1-9] [0-9]? ". " move " " move "\\n")+
)
move ::= (pawn | castle) [+#]?
pawn ::= [a-h] [1-8] |
  [a-h] "x" [a-h] [1-8]
castle ::= "O-O" "-O"?
`;
  const matches = createMatcher(chess);
  assert.ok(matches('1. e4 e5\n2. O-O exd4+\n'));
  assert.ok(!matches('1. e4 e5\n'));
  const others = createMatcher('root ::= . [^a-c\\x41\\u0042]{2,3} "\\U0001F600"{ 1 , } x{2}\nx ::= "-" | ');
  assert.ok(others('zxy😀😀--') && others('zxyz😀'));
  assert.ok(!others('zxa😀') && !others('zxA😀') && !others('zxB😀'));
  checkGrammar('root ::= <think> !<[7]>* </think>');
});

test('wrong grammars are refused with a reason', () => {
  const wrong: readonly (readonly [string, RegExp])[] = [
    ['', /rule 'root' is missing/],
    ['start ::= "a"', /rule 'root' is missing/],
    ['root ::= a', /rule 'a' is not defined/],
    ['root ::= "a', /in place of a character/],
    ['root ::= "\\q"', /in place of a character/],
    ['root ::= ("a"', /in place of '\)'/],
    ['root = "a"', /line 1 has '= "a"' in place of '::='/],
    ['root ::= "a"\n$', /line 2 has '\$' in place of a rule name/],
    ['root ::= root "a" | "b"', /rule 'root' begins with itself/],
    ['root ::= a? b\na ::= "x"\nb ::= root | "y"', /begins with itself/],
    ['root ::= ("a"? b)*\nb ::= "c" |', /repeats without end what may be empty/],
    ['root ::= "a"{3000}', /more than 2000 times/],
    [`root ::= ${'('.repeat(500)}"a"${')'.repeat(500)}`, /nested more than 200/],
    [`root ::= "${'a'.repeat(300_000)}"`, /longer than/],
  ];
  for (const [text, reason] of wrong) {
    assert.throws(
      () => checkGrammar(text),
      (thrown) => {
        assert.match(String(thrown), /the grammar is not valid: /);
        assert.match(String(thrown), reason);
        return true;
      },
    );
  }
});
