// The response cache in a real Redis: shared by servers, never in the way of a request. Redis is stopped, made to hang, filled and
// given nonsense while requests come in.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { after, afterEach, before, describe, test } from 'node:test';
import { createClient } from '@redis/client';
import { waitUntil } from '../support/load.ts';
import { MAIN } from '../support/paths.ts';
import { type RunningRedis, redisSkip, startRedis } from '../support/redis.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { freePorts, type RunningServer, startServer } from '../support/server.ts';

const CACHED = 'response_cache { enable: true }';

/** No request may wait longer than the bound for Redis (100 ms), with room for a busy machine. */
const ANSWER_MS_MAX = 1_500;

const servers: RunningServer[] = [];
const redises: RunningRedis[] = [];
let repository: TestRepository;
let spare = 0;

interface Counts {
  readonly hits: number;
  readonly misses: number;
  readonly executions: number;
}

async function start(
  settings: Record<string, string | number>,
  options: { models?: string; env?: Record<string, string> } = {},
) {
  const flags = Object.entries({ host: '127.0.0.1', ...settings });
  const server = await startServer({
    repository: options.models ?? repository.path,
    args: flags.map(([name, value]) => `--cache-config=redis,${name}=${value}`),
    env: options.env ?? {},
  });
  servers.push(server);
  return server;
}

async function startOwnRedis(args: readonly string[] = [], port?: number): Promise<RunningRedis> {
  const redis = await startRedis(port ?? (await freePorts(1))[0]!, args);
  redises.push(redis);
  return redis;
}

/** Answers how long it took. */
async function ask(server: RunningServer, value: number): Promise<number> {
  const startMs = performance.now();
  const url = `${server.httpUrl}/v2/models/cached/infer`;
  const answer = await fetch(url, { method: 'POST', body: identityBody(value) });
  const body = (await answer.json()) as { outputs: { data: number[] }[] };
  assert.equal(answer.status, 200, JSON.stringify(body));
  assert.deepEqual(body.outputs[0]!.data, [value]);
  return performance.now() - startMs;
}

async function countsOf(server: RunningServer): Promise<Counts> {
  const answer = await fetch(`${server.httpUrl}/v2/models/cached/stats`);
  const { model_stats } = (await answer.json()) as {
    model_stats: {
      execution_count: number;
      inference_stats: { cache_hit: { count: number }; cache_miss: { count: number } };
    }[];
  };
  const { execution_count: executions, inference_stats: inference } = model_stats[0]!;
  return { hits: inference.cache_hit.count, misses: inference.cache_miss.count, executions };
}

/** What is stored after the answer is there a moment later. */
async function untilHit(server: RunningServer, value: number, msMax = 5_000): Promise<void> {
  const { hits } = await countsOf(server);
  const isHit = await waitUntil(async () => {
    await ask(server, value);
    return (await countsOf(server)).hits > hits;
  }, msMax);
  assert.ok(isHit, `no hit after ${msMax} ms\n${server.logs()}`);
}

function outagesOf(server: RunningServer): number {
  return (
    server.logs().match(/is not available: .*Requests are executed without the response cache/g)?.length ?? 0
  );
}

