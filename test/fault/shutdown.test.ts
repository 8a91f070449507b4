// How the server ends: orderly with work in flight, at once when told twice, never leaving a host behind; and how
// it refuses to start.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, inferNow, waitUntil } from '../support/load.ts';
import { inRoot } from '../support/paths.ts';
import { childrenOf, isAlive, procSkip } from '../support/processes.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { freePorts, type RunningServer, startServer } from '../support/server.ts';

const HOSTS_GONE_MS_MAX = 2000;

describe('the end of the server', { skip: procSkip }, () => {
  let repository: TestRepository;

  before(() => {
    repository = createRepository();
    addIdentity(repository, { name: 'slow', delayMs: 1000 });
    addIdentity(repository, { name: 'endless', delayMs: 60_000 });
  });
  after(() => repository.remove());

  const start = (args: readonly string[] = []) => startServer({ repository: repository.path, args });

  function infer(server: RunningServer, model: string) {
    return call(server, { path: `/v2/models/${model}/infer`, body: identityBody(1) });
  }

  async function checkNoHosts(hosts: readonly number[]): Promise<void> {
    assert.ok(hosts.length > 0);
    const areGone = await waitUntil(() => !hosts.some(isAlive), HOSTS_GONE_MS_MAX);
    assert.ok(areGone, `hosts left: ${hosts.filter(isAlive)}`);
  }

  test('SIGTERM: not ready at once, what is in flight is answered, code 0', async () => {
    const server = await start();
    const hosts = childrenOf(server.pid);
    const open = [infer(server, 'slow'), infer(server, 'slow')];
    await sleep(200);
    process.kill(server.pid, 'SIGTERM');
    await server.waitForLog(/Waiting for in-flight requests/);
    const ready = await call(server, { path: '/v2/health/ready' });
    assert.equal(ready.status, 503);
    assert.match(ready.text, /Server exiting/);
    assert.equal((await infer(server, 'slow')).status, 503);
    for (const answer of await Promise.all(open)) assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(await server.exited, { code: 0, signal: null });
    await checkNoHosts(hosts);
  });

  test('SIGTERM: clients that send or read nothing do not hold the server', async () => {
    const server = await start();
    const port = Number(server.httpAddress.split(':')[1]);
    const sockets = ['', 'POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{'].map(
      (text) => {
        const socket = connect(port, '127.0.0.1').on('error', () => {});
        socket.write(text);
        return socket;
      },
    );
    await sleep(100);
    const startMs = performance.now();
    const exit = await server.stop();
    for (const socket of sockets) socket.destroy();
    assert.deepEqual(exit, { code: 0, signal: null });
    assert.ok(performance.now() - startMs < 10_000, 'the server waited for silent clients');
  });

  test('a second SIGTERM ends it now, with code 1', async () => {
    const server = await start();
    const hosts = childrenOf(server.pid);
    const open = infer(server, 'endless');
    await sleep(200);
    process.kill(server.pid, 'SIGTERM');
    await server.waitForLog(/Waiting for in-flight requests/);
    process.kill(server.pid, 'SIGTERM');
    assert.deepEqual(await server.exited, { code: 1, signal: null });
    assert.notEqual((await open).status, 200);
    await checkNoHosts(hosts);
  });

  test('the exit timeout ends it with code 1 and answers what is open', async () => {
    const server = await start(['--exit-timeout-secs=1']);
    const hosts = childrenOf(server.pid);
    const open = infer(server, 'endless');
    await sleep(200);
    process.kill(server.pid, 'SIGTERM');
    assert.deepEqual(await server.exited, { code: 1, signal: null });
    assert.match(server.logs(), /Exit timeout expired/);
    const answer = await open;
    assert.ok(answer.status === 503 || answer.status === 0, `${answer.status}: ${answer.text}`);
    await checkNoHosts(hosts);
  });

  test('SIGKILL of the server leaves no host, even while one computes', async () => {
    const server = await start();
    const hosts = childrenOf(server.pid);
    const open = infer(server, 'endless');
    await sleep(200);
    await server.stop('SIGKILL');
    await open;
    await checkNoHosts(hosts);
  });
});

/** A start that is expected to fail. */
async function runToEnd(args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [inRoot('bin', 'nereid.js'), '--allow-grpc=false', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 20_000,
    killSignal: 'SIGKILL',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
  });
  return { code, output };
}

describe('a start that cannot succeed', { skip: procSkip }, () => {
  let repository: TestRepository;

  before(() => {
    repository = createRepository();
    addIdentity(repository, { name: 'good' });
  });
  after(() => repository.remove());

  test('a port in use is named', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => {
      holder.listen(0, '127.0.0.1', resolve);
    });
    const address = holder.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const { code, output } = await runToEnd([
      `--model-repository=${repository.path}`,
      '--http-address=127.0.0.1',
      `--http-port=${port}`,
      '--allow-metrics=false',
    ]);
    holder.close();
    assert.equal(code, 1, output);
    assert.match(output, new RegExp(`error: creating server: .*'127.0.0.1:${port}' already in use`));
  });

  test('a model that cannot be loaded ends the server, or only itself with --exit-on-error=false', async () => {
    addIdentity(repository, {
      name: 'bad',
      config: 'instance_group [ { count: 1 kind: KIND_GPU gpus: [ 77 ] } ]',
    });
    const [httpPort, metricsPort] = await freePorts(2);
    const { code, output } = await runToEnd([
      `--model-repository=${repository.path}`,
      `--http-port=${httpPort}`,
      `--metrics-port=${metricsPort}`,
    ]);
    assert.equal(code, 1, output);
    assert.match(output, /^error: creating server: Internal - failed to load all models$/m);

    const server = await startServer({ repository: repository.path, args: ['--exit-on-error=false'] });
    try {
      assert.equal((await inferNow(server, 'good', identityBody(3)))[0], 3);
      assert.equal((await call(server, { path: '/v2/models/good/ready' })).status, 200);
      assert.equal((await call(server, { path: '/v2/models/bad/ready' })).status, 400);
      assert.equal((await call(server, { path: '/v2/health/live' })).status, 200);
      assert.equal((await call(server, { path: '/v2/health/ready' })).status, 400);
    } finally {
      await server.stop();
    }
  });
});
