// Where libllama is looked for, and what is said when it is not there.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { findLibrary } from './find-library.ts';

const root = mkdtempSync(join(tmpdir(), 'nereid-find-library-'));
after(() => rmSync(root, { recursive: true, force: true }));

function directoryWith(...names: string[]): string {
  const directory = mkdtempSync(join(root, 'd'));
  for (const name of names) writeFileSync(join(directory, name), '');
  return directory;
}

describe('finding libllama', () => {
  test('the shortest of the names that fit, whatever the platform calls them', () => {
    const linux = directoryWith(
      'libllama.so',
      'libllama.so.0.5.0',
      'libggml.so',
      'libggml-base.so',
      'libggml-cpu-haswell.so',
    );
    assert.deepEqual(findLibrary(linux), {
      directory: linux,
      llama: join(linux, 'libllama.so'),
      ggml: join(linux, 'libggml.so'),
      ggmlBase: join(linux, 'libggml-base.so'),
    });
    const windows = directoryWith('llama.dll', 'ggml.dll', 'ggml-base.dll');
    assert.equal(findLibrary(windows).llama, join(windows, 'llama.dll'));
    const mac = directoryWith('libllama.0.5.0.dylib', 'libggml.dylib', 'libggml-base.dylib');
    assert.equal(findLibrary(mac).llama, join(mac, 'libllama.0.5.0.dylib'));
  });

  test('a directory without all three, or none at all, is refused', () => {
    const half = directoryWith('libllama.so', 'libggml-cpu.so');
    const expected = {
      code: 'UNAVAILABLE',
      message: /^no libllama in .*: it must hold libllama, libggml and libggml-base/,
    };
    assert.throws(() => findLibrary(half), expected);
    assert.throws(() => findLibrary(join(root, 'nowhere')), expected);
  });
});
