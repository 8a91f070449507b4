// The model repository is edited under load, as people edit repositories: versions come and go, configs change and
// break, files are half wrong for a while. No request to a model that should be serving may fail.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { call, inferNow, type Load, requireAllSucceeded, startLoad, waitUntil } from '../support/load.ts';
import { inRoot } from '../support/paths.ts';
import { childrenOf, procSkip } from '../support/processes.ts';
import { addExample, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCALER = inRoot('examples', 'models', 'scaler');
const SCALER_BODY = JSON.stringify({ inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 1], data: [1] }] });
const DIGITS_BODY = JSON.stringify({
  inputs: [{ name: 'IMAGE', datatype: 'FP32', shape: [1, 1, 8, 8], data: new Array(64).fill(0) }],
  outputs: [{ name: 'SCORES', parameters: { classification: 10 } }],
});

function scalerConfig(maxBatchSize: number): string {
  return `backend: "onnxruntime"
max_batch_size: ${maxBatchSize}
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
version_policy { all { } }
`;
}

/** A model "scaled" that has only version 1, which multiplies by 1, and "steady", which nobody edits. */
function createScaledRepository(): TestRepository {
  const repository = createRepository();
  addExample(repository, { name: 'scaled', example: 'scaler', config: scalerConfig(16) });
  for (const version of ['2', '3']) rmSync(repository.at('scaled', version), { recursive: true });
  addExample(repository, { name: 'steady', example: 'scaler' });
  return repository;
}

async function indexOf(server: RunningServer): Promise<Record<string, { state?: string; reason?: string }>> {
  const { text } = await call(server, { path: '/v2/repository/index', body: '' });
  const rows = JSON.parse(text) as { name: string; version?: string; state?: string; reason?: string }[];
  return Object.fromEntries(rows.map((row) => [`${row.name}:${row.version ?? ''}`, row]));
}

async function batchSizeMaxOf(server: RunningServer): Promise<number> {
  const { text } = await call(server, { path: '/v2/models/scaled/config' });
  return (JSON.parse(text) as { max_batch_size: number }).max_batch_size;
}

describe('a polled repository', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let loads: Load[];

  before(async () => {
    repository = createScaledRepository();
    addExample(repository, { name: 'digits', example: 'digits' });
    server = await startServer({
      repository: repository.path,
      args: ['--model-control-mode=poll', '--repository-poll-secs=1'],
    });
    loads = [
      startLoad(server, { model: 'scaled', body: SCALER_BODY, connections: 4, pauseMs: 5 }),
      startLoad(server, { model: 'steady', body: SCALER_BODY, connections: 2, pauseMs: 5 }),
      startLoad(server, { model: 'digits', body: DIGITS_BODY, connections: 2, pauseMs: 5 }),
    ];
  });
  after(async () => {
    await Promise.all(loads.map((load) => load.stop()));
    await server?.stop();
    repository?.remove();
  });

  const isFactor = (factor: number) => async () =>
    (await inferNow(server, 'scaled', SCALER_BODY))[0] === factor;
  const explain = () => server.logs().slice(-3000);
  const addVersion = (version: string) =>
    cpSync(`${SCALER}/${version}`, repository.at('scaled', version), { recursive: true });

  test('a new version is served, the old one too', async () => {
    addVersion('2');
    assert.ok(await waitUntil(isFactor(10)), explain());
    const old = await call(server, { path: '/v2/models/scaled/versions/1/infer', body: SCALER_BODY });
    assert.equal(old.status, 200, old.text);
  });

  test('a removed version goes, the other serves', async () => {
    rmSync(repository.at('scaled', '1'), { recursive: true });
    const isGone = async () => (await indexOf(server))['scaled:1']?.state !== 'READY';
    assert.ok(await waitUntil(isGone), explain());
    const old = await call(server, { path: '/v2/models/scaled/versions/1/infer', body: SCALER_BODY });
    assert.notEqual(old.status, 200);
    assert.ok(await isFactor(10)());
  });

  test('a changed config takes effect', async () => {
    writeFileSync(repository.at('scaled', 'config.pbtxt'), scalerConfig(8));
    assert.ok(await waitUntil(async () => (await batchSizeMaxOf(server)) === 8), explain());
  });

  test('a broken config is logged, the old one serves', async () => {
    writeFileSync(repository.at('scaled', 'config.pbtxt'), 'max_batch_size: 8\ninput [ { nam: "X" ');
    assert.ok(await server.waitForLog(/Poll failed for model directory 'scaled': \S+/), explain());
    assert.ok(await isFactor(10)());
    assert.equal((await indexOf(server))['scaled:2']?.state, 'READY');
    writeFileSync(repository.at('scaled', 'config.pbtxt'), scalerConfig(4));
    assert.ok(await waitUntil(async () => (await batchSizeMaxOf(server)) === 4), explain());
  });

  test('a garbage file is logged, the old model serves until a good file comes', async () => {
    const file = repository.at('scaled', '2', 'model.onnx');
    writeFileSync(file, 'this is no ONNX file');
    assert.ok(await server.waitForLog(/failed to load 'scaled' version 2: \S+/), explain());
    assert.ok(await isFactor(10)());
    writeFileSync(file, readFileSync(`${SCALER}/3/model.onnx`));
    assert.ok(await waitUntil(isFactor(100)), explain());
  });

  test('a bad new version beside a good one fails, the good one serves', async () => {
    cpSync(`${SCALER}/3`, repository.at('scaled', '7'), { recursive: true });
    writeFileSync(repository.at('scaled', '7', 'model.onnx'), 'garbage');
    assert.ok(await server.waitForLog(/failed to load 'scaled' version 7: \S+/), explain());
    assert.ok(await isFactor(100)());
    const index = await indexOf(server);
    assert.equal(index['scaled:2']?.state, 'READY');
    assert.equal(index['scaled:7']?.state, 'UNAVAILABLE');
    assert.match(index['scaled:7']?.reason ?? '', /\S/);
    rmSync(repository.at('scaled', '7'), { recursive: true });
    assert.ok(await waitUntil(async () => (await indexOf(server))['scaled:7'] === undefined), explain());
  });

  test('a label file that is replaced takes effect, whatever the age of the new file', async () => {
    const path = repository.at('digits', 'labels.txt');
    const isLabelled = (label: string) => async () =>
      (await inferNow(server, 'digits', DIGITS_BODY)).some((text) => String(text).endsWith(`:${label}`));
    assert.ok(await isLabelled('seven')());
    // Written beforehand and moved into place, as careful people do: its time is older than the last change.
    writeFileSync(`${path}.new`, readFileSync(path, 'utf8').replace('seven', 'SEVEN'));
    assert.ok(
      await waitUntil(() => server.logs().split("successfully loaded 'digits'").length > 2),
      explain(),
    );
    renameSync(`${path}.new`, path);
    assert.ok(await waitUntil(isLabelled('SEVEN')), explain());
  });

  test('no request failed', async () => {
    for (const load of loads) {
      const answers = await load.stop();
      assert.ok(answers.length > 100);
      requireAllSucceeded(answers);
    }
  });

  test('a removed model goes and comes back', async (t) => {
    const steady = startLoad(server, { model: 'steady', body: SCALER_BODY, connections: 2, pauseMs: 5 });
    t.after(() => steady.stop());
    renameSync(repository.at('scaled'), `${repository.path}-aside`);
    const status = async () =>
      (await call(server, { path: '/v2/models/scaled/infer', body: SCALER_BODY })).status;
    assert.ok(await waitUntil(async () => (await status()) === 404), explain());
    assert.equal((await call(server, { path: '/v2/health/ready' })).status, 200);
    renameSync(`${repository.path}-aside`, repository.at('scaled'));
    assert.ok(await waitUntil(async () => (await status()) === 200), explain());
    requireAllSucceeded(await steady.stop());
  });
});

