import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServedModel } from '../../core/model/served-model.ts';
import { Catalog, LATEST_VERSION } from '../../core/repository/catalog.ts';
import { parseVersion, versionOf } from './version.ts';

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

test('a label is looked up, and only where the model has labels', () => {
  const catalog = new Catalog();
  const model = { version: 3, isHealthy: true, config: { version_labels: { stable: 2 } } };
  catalog.set('m', 3, { state: 'READY', reason: '', model: model as unknown as ServedModel });
  assert.equal(versionOf(catalog, { model: 'm', version: '' }), LATEST_VERSION);
  assert.equal(versionOf(catalog, { model: 'm', version: '3' }), 3);
  assert.equal(versionOf(catalog, { model: 'm', version: 'stable' }), 2);
  assert.throws(() => versionOf(catalog, { model: 'm', version: 'prod' }), { code: 'NOT_FOUND' });
});
