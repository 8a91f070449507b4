// Host processes are killed under load: the requests on them fail at once with the reason, nothing else does, and
// the instance comes back.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Answer,
  call,
  failuresOf,
  type Load,
  requireAllSucceeded,
  startLoad,
  waitUntil,
} from '../support/load.ts';
import { childrenOf, procSkip } from '../support/processes.ts';
import {
  addExample,
  addIdentity,
  createRepository,
  identityBody,
  type TestRepository,
} from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const FAIL_MS_MAX = 1000;
const SCALER_IO = `backend: "onnxruntime"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]`;
/** No batching, several instances: two batches in flight are two requests. */
const PAIR_CONFIG = `${SCALER_IO}\nmax_batch_size: 4\ninstance_group [ { count: 2 kind: KIND_CPU } ]`;
const PAIR_LOST_MAX = 2;
const SINGLE_CONFIG = `${SCALER_IO}\nmax_batch_size: 4\ninstance_group [ { count: 1 kind: KIND_CPU } ]\ndynamic_batching { }`;
const SINGLE_LOST_MAX = 8;
const SCALER_BODY = JSON.stringify({
  inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 2], data: [1, 2] }],
});
const MODELS = ['pair', 'single', 'other'] as const;
type ModelName = (typeof MODELS)[number];

interface ReadyLook {
  readonly atMs: number;
  readonly isServerReady: boolean;
  readonly isPairReady: boolean;
  readonly isSingleReady: boolean;
}

