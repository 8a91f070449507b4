// Every path of the protocol, and the ones beside it that are none.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findRoute, isLabelRoute, type Route } from './router.ts';

const model = (action: string, name = 'm', version = ''): Route =>
  ({ kind: 'model', action, model: name, version }) as Route;

const ROUTES: readonly [target: string, route: Route][] = [
  ['/v2', { kind: 'server-metadata' }],
  ['/v2/health/live', { kind: 'health', what: 'live' }],
  ['/v2/health/ready', { kind: 'health', what: 'ready' }],
  ['/v2/models/stats', { kind: 'all-stats' }],
  ['/v2/logging', { kind: 'logging' }],
  ['/v2/trace/setting', { kind: 'trace', model: '' }],
  ['/v2/models/m', model('metadata')],
  ['/v2/models/m/infer', model('infer')],
  ['/v2/models/m/ready', model('ready')],
  ['/v2/models/m/config', model('config')],
  ['/v2/models/m/stats', model('stats')],
  ['/v2/models/m/versions/3', model('metadata', 'm', '3')],
  ['/v2/models/m/versions/03/infer', model('infer', 'm', '03')],
  ['/v2/models/m/versions/stable', model('metadata', 'm', 'stable')],
  ['/v2/models/m/versions/v1.2-b/infer', model('infer', 'm', 'v1.2-b')],
  ['/v2/models/stats/infer', model('infer', 'stats')],
  ['/v2/models/versions/versions/1', model('metadata', 'versions', '1')],
  ['/v2/models/a%2Fb/infer', model('infer', 'a%2Fb')],
  ['/v2/models/m/infer?x=1/2', model('infer')],
  ['/v2/models/m#f', model('metadata')],
  ['http://host:8000/v2/models/m', model('metadata')],
  [`/v2/models/${Buffer.from('größe').toString('latin1')}`, model('metadata', 'größe')],
  ['/v2/models/m/generate', model('generate')],
  ['/v2/models/m/generate_stream', model('generate_stream')],
  ['/v2/models/m/trace/setting', { kind: 'trace', model: 'm' }],
  ['/v2/repository/index', { kind: 'index' }],
  ['/v2/repository/r/index', { kind: 'index' }],
  ['/v2/repository/models/m/load', { kind: 'control', action: 'load', model: 'm', repository: '' }],
  ['/v2/repository/r/models/m/unload', { kind: 'control', action: 'unload', model: 'm', repository: 'r' }],
  [
    '/v2/systemsharedmemory/status',
    { kind: 'shared-memory', memory: 'system', action: 'status', region: '' },
  ],
  [
    '/v2/cudasharedmemory/region/r/register',
    { kind: 'shared-memory', memory: 'cuda', action: 'register', region: 'r' },
  ],
];

for (const [target, route] of ROUTES) {
  test(`${target} is known, also the second time`, () => {
    assert.deepEqual(findRoute(target), route);
    assert.deepEqual(findRoute(target), route);
  });
}

const NOWHERE = [
  '/',
  '',
  '*',
  '/v1',
  '/v2/',
  '/v2/health',
  '/v2/health/live/',
  '/V2/health/live',
  '/v2/models',
  '/v2/models/',
  '/v2/models/m/',
  '/v2/models/m/versions',
  '/v2/models/m/versions/',
  '/v2/models/m/versions/+1',
  '/v2/models/m/versions/1a',
  '/v2/models/m/versions/a%20b',
  '/v2/models/m/versions/-1/infer',
  '/v2/models/m/infer/more',
  '/v2/models/a/b/infer',
  '/v2/models/m/versions/1/trace/setting',
  '/v2/repository/models/m/delete',
  'http://host:8000',
];

for (const target of NOWHERE) {
  test(`${JSON.stringify(target)} is nowhere`, () => assert.equal(findRoute(target), undefined));
}

test('remembering routes is bounded and forgets nothing that matters', () => {
  for (let i = 0; i < 5_000; i++) assert.deepEqual(findRoute(`/v2/models/m${i}`), model('metadata', `m${i}`));
  const long = 'x'.repeat(1_000);
  assert.deepEqual(findRoute(`/v2/models/${long}`), model('metadata', long));
});

test('a label is told from a number', () => {
  const isLabel = (target: string) => isLabelRoute(findRoute(target)!);
  assert.equal(isLabel('/v2/models/m/versions/stable/infer'), true);
  assert.equal(isLabel('/v2/models/m/versions/3/infer'), false);
  assert.equal(isLabel('/v2/models/m/infer'), false);
  assert.equal(isLabel('/v2'), false);
});
