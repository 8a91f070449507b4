// Routers and version labels through the built server: the real client over HTTP and gRPC, the split under load, a canary
// that starts to fail, and a config that is edited while requests come in.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { call, requireAllSucceeded, startLoad, waitUntil } from '../support/load.ts';
import { inRoot } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const BODY = '{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[1]}]}';
const MODELS = ['--load-model=whoami', '--load-model=ab'];
const EXPLICIT = ['--model-control-mode=explicit', ...MODELS];

function makeRepository(): TestRepository {
  const repository = createRepository();
  cpSync(inRoot('test', 'e2e', 'router_models'), repository.path, { recursive: true });
  return repository;
}

async function metric(server: RunningServer, name: string): Promise<number> {
  const text = await (await fetch(server.metricsUrl)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  assert.ok(line !== undefined, `${name} is not in\n${text}`);
  return Number(line.slice(name.length + 1));
}

function requestsOf(server: RunningServer, target: string, outcome = 'success'): Promise<number> {
  return metric(server, `nereid_router_requests_total{outcome="${outcome}",router="ab",target="${target}"}`);
}

function weightOf(server: RunningServer, target: string): Promise<number> {
  return metric(server, `nereid_router_target_weight{router="ab",target="${target}"}`);
}

describe('a router and tritonclient', { skip: pythonSkip }, () => {
  const repository = makeRepository();
  let output = '';
  before(async () => {
    const server = await startServer({ repository: repository.path, isGrpc: true, args: EXPLICIT });
    const addresses = [server.httpAddress, server.grpcAddress, server.metricsAddress];
    const result = await runPython({ script: 'e2e/router_client.py', args: addresses });
    output = result.code === 0 ? result.output : `${result.output}\n--- server log\n${server.logs()}`;
    await server.stop();
  });
  after(() => repository.remove());
  testChecks('e2e/router_client.py', () => output);
});

describe('a router under load', () => {
  const repository = makeRepository();
  let server: RunningServer;
  before(async () => {
    server = await startServer({ repository: repository.path, args: EXPLICIT });
  });
  after(async () => {
    await server?.stop();
    repository.remove();
  });

  test('splits requests by the weights within one percent', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const total = 100_000;
    let left = total;
    const failed: string[] = [];
    const connection = async () => {
      while (left-- > 0) {
        const answer = await call(server, { path: '/v2/models/ab/infer', body: BODY, agent });
        if (answer.status !== 200) failed.push(answer.text);
      }
    };
    await Promise.all(Array.from({ length: 16 }, connection));
    agent.destroy();
    assert.deepEqual(failed, []);
    const canary = await requestsOf(server, 'canary');
    assert.equal(canary + (await requestsOf(server, 'stable')), total);
    assert.ok(Math.abs(canary / total - 0.1) < 0.01, `${canary} of ${total}`);
  });

  for (const trouble of ['fail', 'slow']) {
    test(`rolls a canary back that starts to ${trouble}, and a load brings it back`, async () => {
      const load = startLoad(server, { model: 'ab', body: BODY, connections: 8, pauseMs: 2 });
      try {
        await waitUntil(async () => load.answers.length > 100);
        assert.equal(await weightOf(server, 'canary'), 10);
        writeFileSync(repository.at('whoami', '2', trouble), '');
        const troubleMs = performance.now();
        assert.ok(await waitUntil(async () => (await weightOf(server, 'canary')) === 0, 20_000));
        assert.ok(performance.now() - troubleMs < 15_000);
        assert.equal(await weightOf(server, 'stable'), 100);
        const sentBefore = await requestsOf(server, 'canary', 'error');
        const countBefore = load.answers.length;
        await waitUntil(() => load.answers.length > countBefore + 300);
        // At most what was on its way.
        assert.ok((await requestsOf(server, 'canary', 'error')) - sentBefore <= 8);
        const config = await call(server, { path: '/v2/models/ab/config' });
        assert.match(config.text, /"name":"canary".*"weight":0,"rolled_back":"\d+ of \d+ requests in 10 s/);
      } finally {
        rmSync(repository.at('whoami', '2', trouble), { force: true });
        await load.stop();
      }
      assert.match(server.logs(), /router 'ab': target 'canary' is rolled back to 'stable': /);
      const answer = await call(server, { path: '/v2/repository/models/ab/load', body: '{}' });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(await weightOf(server, 'canary'), 10);
    });
  }
});

test('a config that is edited while requests come in costs none of them', async () => {
  const repository = makeRepository();
  const args = ['--model-control-mode=poll', '--repository-poll-secs=1'];
  const server = await startServer({ repository: repository.path, args });
  try {
    const load = startLoad(server, { model: 'ab', body: BODY, connections: 4, pauseMs: 2 });
    const path = repository.at('ab', 'config.pbtxt');
    const config = readFileSync(path, 'utf8');
    for (const [stable, canary] of [
      [0, 70],
      [35, 65],
    ]) {
      writeFileSync(
        path,
        config.replace('weight: 90', `weight: ${stable}`).replace('weight: 10', `weight: ${canary}`),
      );
      assert.ok(
        await waitUntil(async () => (await weightOf(server, 'canary')) === canary, 20_000),
        server.logs(),
      );
    }
    requireAllSucceeded(await load.stop());
    assert.ok(load.answers.length > 100);
  } finally {
    await server.stop();
    repository.remove();
  }
});

test('sequences keep their state behind a router whose weights change meanwhile', async () => {
  const repository = createRepository();
  for (const name of ['sum_a', 'sum_b']) {
    cpSync(inRoot('test', 'conformance', 'models', 'seq_accumulate'), repository.at(name), {
      recursive: true,
    });
  }
  const weighted = (a: number, b: number) =>
    JSON.stringify({
      platform: 'router',
      router: {
        target: [
          { model: 'sum_a', weight: a },
          { model: 'sum_b', weight: b },
        ],
        report_target: true,
      },
    });
  mkdirSync(repository.at('sum'));
  const args = ['--model-control-mode=explicit', '--load-model=sum_a', '--load-model=sum_b'];
  const server = await startServer({ repository: repository.path, args });
  const load = async (a: number, b: number) => {
    const body = JSON.stringify({ parameters: { config: weighted(a, b) } });
    const answer = await call(server, { path: '/v2/repository/models/sum/load', body });
    assert.equal(answer.status, 200, `${answer.text}\n${server.logs()}`);
  };
  const step = async (id: number, value: number, flags: Record<string, boolean> = {}) => {
    const parameters = { sequence_id: id, ...flags };
    const inputs = [{ name: 'INPUT', datatype: 'INT32', shape: [1, 1], data: [value] }];
    const answer = await call(server, {
      path: '/v2/models/sum/infer',
      body: JSON.stringify({ parameters, inputs }),
    });
    assert.equal(answer.status, 200, answer.text);
    const document = JSON.parse(answer.text) as {
      parameters: { nereid_target: string };
      outputs: { data: number[] }[];
    };
    return { target: document.parameters.nereid_target, sum: document.outputs[0]!.data[0] };
  };
  try {
    const ids = [1, 2, 3, 4];
    const homes = new Map<number, string>();
    for (const id of ids) {
      await load(id % 2, 1 - (id % 2));
      homes.set(id, (await step(id, id, { sequence_start: true })).target);
    }
    assert.deepEqual([...homes.values()], ['sum_a', 'sum_b', 'sum_a', 'sum_b']);
    for (let round = 2; round <= 5; round++) {
      await load(round % 2, 1 - (round % 2));
      const answers = await Promise.all(
        ids.map((id) => step(id, id, round === 5 ? { sequence_end: true } : {})),
      );
      assert.deepEqual(
        answers,
        // The model adds 1000 to the last answer of a sequence.
        ids.map((id) => ({ target: homes.get(id), sum: id * round + (round === 5 ? 1000 : 0) })),
      );
    }
  } finally {
    await server.stop();
    repository.remove();
  }
});

test('the bundled A/B test answers as its comment says', async () => {
  const args = ['--model-control-mode=explicit', '--load-model=scaler_ab', '--load-model=scaler'];
  const server = await startServer({ repository: inRoot('examples', 'models'), args });
  try {
    const body = '{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[7]}]}';
    for (const [target, product] of [
      ['stable', 70],
      ['canary', 700],
    ] as const) {
      const answer = await call(server, {
        path: '/v2/models/scaler_ab/infer',
        headers: { 'x-nereid-target': target },
        body,
      });
      assert.ok(answer.text.includes(`"data":[${product}.0]`), answer.text);
      const labelled = await call(server, { path: `/v2/models/scaler/versions/${target}/infer`, body });
      assert.ok(labelled.text.includes(`"data":[${product}.0]`), labelled.text);
    }
  } finally {
    await server.stop();
  }
});
