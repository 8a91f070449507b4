// The response cache as clients see it: real tritonclient programs (response_cache.py) against servers with a large and a small
// local cache, and what the log and the metrics say.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { inRoot, MAIN } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import {
  addExample,
  addIdentity,
  createRepository,
  identityBody,
  type TestRepository,
} from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const CACHED = 'response_cache { enable: true }';

function cachedRepository(): TestRepository {
  const repository = createRepository();
  addIdentity(repository, { name: 'cached', config: CACHED });
  addIdentity(repository, { name: 'plain' });
  const config = readFileSync(inRoot('examples', 'models', 'add_sub_int32', 'config.pbtxt'), 'utf8');
  addExample(repository, {
    name: 'cached_add_sub',
    example: 'add_sub_int32',
    config: `${config.replace(/^name:.*$/m, '')}\n${CACHED}\n`,
  });
  mkdirSync(repository.at('cached_ensemble', '1'), { recursive: true });
  writeFileSync(
    repository.at('cached_ensemble', 'config.pbtxt'),
    `platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ {
  model_name: "plain" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" }
} ] }
${CACHED}
`,
  );
  return repository;
}

describe('the local response cache', { skip: pythonSkip }, () => {
  const servers: RunningServer[] = [];
  let repository: TestRepository;
  let output = '';

  before(async () => {
    repository = cachedRepository();
    const start = async (...args: string[]) => {
      const server = await startServer({ repository: repository.path, isGrpc: true, args });
      servers.push(server);
      return server;
    };
    const main = await start('--cache-config=local,size=67108864');
    const small = await start('--response-cache-byte-size=10000');
    const explicit = await start('--cache-config=local,size=1000000', '--model-control-mode=explicit');
    const result = await runPython({
      script: 'e2e/response_cache.py',
      args: [main.httpAddress, main.grpcAddress, small.httpAddress, explicit.httpAddress],
    });
    output = result.output;
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    repository.remove();
  });

  testChecks('e2e/response_cache.py', () => output);

  test('the metrics page has the cache of the server and of each cached model', async () => {
    const page = await (await fetch(servers[1]!.metricsUrl)).text();
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1]);
    assert.ok(value('nv_cache_num_evictions') > 0, page);
    assert.equal(value('nv_cache_num_lookups'), value('nv_cache_num_hits') + value('nv_cache_num_misses'));
    assert.ok(value('nv_cache_num_entries') > 0);
    const util = value('nv_cache_util');
    assert.ok(util > 0 && util <= 1, String(util));
    for (const name of ['num_hits', 'num_misses', 'hit_duration', 'miss_duration']) {
      assert.match(
        page,
        new RegExp(`^nv_cache_${name}_per_model\\{model="cached",version="1"\\} \\d+$`, 'm'),
      );
      assert.doesNotMatch(page, new RegExp(`^nv_cache_${name}_per_model\\{model="plain"`, 'm'));
    }
  });

  test('an answer that is too large is named once in the log', () => {
    const lines = servers[1]!.logs().match(/Requested byte_size: \d+ is greater than total cache size/g);
    assert.equal(lines?.length, 1, servers[1]!.logs());
  });

  test('the old flag names the new one', () => {
    assert.match(servers[1]!.logs(), /'--response-cache-byte-size' has been deprecated!/);
  });
});

describe('flags of the response cache', () => {
  const refusals: readonly (readonly [string, readonly string[], RegExp])[] = [
    [
      'no size',
      ['--cache-config=local,sise=5'],
      /^error: creating server: Invalid argument - Failed to initialize LocalCache: config didn't contain a valid 'size' field\.$/m,
    ],
    [
      'no bytes',
      ['--cache-config=local,size=0'],
      /^error: creating server: Internal - Failed to initialize LocalCache: Could not initialize buffer in basic_managed_external_buffer constructor/m,
    ],
    [
      'two caches',
      ['--cache-config=local,size=1000000', '--cache-config=redis,host=a'],
      /^error: creating server: Invalid argument - found multiple cache configurations, but only a single cache is currently supported$/m,
    ],
    [
      'old and new',
      ['--cache-config=local,size=1000000', '--response-cache-byte-size=1000000'],
      /Error: Incompatible flags --response-cache-byte-size and --cache-config both provided\. Please provide one or the other\./,
    ],
  ];
  for (const [what, args, expected] of refusals) {
    test(`${what}: the server does not start`, () => {
      const repository = createRepository();
      try {
        const all = [MAIN, `--model-repository=${repository.path}`, ...args];
        const { status, stderr } = spawnSync(process.execPath, all, { encoding: 'utf8', timeout: 30_000 });
        assert.equal(status, 1);
        assert.match(stderr, expected);
      } finally {
        repository.remove();
      }
    });
  }

  test('a decoupled or sequence model with a cache does not load', async () => {
    const repository = createRepository();
    addIdentity(repository, {
      name: 'many',
      config: `${CACHED} model_transaction_policy { decoupled: true }`,
    });
    addIdentity(repository, { name: 'series', config: `${CACHED} sequence_batching { }` });
    const server = await startServer({
      repository: repository.path,
      args: ['--model-control-mode=explicit'],
    });
    try {
      const reasons = { many: "'decoupled' transaction policy", series: 'sequence batching scheduler' };
      for (const [model, reason] of Object.entries(reasons)) {
        const answer = await fetch(`${server.httpUrl}/v2/repository/models/${model}/load`, {
          method: 'POST',
        });
        assert.notEqual(answer.status, 200);
        await answer.arrayBuffer();
        const text = `Response Cache does not currently support model ${model} with ${reason}. Please disable the response cache.`;
        assert.ok(server.logs().includes(text), server.logs());
      }
    } finally {
      await server.stop();
      repository.remove();
    }
  });

  test('without a cache the models are served, and nothing of a cache is shown', async () => {
    const repository = createRepository();
    addIdentity(repository, { name: 'cached', config: CACHED });
    const server = await startServer({ repository: repository.path });
    try {
      for (let i = 0; i < 2; i++) {
        const url = `${server.httpUrl}/v2/models/cached/infer`;
        assert.equal((await fetch(url, { method: 'POST', body: identityBody(1) })).status, 200);
      }
      assert.doesNotMatch(await (await fetch(server.metricsUrl)).text(), /nv_cache/);
    } finally {
      await server.stop();
      repository.remove();
    }
  });
});
