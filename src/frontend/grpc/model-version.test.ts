// Version texts, read as std::stol does.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LATEST_VERSION } from '../../core/repository/catalog.ts';
import { StatusError } from '../../domain/status.ts';
import { parseModelVersion } from './model-version.ts';

function refusalOf(text: string): string {
  try {
    return `accepted as ${parseModelVersion(text)}`;
  } catch (thrown) {
    assert.ok(thrown instanceof StatusError && thrown.code === 'INVALID_ARG');
    return thrown.message;
  }
}

test('no text is the latest version', () => {
  assert.equal(parseModelVersion(''), LATEST_VERSION);
});

test('digits are read up to the first other character, after white space and a sign', () => {
  const versions = new Map([
    ['1', 1],
    ['007', 7],
    ['+3', 3],
    [' \t\n\v\f\r12', 12],
    ['2.9', 2],
    ['4x', 4],
    ['5 6', 5],
    ['0x10', 0],
    ['0', 0],
    ['-0', 0],
  ]);
  for (const [text, version] of versions) assert.equal(parseModelVersion(text) + 0, version, text);
});

test('what does not begin with a number, or is no int64, is refused with the text of stol', () => {
  for (const text of ['x', ' ', '+', '-', '--1', '+-1', '.5', '\u00a01', '٣', '9223372036854775808']) {
    assert.equal(
      refusalOf(text),
      `failed to get model version from specified version string '${text}' (details: stol), version should be an integral value > 0`,
    );
  }
  assert.equal(parseModelVersion('9223372036854775807'), 2 ** 63);
});

test('a negative version is refused as such', () => {
  for (const text of ['-1', ' -2x', '-9223372036854775808']) {
    assert.equal(
      refusalOf(text),
      `invalid model version specified '${text}' , version should be an integral value > 0`,
    );
  }
});
