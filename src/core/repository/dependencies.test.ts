import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { checkNeeds, circularDependency, type NeedState, needsOf } from './dependencies.ts';

const config = parseModelConfig(
  'name: "e" ensemble_scheduling { step { model_name: "a" model_version: -1 } step { model_name: "b" model_version: 2 } step { model_name: "a" model_version: -1 } }',
);
const SERVING: NeedState = { versions: [1, 2], failure: undefined };

function check(states: Record<string, NeedState>): void {
  checkNeeds(config, (name) => states[name] ?? SERVING);
}

describe('what an ensemble needs', () => {
  test('each model once', () => {
    assert.deepEqual(needsOf(config), ['a', 'b']);
    assert.deepEqual(needsOf(parseModelConfig('name: "m"')), []);
  });

  test('all that it needs serves', () => check({}));

  test('models that are not there are named together, before anything else', () => {
    const missing: NeedState = { versions: [], failure: { kind: 'missing', reason: '' } };
    assert.throws(() => check({ a: missing, b: missing }), {
      code: 'INVALID_ARG',
      message: 'ensemble e contains models that are not available or ambiguous: a, b',
    });
    // What was removed from the repository and still serves is there.
    check({ a: { ...missing, versions: [1] } });
  });

  test('models that do not load', () => {
    const failed: NeedState = { versions: [], failure: { kind: 'failed', reason: 'version 1 is bad;' } };
    assert.throws(() => check({ b: failed }), {
      message:
        "ensemble 'e' depends on 'b' which has no loaded version. Model 'b' loading failed with error: version 1 is bad;",
    });
    const invalid: NeedState = { versions: [], failure: { kind: 'invalid', reason: 'no' } };
    assert.throws(() => check({ b: invalid }), {
      message: "ensemble 'e' depends on 'b' which is not valid. Model 'b' failed with error: no",
    });
    assert.throws(() => check({ b: { versions: [], failure: undefined } }), {
      message: "ensemble 'e' depends on 'b' which has no loaded version",
    });
  });

  test('the version that a step names', () => {
    assert.throws(() => check({ b: { versions: [1, 3], failure: undefined } }), {
      message: "ensemble 'e' depends on 'b' whose required version 2 is not loaded.",
    });
  });
});

describe('circles', () => {
  const circleOf = (name: string, needs: Record<string, string[]>) =>
    circularDependency(name, new Map(Object.entries(needs)))?.message;

  test('through others, and through itself alone', () => {
    const needs = { a: ['x', 'b'], b: ['c'], c: ['a'], x: [] };
    assert.equal(circleOf('a', needs), 'circular dependency between ensembles: a -> ... -> b -> a');
    assert.equal(circleOf('c', needs), 'circular dependency between ensembles: c -> ... -> a -> c');
    assert.equal(circleOf('s', { s: ['s'] }), 'circular dependency between ensembles: s -> ... -> s -> s');
  });

  test('a model that only needs one is not in it; two ways to one model are no circle', () => {
    assert.equal(circleOf('e', { e: ['a'], a: ['b'], b: ['a'] }), undefined);
    assert.equal(circleOf('e', { e: ['a', 'b'], a: ['c'], b: ['c'] }), undefined);
  });
});
