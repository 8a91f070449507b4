// --rate-limit=execution_count on a real server: a resource is used by one model at a time, priorities share it, a dead
// host gives it back, and configs that could never run say so.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, call } from '../support/load.ts';
import { childrenOf, procSkip } from '../support/processes.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

function addLimited(
  repository: TestRepository,
  options: { name: string; delayMs?: number; limiter: string },
): void {
  const { name, delayMs = 0, limiter } = options;
  addIdentity(repository, { name, delayMs });
  const path = repository.at(name, 'config.pbtxt');
  const group = `instance_group [ { count: 1 kind: KIND_CPU rate_limiter { ${limiter} } } ]`;
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^instance_group.*$/m, group));
}

function infer(server: RunningServer, model: string, value: number): Promise<Answer> {
  return call(server, { path: `/v2/models/${model}/infer`, body: identityBody(value) });
}

async function load(server: RunningServer, model: string): Promise<Answer> {
  return call(server, { path: `/v2/repository/models/${model}/load`, body: '{}' });
}

describe('a resource that models share', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addLimited(repository, { name: 'often', delayMs: 20, limiter: 'resources { name: "r" count: 2 }' });
    addLimited(repository, {
      name: 'seldom',
      delayMs: 20,
      limiter: 'resources { name: "r" count: 2 } priority: 3',
    });
    addLimited(repository, { name: 'stuck', delayMs: 60_000, limiter: 'resources { name: "r" count: 1 }' });
    addLimited(repository, { name: 'greedy', limiter: 'resources { name: "r" count: 4 }' });
    addLimited(repository, { name: 'unnamed', limiter: 'resources { name: "s" count: 1 }' });
    addLimited(repository, { name: 'global', limiter: 'resources { name: "r" global: true count: 1 }' });
    addIdentity(repository, { name: 'free' });
    server = await startServer({
      repository: repository.path,
      args: [
        '--model-control-mode=explicit',
        '--rate-limit=execution_count',
        '--rate-limit-resource=r:2',
        ...['often', 'seldom', 'free'].map((name) => `--load-model=${name}`),
      ],
    });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  test('is shared by priority while both models have work, and a model without needs goes on', async () => {
    const order: string[] = [];
    const send = async (model: string, value: number) => {
      const answer = await infer(server, model, value);
      assert.equal(answer.status, 200, answer.text);
      order.push(model);
    };
    const sent = Array.from({ length: 24 }, (_, i) => [send('often', i), send('seldom', i)]).flat();
    assert.equal((await infer(server, 'free', 1)).status, 200);
    assert.ok(order.length < 40, 'the model without needs waited for the others');
    await Promise.all(sent);
    // The first ones came before everything had arrived.
    const oftenCount = order.slice(4, 24).filter((name) => name === 'often').length;
    assert.ok(oftenCount >= 13 && oftenCount <= 17, `${oftenCount} of 20: ${order.join(' ')}`);
  });

  test('is given back when the host that has it dies', async () => {
    const before = childrenOf(server.pid);
    assert.equal((await load(server, 'stuck')).status, 200);
    const [host] = childrenOf(server.pid).filter((pid) => !before.includes(pid));
    const lost = infer(server, 'stuck', 1);
    let isOver = false;
    await sleep(200);
    const waiting = infer(server, 'often', 7).then((answer) => {
      isOver = true;
      return answer;
    });
    assert.equal((await infer(server, 'free', 2)).status, 200);
    assert.equal(isOver, false);
    process.kill(host!, 'SIGKILL');
    assert.equal((await lost).status, 503);
    assert.equal((await waiting).status, 200);
    await call(server, { path: '/v2/repository/models/stuck/unload', body: '{}' });
  });

  test('what could never run does not load, in the words of Triton', async () => {
    const failure = (model: string, reason: string) =>
      `load failed for model '${model}': version 1 is at UNAVAILABLE state: Invalid argument: ${reason};\n`;
    const limit = (name: string, has: number, needs: number) =>
      `Resource count for "${name}" is limited to ${has} which will prevent scheduling of one or more model instances, the minimum required count is ${needs}`;
    const cases: [string, string][] = [
      ['greedy', limit('r', 2, 4)],
      ['unnamed', limit('s', 0, 1)],
      [
        'global',
        'Resource "r" is present as both global and device-specific resource in the model configuration.',
      ],
    ];
    for (const [model, reason] of cases) {
      const answer = await load(server, model);
      assert.equal(answer.status, 400);
      assert.equal((JSON.parse(answer.text) as { error: string }).error, failure(model, reason));
    }
    // In Triton what did not load keeps others from loading.
    assert.equal((await load(server, 'stuck')).status, 200);
  });
});
