import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseVersion } from './version.ts';

test('digits are a number, leading zeros included', () => {
  assert.equal(parseVersion('0'), 0);
  assert.equal(parseVersion('12'), 12);
  assert.equal(parseVersion('007'), 7);
  assert.equal(parseVersion('9007199254740991'), Number.MAX_SAFE_INTEGER);
});

test('the largest int64 still is a version, one more is none', () => {
  assert.equal(parseVersion('9223372036854775807'), 2 ** 63);
  assert.throws(() => parseVersion('9223372036854775808'), {
    code: 'INVALID_ARG',
    message:
      "failed to get model version from specified version string '9223372036854775808' (details: stol), version should be an integral value > 0",
  });
});