describe('hosts killed under load', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  /** Which host runs which model: known because the models are loaded one after another. */
  const hosts = new Map<number, ModelName>();
  const loads = new Map<ModelName, Load>();

  before(async () => {
    repository = createRepository();
    addExample(repository, { name: 'pair', example: 'scaler', config: PAIR_CONFIG });
    addExample(repository, { name: 'single', example: 'scaler', config: SINGLE_CONFIG });
    addIdentity(repository, { name: 'other' });
    server = await startServer({ repository: repository.path, args: ['--model-control-mode=explicit'] });
    for (const model of MODELS) {
      const answer = await call(server, { path: `/v2/repository/models/${model}/load`, body: '' });
      assert.equal(answer.status, 200, answer.text);
      for (const pid of childrenOf(server.pid)) if (!hosts.has(pid)) hosts.set(pid, model);
    }
    assert.deepEqual([...hosts.values()], ['pair', 'pair', 'single', 'other']);
    loads.set('pair', startLoad(server, { model: 'pair', body: SCALER_BODY, connections: 16 }));
    loads.set('single', startLoad(server, { model: 'single', body: SCALER_BODY, connections: 16 }));
    loads.set('other', startLoad(server, { model: 'other', body: identityBody(1), connections: 2 }));
    await sleep(300);
  });
  after(async () => {
    await Promise.all([...loads.values()].map((load) => load.stop()));
    await server?.stop();
    repository?.remove();
  });

  const restartCount = () => server.logs().split(' was restarted').length - 1;

  /** Kills one host of the model, waits until its successor serves; returns when it was killed. */
  async function killOne(model: ModelName, signal: NodeJS.Signals): Promise<number> {
    const pid = [...hosts.keys()].find((candidate) => hosts.get(candidate) === model)!;
    const restartsBefore = restartCount();
    const atMs = performance.now();
    process.kill(pid, signal);
    hosts.delete(pid);
    const found = await waitUntil(() => {
      const fresh = childrenOf(server.pid).find((child) => child !== pid && !hosts.has(child));
      if (fresh !== undefined) hosts.set(fresh, model);
      return restartCount() > restartsBefore;
    });
    assert.ok(found, `no host of ${model} came back\n${server.logs().slice(-2000)}`);
    return atMs;
  }

  async function isReady(path: string): Promise<boolean> {
    const { status } = await call(server, { path });
    return status === 200;
  }

  async function look(): Promise<ReadyLook> {
    const [isServerReady, isPairReady, isSingleReady] = await Promise.all([
      isReady('/v2/health/ready'),
      isReady('/v2/models/pair/ready'),
      isReady('/v2/models/single/ready'),
    ]);
    return { atMs: performance.now(), isServerReady, isPairReady, isSingleReady };
  }

  /** Looks at readiness all the while `task` runs and until every model is ready again. */
  async function watchReadiness<T>(task: Promise<T>): Promise<{ result: T; looks: ReadyLook[] }> {
    const looks: ReadyLook[] = [];
    let isDone = false;
    void task.finally(() => {
      isDone = true;
    });
    for (const endMs = performance.now() + 15_000; performance.now() < endMs; ) {
      const seen = await look();
      looks.push(seen);
      if (isDone && seen.isServerReady && seen.isSingleReady) break;
      await sleep(5);
    }
    return { result: await task, looks };
  }

  function checkFailures(
    failed: readonly Answer[],
    expected: { model: string; signal: string; killedAtMs: number; countMax: number },
  ): void {
    const reason = new RegExp(
      `instance '${expected.model}_0_[01]' of model '${expected.model}'.*${expected.signal}`,
    );
    for (const answer of failed) {
      assert.equal(answer.status, 503, answer.text);
      assert.match((JSON.parse(answer.text) as { error: string }).error, reason);
      const lateMs = answer.endMs - expected.killedAtMs;
      assert.ok(lateMs < FAIL_MS_MAX, `failed ${lateMs} ms after the kill`);
    }
    assert.ok(failed.length <= expected.countMax, `${failed.length} requests failed`);
  }

  for (const signal of ['SIGKILL', 'SIGSEGV', 'SIGKILL'] as const) {
    test(`${signal} of one of two: its requests fail with the reason, the model stays ready`, async () => {
      const load = loads.get('pair')!;
      const before = load.answers.length;
      const { result: killedAtMs, looks } = await watchReadiness(killOne('pair', signal));
      await sleep(100);
      const answers = load.answers.slice(before);
      checkFailures(failuresOf(answers), { model: 'pair', signal, killedAtMs, countMax: PAIR_LOST_MAX });
      assert.deepEqual(
        looks.filter((seen) => !seen.isServerReady || !seen.isPairReady || !seen.isSingleReady),
        [],
      );
      assert.ok(answers.some((answer) => answer.status === 200 && answer.startMs > killedAtMs));
    });
  }

  for (const signal of ['SIGSEGV', 'SIGKILL', 'SIGSEGV'] as const) {
    test(`${signal} of the only one: waiting requests are answered after the restart`, async () => {
      const load = loads.get('single')!;
      const before = load.answers.length;
      const { result: killedAtMs, looks } = await watchReadiness(killOne('single', signal));
      const readyAtMs = looks.at(-1)!.atMs;
      await sleep(100);
      const answers = load.answers.slice(before);
      checkFailures(failuresOf(answers), { model: 'single', signal, killedAtMs, countMax: SINGLE_LOST_MAX });
      const waited = answers.filter((answer) => answer.startMs > killedAtMs && answer.startMs < readyAtMs);
      assert.ok(waited.length > 0, 'no request was sent while the instance was down');

      const down = looks.filter((seen) => !seen.isSingleReady);
      assert.ok(down.length > 0, 'the model was ready without an instance');
      assert.ok(
        down.some((seen) => !seen.isServerReady),
        'the server was ready without an instance',
      );
      assert.ok(looks.every((seen) => seen.isPairReady));
      assert.ok(looks.at(-1)?.isServerReady && looks.at(-1)?.isSingleReady);
      // Not ready means not serving: nothing succeeds between the first and the last look that saw it down.
      const [firstMs, lastMs] = [down[0]!.atMs, down.at(-1)!.atMs];
      const early = answers.filter(
        (answer) => answer.status === 200 && answer.startMs > firstMs && answer.endMs < lastMs - 50,
      );
      assert.equal(
        early.length,
        0,
        `${early.length} requests succeeded while the model said it was not ready`,
      );
    });
  }

  test('afterwards every request has one answer, other models never failed, and the hosts are as before', async () => {
    for (const load of loads.values()) await load.stop();
    for (const load of loads.values()) assert.equal(load.answers.length, load.sentCount());
    const other = loads.get('other')!.answers;
    assert.ok(other.length > 100);
    requireAllSucceeded(other);
    assert.equal(childrenOf(server.pid).length, MODELS.length + 1);
    const pending = await (await fetch(server.metricsUrl)).text();
    for (const model of ['pair', 'single']) {
      assert.match(pending, new RegExp(`nv_inference_pending_request_count{model="${model}",version="3"} 0`));
    }
  });
});