describe('an explicitly controlled repository', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let load: Load;

  before(async () => {
    repository = createScaledRepository();
    server = await startServer({
      repository: repository.path,
      args: ['--model-control-mode=explicit', '--load-model=scaled'],
    });
    load = startLoad(server, { model: 'scaled', body: SCALER_BODY, connections: 8, pauseMs: 5 });
  });
  after(async () => {
    await load?.stop();
    await server?.stop();
    repository?.remove();
  });

  const reload = (body = '') => call(server, { path: '/v2/repository/models/scaled/load', body });

  test('30 reloads with alternating configs', async () => {
    for (let i = 0; i < 30; i++) {
      const maxBatchSize = i % 2 === 0 ? 8 : 16;
      const config = JSON.stringify({
        backend: 'onnxruntime',
        max_batch_size: maxBatchSize,
        instance_group: [{ count: 1, kind: 'KIND_CPU' }],
        input: [{ name: 'X', data_type: 'TYPE_FP32', dims: [-1] }],
        output: [{ name: 'Y', data_type: 'TYPE_FP32', dims: [-1] }],
      });
      const answer = await reload(JSON.stringify({ parameters: { config } }));
      assert.equal(answer.status, 200, answer.text);
      assert.equal(await batchSizeMaxOf(server), maxBatchSize);
    }
    assert.ok(await waitUntil(() => childrenOf(server.pid).length === 1), 'hosts of old models are left');
  });

  test('a load that fails says why, every time it is asked, and the old model serves', async () => {
    const file = repository.at('scaled', '1', 'model.onnx');
    writeFileSync(file, 'this is no ONNX file');
    for (let i = 0; i < 2; i++) {
      const answer = await reload();
      assert.equal(answer.status, 400, `load number ${i + 1} of a garbage file: ${answer.text}`);
      assert.match(answer.text, /load failed for model 'scaled': version 1 is at UNAVAILABLE state: /);
    }
    assert.equal((await inferNow(server, 'scaled', SCALER_BODY))[0], 1);
    writeFileSync(file, readFileSync(`${SCALER}/2/model.onnx`));
    assert.equal((await reload()).status, 200);
    assert.equal((await inferNow(server, 'scaled', SCALER_BODY))[0], 10);
  });

  test('a broken config is refused, the old model serves', async () => {
    writeFileSync(repository.at('scaled', 'config.pbtxt'), 'input [ {');
    const answer = await reload();
    assert.equal(answer.status, 500, answer.text);
    assert.match(answer.text, /failed to load 'scaled', failed to poll from model repository/);
    assert.match(server.logs(), /Poll failed for model directory 'scaled': \S+/);
    writeFileSync(repository.at('scaled', 'config.pbtxt'), scalerConfig(4));
    assert.equal((await reload()).status, 200);
    assert.equal(await batchSizeMaxOf(server), 4);
  });

  test('no request failed', async () => {
    const answers = await load.stop();
    assert.ok(answers.length > 100);
    requireAllSucceeded(answers);
  });
});
