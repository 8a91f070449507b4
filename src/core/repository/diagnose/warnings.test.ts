// Warnings, and the lines in which models, problems and warnings are told.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import type { ModelReport } from '../check-model.ts';
import type { ModelFacts } from './explanation.ts';
import { COLOURS, modelText, NO_COLOURS, totalText } from './report-text.ts';
import { directoryWarnings, servedWarnings } from './warnings.ts';

const FACTS: ModelFacts = {
  name: 'm',
  path: 'models/m',
  config: undefined,
  versions: [1, 2],
  ignored: ['02', '07', 'three'],
  modelEntries: [],
  version: 1,
  versionEntries: [],
  isLfsPointer: false,
  file: undefined,
  backends: ['onnxruntime'],
  gpuIds: [],
};

function warningsOf(text: string, labels: readonly string[] = []): string[] {
  const config = parseModelConfig(text);
  return servedWarnings(config, new Map([['Y', labels]]), FACTS).map((warning) => warning.what);
}

describe('warnings', () => {
  test('ignored directories get a name that is free', () => {
    const fixes = directoryWarnings(FACTS, []).map((warning) => warning.fix.at(-1));
    assert.deepEqual(fixes, [
      '  mv models/m/02 models/m/3',
      '  mv models/m/07 models/m/7',
      '  mv models/m/three models/m/3',
    ]);
    assert.deepEqual(directoryWarnings({ ...FACTS, versions: [] }, []), []);
  });

  test('versions that the policy names and that are not there', () => {
    const [warning] = directoryWarnings({ ...FACTS, ignored: [] }, [9]);
    assert.match(warning?.what ?? '', /asks for version 9/);
  });

  test('batching that cannot happen, and batching that could', () => {
    assert.match(warningsOf('max_batch_size: 1 dynamic_batching { }')[0] ?? '', /has no effect/);
    assert.deepEqual(warningsOf('max_batch_size: 2 dynamic_batching { }'), []);
    const io = 'input { name: "X" dims: [ -1, 4 ] } output { name: "Z" dims: [ -1, 4 ] }';
    assert.match(warningsOf(io)[0] ?? '', /could batch/);
    assert.deepEqual(warningsOf(`max_batch_size: 4 ${io}`), []);
    assert.deepEqual(warningsOf('input { name: "X" dims: [ 4 ] } output { name: "Z" dims: [ -1, 4 ] }'), []);
  });

  test('fewer labels than classes', () => {
    const output = 'output { name: "Y" dims: [ 3 ] label_filename: "l.txt" }';
    assert.deepEqual(warningsOf(output, ['a']), ['l.txt has 1 label for 3 classes']);
    assert.deepEqual(warningsOf(output, ['a', 'b', 'c']), []);
    assert.deepEqual(warningsOf('output { name: "Y" dims: [ -1 ] }', ['a']), []);
  });
});

describe('the report', () => {
  const served = {
    config: parseModelConfig('backend: "onnxruntime" max_batch_size: 32'),
    labels: new Map(),
    instanceCount: 2,
  };
  const good: ModelReport = {
    name: 'digits',
    problems: [],
    warnings: [],
    served,
    servedVersions: [1],
    versionCount: 1,
  };
  const explanation = { what: 'it is wrong', why: 'because', fix: ['do this:', '  that'] };
  const bad: ModelReport = {
    ...good,
    name: 'b',
    served: undefined,
    problems: [{ error: 'Internal: no\n  x\n  ^', explanation }],
  };
  const layout = { nameWidth: 8, paint: NO_COLOURS };

  test('a good model is one line', () => {
    assert.equal(
      modelText(good, layout),
      'ok   digits    1 version, onnxruntime, batches up to 32, 2 instances\n',
    );
    const some = { ...good, servedVersions: [2, 3], versionCount: 3 };
    assert.match(modelText(some, layout), /version 2, 3 of 3, /);
  });

  test('a bad one is a line and a block', () => {
    assert.equal(
      modelText(bad, layout),
      [
        'bad  b         it is wrong',
        '     error: Internal: no',
        '              x',
        '              ^',
        '     why:   because',
        '     fix:   do this:',
        '              that',
        '',
      ].join('\n'),
    );
  });

  test('warnings stand below, colours only where asked for', () => {
    const warned = modelText({ ...good, warnings: [explanation] }, layout);
    assert.match(warned, /^ok {3}digits[^\n]*\n {5}warning: it is wrong\n {5}why: {3}because\n/);
    assert.ok(!warned.includes('\u001b'));
    assert.ok(modelText(good, { ...layout, paint: COLOURS }).startsWith('\u001b[32mok'));
  });

  test('the last line counts', () => {
    assert.equal(totalText([good, bad]), '2 models: 1 ok, 1 with problems\n');
    const warned = { ...good, warnings: [explanation] };
    assert.equal(totalText([warned]), '1 model: 1 ok, 0 with problems, 1 warning\n');
  });
});
