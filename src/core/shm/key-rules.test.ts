// Unit tests of the rules about names of shared-memory objects.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileNameOf, requireAllowedName, requireNotReserved } from './key-rules.ts';

const check = (key: string, allowedPrefixes?: readonly string[]): void =>
  requireAllowedName(fileNameOf(key, 'r'), { region: 'r', key, allowedPrefixes });

test('leading slashes are not part of the name', () => {
  assert.equal(fileNameOf('/a', 'r'), 'a');
  assert.equal(fileNameOf('///a b', 'r'), 'a b');
  assert.equal(fileNameOf('a', 'r'), 'a');
});

test('a key of slashes alone is invalid', () => {
  for (const key of ['', '/', '//']) {
    assert.throws(() => fileNameOf(key, 'r'), {
      code: 'INVALID_ARG',
      message: `cannot register shared memory region 'r' - invalid shm key '${key}'`,
    });
  }
});

test('a key cannot leave the folder', () => {
  for (const key of [
    '.',
    '..',
    '/..',
    '../etc/passwd',
    'a/b',
    '/a/../b',
    'a\0b',
    'x'.repeat(256),
    'é'.repeat(128),
  ]) {
    assert.throws(() => fileNameOf(key, 'r'), {
      code: 'INTERNAL',
      message: `Unable to open shared memory region: '${key}'`,
    });
  }
  assert.equal(fileNameOf('x'.repeat(255), 'r').length, 255);
});

test('without the flag clients choose names freely, but not those of other programs', () => {
  for (const key of ['/input_data', 'torch', 'a-sem.x', '/..a', 'output0']) check(key);
  for (const key of ['/psm_1f2e', 'sem.lock', '/torch_123_4', '///nccl-abc', '.org.chromium.x']) {
    assert.throws(() => check(key), { code: 'INVALID_ARG', message: /--shared-memory-allow=/ });
  }
});

test('the flag allows its prefixes and nothing else', () => {
  check('/psm_1f2e', ['psm_', 'mine']);
  check('mine', ['psm_', 'mine']);
  assert.throws(() => check('/input_data', ['psm_', 'mine']), {
    code: 'INVALID_ARG',
    message: /'\/input_data' begins with none of the prefixes that --shared-memory-allow lists/,
  });
});

test('our hosts and the Python backend keep theirs, whatever the flag says', () => {
  assert.throws(() => check('/nereid-host-7', ['nereid-host-']), /which the server keeps for itself/);
  const key = '/triton_python_backend_shm_region_1';
  assert.throws(() => requireNotReserved(fileNameOf(key, 'r'), { region: 'r', key }), {
    code: 'INVALID_ARG',
    message: `cannot register shared memory region 'r' with key '${key}' as the key contains the reserved prefix 'triton_python_backend_shm_region_'`,
  });
  requireNotReserved('triton', { region: 'r', key: 'triton' });
});
