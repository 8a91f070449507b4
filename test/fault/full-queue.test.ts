// Full queues, queue timeouts, priorities and the delayed start, on an identity model with one slow instance.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, call } from '../support/load.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const DELAY_MS = 400;

interface ModelStatistics {
  readonly inference_count: number;
  readonly execution_count: number;
  readonly batch_stats: readonly { readonly batch_size: number }[];
}

async function statisticsOf(server: RunningServer, model: string): Promise<ModelStatistics> {
  const { text } = await call(server, { path: `/v2/models/${model}/stats` });
  return (JSON.parse(text) as { model_stats: ModelStatistics[] }).model_stats[0]!;
}

function infer(server: RunningServer, model: string, body: string): Promise<Answer> {
  return call(server, { path: `/v2/models/${model}/infer`, body });
}

function errorOf(answer: Answer): string {
  return (JSON.parse(answer.text) as { error: string }).error;
}

describe('queues of a slow model', () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, {
      name: 'bounded',
      delayMs: DELAY_MS,
      config: 'dynamic_batching { default_queue_policy { max_queue_size: 3 } }',
    });
    addIdentity(repository, {
      name: 'hasty',
      delayMs: DELAY_MS,
      config: 'dynamic_batching { default_queue_policy { default_timeout_microseconds: 100000 } }',
    });
    addIdentity(repository, {
      name: 'ranked',
      delayMs: 100,
      config: 'dynamic_batching { preferred_batch_size: [ 1 ] priority_levels: 3 default_priority_level: 2 }',
    });
    server = await startServer({ repository: repository.path });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  test('what does not fit is refused at once, the others succeed', async () => {
    const first = infer(server, 'bounded', identityBody(0));
    await sleep(100);
    const rest = await Promise.all(
      Array.from({ length: 8 }, (_, i) => infer(server, 'bounded', identityBody(i, { id: `r${i}` }))),
    );
    assert.equal((await first).status, 200);
    const refused = rest.filter((answer) => answer.status === 503);
    assert.equal(refused.length, 5);
    assert.equal(rest.filter((answer) => answer.status === 200).length, 3);
    const firstEndMs = (await first).endMs;
    for (const answer of refused) {
      assert.match(errorOf(answer), /^\[request id: r[0-7]\] Exceeds maximum queue size$/);
      assert.ok(answer.endMs < firstEndMs, 'the refusal waited for the model');
    }
    assert.equal((await infer(server, 'bounded', identityBody(9))).status, 200);
  });

  test('a request that waits too long is rejected while the model is still busy', async () => {
    const first = infer(server, 'hasty', identityBody(0));
    await sleep(100);
    const late = await Promise.all([1, 2].map((i) => infer(server, 'hasty', identityBody(i))));
    const { status, endMs } = await first;
    assert.equal(status, 200);
    for (const answer of late) {
      assert.equal(answer.status, 503);
      assert.equal(errorOf(answer), 'Request timeout expired');
      assert.ok(answer.endMs < endMs, 'the rejection waited for the model');
    }
    const metrics = await (await fetch(server.metricsUrl)).text();
    assert.match(metrics, /nv_inference_request_failure\{model="hasty",reason="REJECTED",version="1"\} 2/);
  });

  test('urgent requests overtake', async () => {
    const order: string[] = [];
    const send = async (id: string, priority: number) => {
      const answer = await infer(server, 'ranked', identityBody(0, { id, parameters: { priority } }));
      assert.equal(answer.status, 200, answer.text);
      order.push(id);
    };
    const sent = [send('first', 2)];
    await sleep(40);
    // One after another, so that the arrival order is known and is not the order of urgency.
    for (const [id, priority] of [
      ['low', 3],
      ['default', 0],
      ['high', 1],
    ] as const) {
      sent.push(send(id, priority));
      await sleep(10);
    }
    await Promise.all(sent);
    assert.deepEqual(order, ['first', 'high', 'default', 'low']);
  });
});

describe('TRITONSERVER_DELAY_SCHEDULER', () => {
  test('holds requests until there are n, which then are one batch', async () => {
    const repository = createRepository();
    addIdentity(repository, { name: 'held', config: 'dynamic_batching { }' });
    const server = await startServer({
      repository: repository.path,
      env: { TRITONSERVER_DELAY_SCHEDULER: '5' },
    });
    try {
      const waiting = [0, 1, 2, 3].map((i) => infer(server, 'held', identityBody(i)));
      await sleep(200);
      assert.equal((await statisticsOf(server, 'held')).execution_count, 0);
      const answers = await Promise.all([...waiting, infer(server, 'held', identityBody(4))]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200],
      );
      const statistics = await statisticsOf(server, 'held');
      assert.equal(statistics.inference_count, 5);
      assert.equal(statistics.execution_count, 1);
      assert.deepEqual(
        statistics.batch_stats.map((row) => row.batch_size),
        [5],
      );
    } finally {
      await server.stop();
      repository.remove();
    }
  });
});
