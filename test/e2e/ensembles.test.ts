// Ensembles in a real server: what they need is loaded with them, tensors flow, models are reloaded and unloaded under
// them, other models call them. The recorded cases (test/conformance) hold Triton's texts; this is about life.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { addSquare } from '../support/decoupled.ts';
import { encodeRequest, GrpcClient } from '../support/grpc.ts';
import { call, inferNow, requireAllSucceeded, startLoad, waitUntil } from '../support/load.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

interface Step {
  readonly model: string;
  readonly in: readonly [string, string];
  readonly out: readonly [string, string];
}

/** INPUT0 → the steps → OUTPUT0, of identity models unless told. */
function addEnsemble(
  repository: TestRepository,
  options: {
    name: string;
    models: readonly string[];
    type?: string;
    dims?: string;
    maxBatchSize?: number;
    maxInflight?: number;
    steps?: readonly Step[];
  },
): void {
  const { name, models, type = 'TYPE_FP32', dims = '-1', maxBatchSize = 8, maxInflight = 0 } = options;
  const tensorAt = (i: number) => (i === 0 ? 'INPUT0' : i === models.length ? 'OUTPUT0' : `tensor${i}`);
  const chain = models.map((model, i): Step => {
    return { model, in: ['INPUT0', tensorAt(i)], out: ['OUTPUT0', tensorAt(i + 1)] };
  });
  const steps = (options.steps ?? chain).map(
    (step) => `step {
  model_name: "${step.model}" model_version: -1
  input_map { key: "${step.in[0]}" value: "${step.in[1]}" }
  output_map { key: "${step.out[0]}" value: "${step.out[1]}" }
}`,
  );
  mkdirSync(repository.at(name, '1'), { recursive: true });
  writeFileSync(
    repository.at(name, 'config.pbtxt'),
    `platform: "ensemble"
max_batch_size: ${maxBatchSize}
input [ { name: "INPUT0" data_type: ${type} dims: [ ${dims} ] } ]
output [ { name: "OUTPUT0" data_type: ${type} dims: [ ${dims} ] } ]
ensemble_scheduling { ${steps.join('\n')} max_inflight_requests: ${maxInflight} }
`,
  );
}

/** Sends 256 KiB again and again, as fast as it is let, and counts. */
const FLOOD = `import { defineModel, Tensor } from 'nereid/model';
export default defineModel({
  config: {
    inputs: [{ name: 'INPUT0', datatype: 'UINT8', dims: [-1] }],
    outputs: [{ name: 'OUTPUT0', datatype: 'UINT8', dims: [-1] }],
    decoupled: true,
  },
  execute: (requests, { metrics }) => {
    const sent = metrics.counter('flood_sent');
    return requests.map(async (request) => {
      const sender = request.sender();
      for (let i = 0; i < 2000 && !request.isCancelled; i++) {
        await sender.send({ outputs: [Tensor.from('OUTPUT0', new Uint8Array(256 * 1024))] });
        sent.increment();
      }
    });
  },
});
`;

async function floodSent(server: RunningServer): Promise<number> {
  const text = await (await fetch(server.metricsUrl)).text();
  return Number(/^flood_sent(?:\{.*\})? ([0-9.]+)$/m.exec(text)?.[1] ?? 0);
}

async function stateOf(server: RunningServer, model: string): Promise<string> {
  const { text } = await call(server, { path: '/v2/repository/index', body: '' });
  const rows = JSON.parse(text) as { name: string; state?: string; reason?: string }[];
  const row = rows.find(({ name }) => name === model);
  return [row?.state, row?.reason].filter((part) => part !== undefined).join(' ');
}

async function control(server: RunningServer, action: 'load' | 'unload', model: string): Promise<string> {
  const answer = await call(server, { path: `/v2/repository/models/${model}/${action}`, body: '' });
  return answer.status === 200 ? '' : (JSON.parse(answer.text) as { error: string }).error;
}

async function inferenceCounts(server: RunningServer, model: string): Promise<[number, number]> {
  const { text } = await call(server, { path: `/v2/models/${model}/stats` });
  const [stats] = (
    JSON.parse(text) as { model_stats: { inference_count: number; execution_count: number }[] }
  ).model_stats;
  return [stats!.inference_count, stats!.execution_count];
}

