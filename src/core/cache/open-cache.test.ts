import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { createLogger } from '../../lib/logger.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import { scopeOf } from './cache-scope.ts';
import { openCache, parseLocalSize } from './open-cache.ts';
import { parseRedisSettings, redisWarnings } from './redis-settings.ts';

const clock = new SimulatedClock();
const logger = createLogger({ settings: { isInfo: false } });

function open(configs: readonly (readonly [string, Record<string, string>])[]) {
  return openCache({
    configs: new Map(configs),
    directory: '/caches',
    environment: {},
    clock,
    logger,
    registry: new MetricsRegistry(clock),
  });
}

async function refusal(...configs: (readonly [string, Record<string, string>])[]): Promise<string> {
  const thrown: unknown = await open(configs).catch((error: unknown) => error);
  assert.ok(thrown instanceof StatusError, String(thrown));
  return thrown.describe();
}

describe('--cache-config', () => {
  test('without it there is no cache', async () => {
    assert.equal(await open([]), undefined);
  });

  test('local takes a size', async () => {
    const cache = await open([['local', { size: '1048576' }]]);
    assert.equal(cache?.isShared, false);
    assert.ok(cache.entryBytesMax < 1_048_576);
    assert.equal(parseLocalSize('4096'), 4096);
  });

  test("is refused in Triton's words", async () => {
    const local = 'Failed to initialize LocalCache: ';
    assert.equal(
      await refusal(['local', { other: '1' }]),
      `Invalid argument: ${local}config didn't contain a valid 'size' field.`,
    );
    const noBuffer = 'Could not initialize buffer in basic_managed_external_buffer constructor';
    const starts = [
      ['0', `Internal: ${local}${noBuffer}`],
      ['100', `Internal: ${local}${noBuffer}`],
      ['abc', `Internal: ${local}stoull`],
      ['-5', `Internal: ${local}failed to allocate buffer`],
    ] as const;
    for (const [size, start] of starts) {
      const text = await refusal(['local', { size }]);
      assert.ok(text.startsWith(start), text);
    }
    assert.equal(
      await refusal(['local', { size: '10000' }], ['redis', { host: 'a' }]),
      'Invalid argument: found multiple cache configurations, but only a single cache is currently supported',
    );
    assert.match(
      await refusal(['foo', { size: '1' }]),
      /^Invalid argument: unable to find 'libtritoncache_foo\.so' for cache\. Searched: \/caches/,
    );
    assert.match(
      await refusal(['redis', { host: 'a' }]),
      /^Invalid argument: Failed to initialize RedisCache, didn't specify address\. Must at a minimum specify 'host' and 'port' in the configuration - e\.g\. tritonserver --cache-config redis,host=redis --cache-config redis,port=6379 --model-repository=\/models \.\.\.$/,
    );
  });
});

describe('settings of the Redis cache', () => {
  const address = { host: 'h', port: '6379' };

  test('have defaults', () => {
    const settings = parseRedisSettings(address, {});
    assert.deepEqual(settings, {
      host: 'h',
      port: 6379,
      user: undefined,
      password: undefined,
      db: 0,
      connectTimeoutMs: 2_000,
      replyTimeoutMs: 100,
      ttlSecs: 0,
      tls: undefined,
    });
  });

  test('user and password come from the flags, else from the environment', () => {
    const environment = { TRITONCACHE_REDIS_USERNAME: 'eu', TRITONCACHE_REDIS_PASSWORD: 'ep' };
    const { user, password } = parseRedisSettings(address, environment);
    assert.deepEqual([user, password], ['eu', 'ep']);
    const given = parseRedisSettings({ ...address, user: 'u', password: 'p' }, environment);
    assert.deepEqual([given.user, given.password], ['u', 'p']);
  });

  test('a timeout of 0 is no endless wait', () => {
    assert.equal(parseRedisSettings({ ...address, socket_timeout: '0' }, {}).replyTimeoutMs, 100);
    assert.equal(parseRedisSettings({ ...address, socket_timeout: '40' }, {}).replyTimeoutMs, 40);
  });

  test('nonsense is refused, and what does nothing is named', () => {
    const wrong = { port: '0', db: '-1', socket_timeout: 'soon', ttl: '1.5', host: 'h,port=1' };
    for (const [name, value] of Object.entries(wrong)) {
      assert.throws(
        () => parseRedisSettings({ ...address, [name]: value }, {}),
        /Failed to initialize RedisCache/,
      );
    }
    assert.throws(
      () => parseRedisSettings({ ...address, tls_enabled: 'true', cacert: '/no/such/file' }, {}),
      /Failed to initialize RedisCache: ENOENT/,
    );
    assert.equal(redisWarnings({ ...address, pool_size: '4', passwd: 'x' }).length, 2);
    assert.deepEqual(redisWarnings({ ...address, password: 'x' }), []);
  });
});

describe('the scope of answers', () => {
  const config = parseModelConfig('name: "m" backend: "onnxruntime"');

  function withModel(use: (folder: string) => Promise<void>): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'nereid-scope-'));
    mkdirSync(join(folder, '1'));
    mkdirSync(join(folder, '2'));
    writeFileSync(join(folder, '1', 'model.onnx'), 'one');
    writeFileSync(join(folder, '2', 'model.onnx'), 'two');
    return use(folder).finally(() => rmSync(folder, { recursive: true }));
  }

  test('is new with every load where nobody else sees them', () =>
    withModel(async (modelDirectory) => {
      const source = { config, version: 1, modelDirectory };
      assert.notEqual(await scopeOf(source, false), await scopeOf(source, false));
    }));

  test('follows from config and files where they are shared', () =>
    withModel(async (modelDirectory) => {
      const source = { config, version: 1, modelDirectory };
      const scope = await scopeOf(source, true);
      writeFileSync(join(modelDirectory, '2', 'model.onnx'), 'changed');
      mkdirSync(join(modelDirectory, '1', '__pycache__'));
      writeFileSync(join(modelDirectory, '1', '__pycache__', 'x.pyc'), '');
      assert.equal(await scopeOf(source, true), scope);
      const other = parseModelConfig('name: "m" backend: "onnxruntime" max_batch_size: 4');
      assert.notEqual(await scopeOf({ ...source, config: other }, true), scope);
      writeFileSync(join(modelDirectory, '1', 'model.onnx'), 'changed');
      assert.notEqual(await scopeOf(source, true), scope);
    }));

  test('is not shared for ensembles, nor where files cannot be read', () =>
    withModel(async (modelDirectory) => {
      const ensemble = parseModelConfig('name: "e" platform: "ensemble"');
      const source = { config: ensemble, version: 1, modelDirectory };
      assert.notEqual(await scopeOf(source, true), await scopeOf(source, true));
      symlinkSync('..', join(modelDirectory, '1', 'loop'));
      const looped = { ...source, config };
      assert.notEqual(await scopeOf(looped, true), await scopeOf(looped, true));
    }));
});
