// Files that come with a load call stay inside the directory made for them.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { writeOverride } from './file-override.ts';

const file = (path: string) => ({ path, content: Buffer.from(path) });

function overrideDirectories(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('nereid-model-'));
}

test('files are written below a directory of the name of the model, and removed', async () => {
  const paths = ['1/model.onnx', '1/sub/weights.bin', './labels.txt', 'a/../config.pbtxt', '..hidden'];
  const override = await writeOverride('m', paths.map(file));
  assert.equal(basename(override.path), 'm');
  for (const path of paths) assert.equal(readFileSync(join(override.path, path), 'utf8'), path);
  await override.remove();
  assert.equal(existsSync(dirname(override.path)), false);
});

const ESCAPES = [
  '../x',
  '..',
  '/etc/x',
  'a/../../x',
  '1/../../../x',
  'a\\..\\x',
  '..\\x',
  'a\0b',
  '',
  '.',
  'a/..',
  './',
  'dir/',
];

for (const path of ESCAPES) {
  test(`${JSON.stringify(path)} is refused before anything is written`, async () => {
    const before = overrideDirectories();
    await assert.rejects(writeOverride('m', [file('1/model.onnx'), file(path)]), {
      code: 'INVALID_ARG',
      message: `file override '${path}' must name a file inside the model directory`,
    });
    assert.deepEqual(
      overrideDirectories().filter((name) => !before.includes(name)),
      [],
    );
  });
}

test('a file that is also a directory leaves nothing behind', async () => {
  const before = overrideDirectories();
  await assert.rejects(writeOverride('m', [file('1'), file('1/model.onnx')]));
  assert.deepEqual(
    overrideDirectories().filter((name) => !before.includes(name)),
    [],
  );
});