describe('the response cache in Redis', { skip: redisSkip, concurrency: false }, () => {
  before(() => {
    repository = createRepository();
    addIdentity(repository, { name: 'cached', config: CACHED });
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    await Promise.all(redises.splice(0).map((redis) => redis.stop()));
  });
  after(() => repository?.remove());

  test('servers with the same model share answers, a changed model has its own', async () => {
    const { port } = await startOwnRedis();
    const first = await start({ port });
    await ask(first, ++spare);
    await untilHit(first, spare);
    const second = await start({ port });
    await ask(second, spare);
    assert.deepEqual(await countsOf(second), { hits: 1, misses: 0, executions: 0 });

    const changed = createRepository();
    try {
      addIdentity(changed, { name: 'cached', config: `${CACHED} metric_tags { key: "a" value: "b" }` });
      const third = await start({ port }, { models: changed.path });
      await ask(third, spare);
      assert.deepEqual(await countsOf(third), { hits: 0, misses: 1, executions: 1 });
    } finally {
      changed.remove();
    }
  });

  test('a wrong request is refused as without a cache, though its look-up comes first', async () => {
    const { port } = await startOwnRedis();
    const cached = await start({ port });
    const plain = await startServer({ repository: repository.path });
    servers.push(plain);
    const body = identityBody(1).replace('FP32', 'INT32');
    const answers = [cached, plain].map(async (server) => {
      const answer = await fetch(`${server.httpUrl}/v2/models/cached/infer`, { method: 'POST', body });
      return { status: answer.status, text: await answer.text() };
    });
    const [first, second] = await Promise.all(answers);
    assert.equal(second?.status, 400);
    assert.deepEqual(first, second);
  });

  test('what somebody else wrote under our names is not taken for an answer', async () => {
    const { port } = await startOwnRedis();
    const server = await start({ port });
    await ask(server, ++spare);
    await untilHit(server, spare);
    const client = await createClient({ socket: { host: '127.0.0.1', port } }).connect();
    const names = await client.keys('nereid:*');
    assert.equal(names.length, 1);
    const before = await countsOf(server);
    for (const nonsense of ['', 'nonsense', '\u0001nonsense that is long enough to be looked at']) {
      await client.set(names[0]!, nonsense);
      await ask(server, spare);
    }
    client.destroy();
    const { hits, executions } = await countsOf(server);
    assert.deepEqual({ hits, executions }, { hits: before.hits, executions: before.executions + 3 });
    assert.equal(outagesOf(server), 0);
  });

  test('a Redis that stops costs only the cache, and is used again when it is back', async () => {
    const redis = await startOwnRedis();
    const server = await start({ port: redis.port });
    await ask(server, ++spare);
    await untilHit(server, spare);
    await redis.stop();
    for (let i = 0; i < 20; i++) assert.ok((await ask(server, spare)) < ANSWER_MS_MAX);
    assert.equal(outagesOf(server), 1, server.logs());
    await startOwnRedis([], redis.port);
    await untilHit(server, spare, 10_000);
    assert.equal(outagesOf(server), 1, 'one warning per outage');
  });

  test('nobody waits for a Redis that hangs', async () => {
    const redis = await startOwnRedis();
    const server = await start({ port: redis.port });
    await ask(server, ++spare);
    await untilHit(server, spare);
    redis.signal('SIGSTOP');
    const together = Array.from({ length: 50 }, () => ask(server, spare));
    for (const ms of await Promise.all(together)) assert.ok(ms < ANSWER_MS_MAX, `${ms} ms`);
    // longer than the attempts to connect again take
    for (const end = Date.now() + 3_500; Date.now() < end; ) {
      assert.ok((await ask(server, spare)) < ANSWER_MS_MAX);
    }
    assert.equal(outagesOf(server), 1, server.logs());
    redis.signal('SIGCONT');
    await untilHit(server, spare, 10_000);
  });

  test('a server starts while Redis is down and finds it later', async () => {
    const [port] = (await freePorts(1)) as [number];
    const server = await start({ port });
    await ask(server, ++spare);
    assert.equal(outagesOf(server), 1);
    await startOwnRedis([], port);
    await untilHit(server, spare, 10_000);
  });

  test('a Redis that is full is named once, and what it has is still found', async () => {
    const { port } = await startOwnRedis();
    const server = await start({ port });
    await ask(server, ++spare);
    await untilHit(server, spare);
    const client = await createClient({ socket: { host: '127.0.0.1', port } }).connect();
    await client.configSet('maxmemory', '1');
    client.destroy();
    const known = spare;
    for (let i = 0; i < 5; i++) await ask(server, ++spare);
    await untilHit(server, known);
    assert.equal(server.logs().match(/did not store a response: OOM/g)?.length, 1, server.logs());
    assert.equal(outagesOf(server), 0);
  });

  test('user and password come from flags or from the environment', async () => {
    const acl = ['--user', 'nereid', 'on', '>secret', '~nereid:*', '+@all', '--user', 'default', 'off'];
    const { port } = await startOwnRedis(acl);
    const given = await start({ port, user: 'nereid', password: 'secret' });
    await ask(given, ++spare);
    await untilHit(given, spare);
    const env = { TRITONCACHE_REDIS_USERNAME: 'nereid', TRITONCACHE_REDIS_PASSWORD: 'secret' };
    const inherited = await start({ port }, { env });
    await ask(inherited, spare);
    assert.equal((await countsOf(inherited)).hits, 1);
    const wrong = await start({ port, user: 'nereid', password: 'guess-9431' });
    await ask(wrong, spare);
    assert.deepEqual(await countsOf(wrong), { hits: 0, misses: 1, executions: 1 });
    assert.match(wrong.logs(), /is not available: WRONGPASS/);
    assert.doesNotMatch(wrong.logs(), /guess-9431/);
  });

  test('entries have an end where ttl says so, and lie in the database that db says', async () => {
    const { port } = await startOwnRedis();
    const server = await start({ port, ttl: 600, db: 3 });
    await ask(server, ++spare);
    await untilHit(server, spare);
    const client = await createClient({ socket: { host: '127.0.0.1', port }, database: 3 }).connect();
    const [name] = await client.keys('nereid:cached:1:*');
    const ttl = await client.ttl(name!);
    client.destroy();
    assert.ok(ttl > 500 && ttl <= 600, String(ttl));
  });

  test('TLS, with a certificate of the client', async () => {
    const folder = createRepository();
    try {
      const what = ['-subj', '/CN=cache', '-addext', 'subjectAltName=IP:127.0.0.1'];
      const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
      const [cert, key] = [folder.at('pair.pem'), folder.at('pair.key')];
      execFileSync('openssl', ['req', '-x509', ...kind, ...what, '-keyout', key, '-out', cert], {
        stdio: 'pipe',
      });
      const [port] = (await freePorts(1)) as [number];
      const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
      await startOwnRedis(['--port', '0', '--tls-port', String(port), ...files], port);
      const server = await start({ port, tls_enabled: 'true', cacert: cert, cert, key });
      await ask(server, ++spare);
      await untilHit(server, spare);
      const stranger = await start({ port, tls_enabled: 'true' });
      await ask(stranger, spare);
      assert.equal((await countsOf(stranger)).hits, 0);
      assert.equal(outagesOf(stranger), 1, stranger.logs());
    } finally {
      folder.remove();
    }
  });
});

test('without the client package a server that wants Redis says how to get it', () => {
  const models = createRepository();
  const resolve = `export function resolve(name, context, next) {
    if (name === '@redis/client') throw new Error("Cannot find package '@redis/client'");
    return next(name, context);
  }`;
  const hook = `data:text/javascript,${encodeURIComponent(resolve)}`;
  const register = `import { register } from 'node:module'; register(${JSON.stringify(hook)});`;
  const flags = ['--cache-config=redis,host=127.0.0.1', '--cache-config=redis,port=1'];
  const program = ['--import', `data:text/javascript,${encodeURIComponent(register)}`, MAIN];
  try {
    const { status, stderr } = spawnSync(
      process.execPath,
      [...program, `--model-repository=${models.path}`, ...flags],
      { encoding: 'utf8', timeout: 30_000 },
    );
    assert.equal(status, 1);
    assert.match(
      stderr,
      /^error: creating server: Internal - Failed to initialize RedisCache: its client is not installed \(npm install @redis\/client\)/m,
    );
  } finally {
    models.remove();
  }
});
