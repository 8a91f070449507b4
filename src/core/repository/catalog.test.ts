// Which model a request meets, through loads, failures and unloads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServedModel } from '../model/served-model.ts';
import { Catalog, LATEST_VERSION, UNLOADED_REASON, type VersionRecord } from './catalog.ts';

/** The catalogue reads these two facts of a model and nothing else. */
function makeModel(version: number, isHealthy = true): ServedModel {
  return { version, isHealthy } as ServedModel;
}

function ready(version: number): VersionRecord {
  return { state: 'READY', reason: '', model: makeModel(version) };
}

const GONE: VersionRecord = { state: 'UNAVAILABLE', reason: UNLOADED_REASON, model: undefined };

function catalogOf(...records: [version: number, record: VersionRecord][]): Catalog {
  const catalog = new Catalog();
  for (const [version, record] of records) catalog.set('m', version, record);
  return catalog;
}

test('without a version the highest ready one answers', () => {
  const catalog = catalogOf([10, ready(10)], [9, ready(9)], [11, { ...GONE, reason: 'broken' }]);
  assert.equal(catalog.find('m', LATEST_VERSION).version, 10);
  catalog.set('m', 10, GONE);
  assert.equal(catalog.find('m', LATEST_VERSION).version, 9);
  catalog.remove('m', 9);
  assert.throws(() => catalog.find('m', LATEST_VERSION), {
    code: 'NOT_FOUND',
    message: "Request for unknown model: 'm' has no available versions",
  });
});

test('what is not there is told in the words of Triton', () => {
  const catalog = catalogOf([1, ready(1)], [2, { state: 'LOADING', reason: '', model: undefined }]);
  assert.throws(() => catalog.find('x', LATEST_VERSION), {
    code: 'NOT_FOUND',
    message: "Request for unknown model: 'x' is not found",
  });
  assert.throws(() => catalog.find('m', 3), {
    code: 'NOT_FOUND',
    message: "Request for unknown model: 'm' version 3 is not found",
  });
  assert.throws(() => catalog.find('m', 2), {
    code: 'UNAVAILABLE',
    message: "Request for unknown model: 'm' version 2 is not at ready state",
  });
});

test('a version that is unloading takes no request, though its model still is there', () => {
  const catalog = catalogOf([1, { state: 'UNLOADING', reason: '', model: makeModel(1) }]);
  assert.throws(() => catalog.find('m', 1), { code: 'UNAVAILABLE' });
  assert.throws(() => catalog.find('m', LATEST_VERSION), { code: 'NOT_FOUND' });
  assert.equal(catalog.models().length, 1);
});

test('a reload replaces the model in one step', () => {
  const catalog = catalogOf([1, ready(1)]);
  const next = makeModel(1);
  catalog.set('m', 1, { state: 'READY', reason: '', model: next });
  assert.equal(catalog.find('m', 1), next);
  assert.equal(catalog.find('m', LATEST_VERSION), next);
});

test('statistics have all ready versions, or the one asked for', () => {
  const catalog = catalogOf([2, ready(2)], [1, ready(1)], [3, GONE]);
  const versions = (version: number) => catalog.findForStatistics('m', version).map((model) => model.version);
  assert.deepEqual(versions(LATEST_VERSION), [1, 2]);
  assert.deepEqual(versions(2), [2]);
  assert.throws(() => versions(3), { message: "requested model version is not available for model 'm'" });
  assert.throws(() => catalog.findForStatistics('x', 1), { message: "requested model 'x' is not available" });
});

test('a strict server is ready when every version serves or was unloaded on purpose', () => {
  assert.equal(new Catalog().isAllReady(), true);
  assert.equal(catalogOf([1, ready(1)], [2, GONE]).isAllReady(), true);
  assert.equal(catalogOf([1, { ...GONE, reason: 'broken' }]).isAllReady(), false);
  assert.equal(catalogOf([1, { ...ready(1), state: 'LOADING' }]).isAllReady(), false);
  assert.equal(catalogOf([1, { ...ready(1), model: makeModel(1, false) }]).isAllReady(), false);
  const empty = new Catalog();
  empty.ensure('m');
  assert.equal(empty.isAllReady(), false);
});

test('names are sorted, and a name of an object member is a name like any other', () => {
  const catalog = new Catalog();
  for (const name of ['b', 'a', '__proto__', 'constructor']) catalog.ensure(name);
  assert.deepEqual(catalog.names(), ['__proto__', 'a', 'b', 'constructor']);
  assert.equal(catalog.has('toString'), false);
  assert.equal(catalog.records('toString').size, 0);
  assert.throws(() => catalog.find('__proto__', LATEST_VERSION), /has no available versions/);
});

test('a label stands for a version of a model that has labels', () => {
  const catalog = new Catalog();
  const model = { version: 3, isHealthy: true, config: { version_labels: { stable: 2, canary: 3 } } };
  catalog.set('m', 3, { state: 'READY', reason: '', model: model as unknown as ServedModel });
  assert.equal(catalog.findLabel('m', 'stable'), 2);
  assert.throws(() => catalog.findLabel('m', 'prod'), {
    code: 'NOT_FOUND',
    message: "model 'm' has no version label 'prod'; its labels are 'canary', 'stable'",
  });
  assert.throws(() => catalog.findLabel('m', 'toString'), { code: 'NOT_FOUND' });
  assert.equal(catalog.findLabel('x', 'stable'), undefined);
});

test('a look that may find nothing throws nothing', () => {
  const catalog = catalogOf([1, ready(1)], [2, GONE]);
  assert.equal(catalog.findReady('m', LATEST_VERSION)?.version, 1);
  assert.equal(catalog.findReady('m', 1)?.version, 1);
  assert.equal(catalog.findReady('m', 2), undefined);
  assert.equal(catalog.findReady('x', LATEST_VERSION), undefined);
});