describe('ensembles', () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    for (const name of ['first', 'second', 'third']) addIdentity(repository, { name });
    addIdentity(repository, { name: 'slow', delayMs: 400 });
    addEnsemble(repository, { name: 'pair', models: ['first', 'second'] });
    addEnsemble(repository, { name: 'outer', models: ['pair', 'third'] });
    addEnsemble(repository, { name: 'late', models: ['third', 'slow'] });
    addIdentity(repository, { name: 'text', type: 'TYPE_STRING' });
    addEnsemble(repository, { name: 'texts', models: ['text', 'text'], type: 'TYPE_STRING' });
    addSquare(repository);
    addIdentity(repository, { name: 'number', type: 'TYPE_INT32' });
    addEnsemble(repository, {
      name: 'squares',
      models: [],
      type: 'TYPE_INT32',
      dims: '1',
      maxBatchSize: 0,
      maxInflight: 1,
      steps: [
        { model: 'square', in: ['IN', 'INPUT0'], out: ['OUT', 'each'] },
        { model: 'number', in: ['INPUT0', 'each'], out: ['OUTPUT0', 'OUTPUT0'] },
      ],
    });
    mkdirSync(repository.at('asks', '1'), { recursive: true });
    writeFileSync(
      repository.at('asks', '1', 'model.mjs'),
      `import { defineModel } from 'nereid/model';
export default defineModel({
  config: {
    maxBatchSize: 8,
    inputs: [{ name: 'INPUT0', datatype: 'FP32', dims: [-1] }],
    outputs: [{ name: 'OUTPUT0', datatype: 'FP32', dims: [-1] }],
  },
  execute: (requests, { infer }) =>
    requests.map(async (request) => {
      const { output } = await infer('outer', { inputs: [request.input('INPUT0')], request });
      return { outputs: [output('OUTPUT0')] };
    }),
});
`,
    );
    mkdirSync(repository.at('flood', '1'), { recursive: true });
    writeFileSync(repository.at('flood', '1', 'model.mjs'), FLOOD);
    addIdentity(repository, { name: 'bucket', type: 'TYPE_UINT8', delayMs: 20 });
    addEnsemble(repository, {
      name: 'flooded',
      models: [],
      type: 'TYPE_UINT8',
      maxBatchSize: 0,
      steps: [
        { model: 'flood', in: ['INPUT0', 'INPUT0'], out: ['OUTPUT0', 'each'] },
        { model: 'bucket', in: ['INPUT0', 'each'], out: ['OUTPUT0', 'OUTPUT0'] },
      ],
    });
    server = await startServer({
      repository: repository.path,
      isGrpc: true,
      args: ['--model-control-mode=explicit', '--load-model=outer', '--load-model=texts'],
    });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  test('are served with all that they need; each step counts, and so does the whole', async () => {
    assert.deepEqual(await inferNow(server, 'outer', identityBody(7)), [7]);
    for (const model of ['outer', 'pair', 'first', 'second', 'third']) {
      assert.equal(await stateOf(server, model), 'READY');
      assert.deepEqual(await inferenceCounts(server, model), [1, 1], model);
    }
    const metrics = await (await fetch(server.metricsUrl)).text();
    assert.match(metrics, /nv_inference_request_success\{model="outer",version="1"\} 1/);
    assert.match(metrics, /nv_inference_pending_request_count\{model="outer",version="1"\} 0/);
  });

  test('carry texts', async () => {
    const data = ['zwei', 'drei \u{1F600}', ''];
    const body = JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'BYTES', shape: [1, 3], data }] });
    assert.deepEqual(await inferNow(server, 'texts', body), data);
  });

  test('are called by other models', async () => {
    assert.equal(await control(server, 'load', 'asks'), '');
    assert.deepEqual(await inferNow(server, 'asks', identityBody(9)), [9]);
  });

  test('with a decoupled step stream every response, also where one request at a time is allowed', async () => {
    assert.equal(await control(server, 'load', 'squares'), '');
    const client = new GrpcClient(server.grpcAddress);
    const stream = client.stream().read();
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(32);
    stream.send(encodeRequest('squares', [{ name: 'INPUT0', datatype: 'INT32', shape: [1], bytes }]));
    const answers = await stream.received(32);
    assert.deepEqual(
      answers.map((answer) => Buffer.from(answer.infer_response!.raw_output_contents[0]!).readInt32LE()),
      new Array(32).fill(32),
    );
    await stream.end();
    client.close();
  });

  test('pause a decoupled step that is faster than the next, and stop it when the client goes', async () => {
    assert.equal(await control(server, 'load', 'flooded'), '');
    const client = new GrpcClient(server.grpcAddress);
    const stream = client.stream().read();
    const bytes = Buffer.alloc(1);
    stream.send(encodeRequest('flooded', [{ name: 'INPUT0', datatype: 'UINT8', shape: [1], bytes }]));
    await stream.received(20);
    // 64 are let through, and a few are on their way to the host that is told to stop.
    const ahead = (await floodSent(server)) - stream.answers.length;
    assert.ok(ahead > 0 && ahead < 100, `${ahead} responses are under way`);
    stream.call.cancel();
    client.close();
    let sent = -1;
    const isStill = async () => {
      const before = sent;
      sent = await floodSent(server);
      return sent === before;
    };
    assert.ok(await waitUntil(isStill));
    assert.ok(sent < 300, `${sent} responses were sent`);
  });

  test('lose no request when a model of theirs is loaded again', async () => {
    const load = startLoad(server, { model: 'outer', body: identityBody(5), connections: 4, pauseMs: 2 });
    for (const delayMs of [1, 2]) {
      addIdentity(repository, { name: 'second', delayMs });
      assert.equal(await control(server, 'load', 'second'), '');
    }
    const answers = await load.stop();
    requireAllSucceeded(answers);
    assert.ok(answers.length > 0);
  });

  test('go when a model no longer fits, and come back when it does', async () => {
    addIdentity(repository, { name: 'second', type: 'TYPE_INT32' });
    assert.equal(await control(server, 'load', 'second'), '');
    assert.equal(await stateOf(server, 'second'), 'READY');
    assert.ok(await waitUntil(async () => (await stateOf(server, 'outer')) === 'UNAVAILABLE unloaded'));
    assert.equal(await stateOf(server, 'pair'), 'UNAVAILABLE unloaded');
    assert.match(server.logs(), /ensemble tensor tensor1: inconsistent data type/);
    addIdentity(repository, { name: 'second' });
    assert.equal(await control(server, 'load', 'second'), '');
    assert.deepEqual(await inferNow(server, 'outer', identityBody(3)), [3]);
    // The same when the ensemble itself is loaded, which looks at its models first.
    addIdentity(repository, { name: 'second', type: 'TYPE_INT64' });
    assert.match(
      await control(server, 'load', 'outer'),
      /^load failed for model 'outer': ensemble 'outer' depends on 'pair' which is not valid\. Model 'pair' failed with error: in ensemble pair, ensemble tensor tensor1: inconsistent data type/,
    );
    assert.ok(await waitUntil(async () => (await stateOf(server, 'outer')) === 'UNAVAILABLE unloaded'));
    addIdentity(repository, { name: 'second' });
    assert.equal(await control(server, 'load', 'outer'), '');
    assert.deepEqual(await inferNow(server, 'outer', identityBody(8)), [8]);
  });

  test('finish what is under way when a model of theirs is unloaded', async () => {
    assert.equal(await control(server, 'load', 'late'), '');
    const answer = inferNow(server, 'late', identityBody(4));
    await waitUntil(async () => (await inferenceCounts(server, 'third'))[0] > 0);
    assert.equal(await control(server, 'unload', 'slow'), '');
    assert.match(await stateOf(server, 'late'), /^(UNLOADING|UNAVAILABLE)/);
    assert.deepEqual(await answer, [4]);
    assert.ok(await waitUntil(async () => (await stateOf(server, 'slow')) === 'UNAVAILABLE unloaded'));
    assert.equal(await stateOf(server, 'third'), 'READY');
  });

  test('are answered when the server exits', async () => {
    assert.equal(await control(server, 'load', 'late'), '');
    const answer = inferNow(server, 'late', identityBody(6));
    await new Promise((resolve) => setTimeout(resolve, 150));
    const { code } = await server.stop();
    assert.deepEqual(await answer, [6]);
    assert.equal(code, 0);
  });
});

describe('ensembles of a polled repository', () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    // By name the ensemble comes before what it is made of.
    addEnsemble(repository, { name: 'all', models: ['here', 'there'] });
    addIdentity(repository, { name: 'here' });
    server = await startServer({
      repository: repository.path,
      args: ['--model-control-mode=poll', '--repository-poll-secs=1', '--exit-on-error=false'],
    });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  test('are served once the model that was missing is there, and as long as it is', async () => {
    assert.match(server.logs(), /contains models that are not available or ambiguous: there/);
    assert.equal(await stateOf(server, 'all'), '');
    addIdentity(repository, { name: 'there' });
    assert.ok(await waitUntil(async () => (await stateOf(server, 'all')) === 'READY', 20_000), server.logs());
    assert.deepEqual(await inferNow(server, 'all', identityBody(2)), [2]);
    rmSync(repository.at('there'), { recursive: true });
    assert.ok(await waitUntil(async () => (await stateOf(server, 'all')) === 'UNAVAILABLE unloaded', 20_000));
    assert.equal(await stateOf(server, 'here'), 'READY');
  });
});
