// Which files are taken from what a repository has.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesText, chooseFiles, type RepositoryFile, splitNames } from './choose-files.ts';

function files(...paths: string[]): RepositoryFile[] {
  return paths.map((path) => ({ path, byteLength: 1, sha256: undefined }));
}

function chosen(paths: readonly string[], pattern?: string): string[] {
  return chooseFiles(files(...paths), pattern).files.map(({ path, target }) => `${path} ${target}`);
}

test('the only model is taken, whatever lies beside it', () => {
  assert.deepEqual(chosen(['README.md', 'a/x.gguf', 'mmproj-x.gguf', 'x.imatrix.gguf']), [
    'a/x.gguf model.gguf',
  ]);
  assert.deepEqual(chosen(['config.json', 'net.onnx']), ['net.onnx model.onnx']);
});

test('of several the usual one is taken, or none', () => {
  assert.deepEqual(chosen(['m.Q2_K.gguf', 'm.Q4_K_M.gguf', 'm.Q8_0.gguf']), ['m.Q4_K_M.gguf model.gguf']);
  assert.deepEqual(chosen(['m-q6_k.gguf', 'm-q8_0.gguf']), ['m-q8_0.gguf model.gguf']);
  assert.deepEqual(chosen(['onnx/model.onnx', 'onnx/model_fp16.onnx']), ['onnx/model.onnx model.onnx']);
  assert.throws(
    () => chosen(['m-Q2_K.gguf', 'm-Q3_K.gguf']),
    /several models; choose one with --file:\n {2}m-Q2_K/,
  );
  assert.throws(() => chosen(['a-Q8_0.gguf', 'b-Q8_0.gguf']), /several models/);
  const { others } = chooseFiles(files('m.Q2_K.gguf', 'm.Q4_K_M.gguf'), undefined);
  assert.deepEqual(others, ['m.Q2_K.gguf']);
});

test('a pattern is a path, a pattern with stars, or a part of the path', () => {
  const paths = ['a/m.gguf', 'b/m.gguf', 'b/m2.gguf', 'b/m+x.gguf'];
  assert.deepEqual(chosen(paths, 'a/m.gguf'), ['a/m.gguf model.gguf']);
  assert.deepEqual(chosen(paths, 'M2'), ['b/m2.gguf model.gguf']);
  assert.deepEqual(chosen(paths, 'm?.gguf'), ['b/m2.gguf model.gguf']);
  assert.deepEqual(chosen(paths, 'm+x'), ['b/m+x.gguf model.gguf']);
  assert.throws(() => chosen(paths, 'm.gguf'), /'m\.gguf' fits several files/);
  assert.throws(() => chosen(paths, 'zzz'), /no model file that fits 'zzz'\. It has:\n {2}a\/m\.gguf/);
  assert.throws(() => chosen([]), /no \.gguf and no \.onnx file\. It has:\n {2}nothing/);
});

test('all parts of a split model are taken, or it is refused', () => {
  const parts = splitNames('d/m-00002-of-00003.gguf');
  assert.deepEqual(parts, ['d/m-00001-of-00003.gguf', 'd/m-00002-of-00003.gguf', 'd/m-00003-of-00003.gguf']);
  assert.equal(splitNames('m.gguf'), undefined);
  assert.equal(chosen(parts!)[2], 'd/m-00003-of-00003.gguf model-00003-of-00003.gguf');
  assert.throws(() => chosen(parts!.slice(0, 2)), /lacks d\/m-00003-of-00003\.gguf, a part of the model/);
});

test('data files of an ONNX model keep their names; those of others stay', () => {
  const paths = [
    'onnx/a.onnx',
    'onnx/a.onnx_data',
    'onnx/a.onnx_data_1',
    'onnx/a.onnx.data',
    'onnx/b.onnx_data',
    'onnx/a.json',
  ];
  assert.deepEqual(chosen(paths), [
    'onnx/a.onnx model.onnx',
    'onnx/a.onnx_data a.onnx_data',
    'onnx/a.onnx_data_1 a.onnx_data_1',
    'onnx/a.onnx.data a.onnx.data',
  ]);
});

test('lengths in words', () => {
  assert.deepEqual([0, 999, 1000, 123_456_789, 4_370_000_000].map(bytesText), [
    '0 B',
    '999 B',
    '1.00 kB',
    '123.5 MB',
    '4.37 GB',
  ]);
});
