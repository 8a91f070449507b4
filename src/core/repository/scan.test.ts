// What is found in repositories on a real disk, odd names included, and which versions a policy selects.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { fingerprintOf, listVersion, scanRepositories, scanVersions, selectVersions } from './scan.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nereid-scan-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, text = ''): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

test('every directory of a repository is a model; files and hidden directories are not', async () => {
  write('a/b/1/model.onnx');
  write('a/with space/1/model.onnx');
  write('a/größe/1/model.onnx');
  write('a/.hidden/1/model.onnx');
  write('a/readme.txt');
  symlinkSync(join(root, 'a', 'b'), join(root, 'a', 'linked'));
  symlinkSync(join(root, 'nowhere'), join(root, 'a', 'dangling'));
  const found = await scanRepositories([join(root, 'a')]);
  assert.deepEqual([...found.keys()], ['b', 'größe', 'linked', 'with space']);
  assert.deepEqual(found.get('b'), [{ name: 'b', path: join(root, 'a', 'b') }]);
});

test('a name in two repositories has two directories', async () => {
  write('a/m/1/x');
  write('b/m/1/x');
  const found = await scanRepositories([join(root, 'a'), join(root, 'b')]);
  assert.deepEqual(
    found.get('m')?.map(({ path }) => path),
    [join(root, 'a', 'm'), join(root, 'b', 'm')],
  );
});

test('a repository that is not there is empty', async () => {
  assert.equal((await scanRepositories([join(root, 'nowhere')])).size, 0);
});

test('versions are directories named by a number without leading zeros, ascending by value', async () => {
  for (const name of ['10', '9', '0', '02', 'three', '-1', '1.5', '99999999999999999999', 'warmup', '.git']) {
    mkdirSync(join(root, name));
  }
  write('7', 'a file');
  symlinkSync(join(root, '9'), join(root, '11'));
  assert.deepEqual(await scanVersions(root), {
    versions: [0, 9, 10, 11],
    ignored: ['-1', '02', '1.5', '99999999999999999999', 'three'],
  });
});

test('the content of a version tells files from directories', async () => {
  write('1/model.onnx');
  write('1/model.savedmodel/graph.pb');
  assert.deepEqual(await listVersion(join(root, '1')), [
    { name: 'model.onnx', isDirectory: false },
    { name: 'model.savedmodel', isDirectory: true },
  ]);
});

test('version policies', () => {
  const available = [1, 2, 5, 9];
  assert.deepEqual(selectVersions(available, undefined), { selected: [9], missing: [] });
  assert.deepEqual(selectVersions(available, { latest: { num_versions: 2 } }).selected, [5, 9]);
  assert.deepEqual(selectVersions(available, { latest: { num_versions: 0 } }).selected, [9]);
  assert.deepEqual(selectVersions(available, { latest: { num_versions: 20 } }).selected, available);
  assert.deepEqual(selectVersions(available, { all: {} }).selected, available);
  assert.deepEqual(selectVersions(available, { specific: { versions: [5, 3, 1, 5] } }), {
    selected: [1, 5],
    missing: [3],
  });
  assert.deepEqual(selectVersions([], undefined), { selected: [], missing: [] });
});

test('the fingerprint changes with every write, addition and removal below the model', async () => {
  write('m/1/model.onnx', 'one');
  const path = join(root, 'm');
  const seen = new Set([await fingerprintOf(path)]);
  assert.ok(seen.has(await fingerprintOf(path)), 'nothing changed');
  write('m/1/model.onnx', 'three');
  seen.add(await fingerprintOf(path));
  utimesSync(join(path, '1', 'model.onnx'), new Date(), new Date(Date.now() + 5_000));
  seen.add(await fingerprintOf(path));
  write('m/labels.txt');
  seen.add(await fingerprintOf(path));
  rmSync(join(path, 'labels.txt'));
  rmSync(join(path, '1'), { recursive: true });
  seen.add(await fingerprintOf(path));
  assert.equal(seen.size, 5);
});
