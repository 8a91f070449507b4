// The hosts of a sequence model and of a step of an ensemble are killed: their sequences end with a clear error and free their
// slots, those of the other instance and other models go on, and the ensemble serves again.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, waitUntil } from '../support/load.ts';
import { inRoot } from '../support/paths.ts';
import { childrenOf, procSkip } from '../support/processes.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SUM_IO = `backend: "onnxruntime"
max_batch_size: 4
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 2 } ]
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  direct { }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] }
  ]
  state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
}`;
const PIPE = `platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "same" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "t" } },
  { model_name: "same" model_version: -1 input_map { key: "INPUT0" value: "t" } output_map { key: "OUTPUT0" value: "OUTPUT0" } }
] }`;
/** What the model adds to the last sum. */
const END = 1000;
/** Two instances with four slots each. */
const SEQUENCES = [1, 2, 3, 4, 5, 6, 7, 8];

interface Told {
  readonly status: number;
  readonly sum: number | undefined;
  readonly error: string;
}

describe('hosts of sequences and pipelines killed', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  const hosts: { sum: number[]; same: number[] } = { sum: [], same: [] };

  before(async () => {
    repository = createRepository();
    cpSync(inRoot('test', 'conformance', 'models', 'seq_accumulate'), repository.at('sum'), {
      recursive: true,
    });
    writeFileSync(repository.at('sum', 'config.pbtxt'), SUM_IO);
    addIdentity(repository, { name: 'same' });
    mkdirSync(repository.at('pipe', '1'), { recursive: true });
    writeFileSync(repository.at('pipe', 'config.pbtxt'), PIPE);
    server = await startServer({ repository: repository.path, args: ['--model-control-mode=explicit'] });
    for (const model of ['sum', 'same', 'pipe'] as const) {
      const known = childrenOf(server.pid);
      const answer = await call(server, { path: `/v2/repository/models/${model}/load`, body: '' });
      assert.equal(answer.status, 200, answer.text);
      if (model !== 'pipe') hosts[model] = childrenOf(server.pid).filter((pid) => !known.includes(pid));
    }
    assert.equal(hosts.sum.length, 2);
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  async function add(sequence: number, value: number, flags: object = {}): Promise<Told> {
    const body = JSON.stringify({
      parameters: { sequence_id: sequence, sequence_start: false, sequence_end: false, ...flags },
      inputs: [{ name: 'INPUT', datatype: 'INT32', shape: [1, 1], data: [value] }],
    });
    const { status, text } = await call(server, { path: '/v2/models/sum/infer', body });
    const answer = JSON.parse(text) as { error?: string; outputs?: { data: number[] }[] };
    return { status, sum: answer.outputs?.[0]?.data[0], error: answer.error ?? '' };
  }

  test('half of the sequences end with their host, the other half goes on', async () => {
    for (const id of SEQUENCES) assert.equal((await add(id, id, { sequence_start: true })).sum, id);
    process.kill(hosts.sum[0]!, 'SIGKILL');
    assert.ok(await waitUntil(() => server.logs().includes('was restarted')));
    const told = await Promise.all(SEQUENCES.map((id) => add(id, 10)));
    const went = SEQUENCES.filter((id, i) => told[i]!.sum === id + 10);
    const ended = SEQUENCES.filter((_id, i) => told[i]!.status === 400);
    assert.equal(went.length, 4, JSON.stringify(told));
    assert.equal(ended.length, 4, JSON.stringify(told));
    for (const id of ended) {
      assert.equal(
        told[SEQUENCES.indexOf(id)]!.error,
        `inference request for sequence ${id} to model 'sum' must specify the START flag on the first request of the sequence`,
      );
    }
    // Their slots are free: as many can begin anew, and nothing of the old sums is left.
    for (const id of ended) assert.equal((await add(id, 100, { sequence_start: true })).sum, 100);
    for (const id of ended) assert.equal((await add(id, 1, { sequence_end: true })).sum, 101 + END);
    for (const id of went) assert.equal((await add(id, 1, { sequence_end: true })).sum, id + 11 + END);
  });

  test('requests that the dead host had get its error at once, and new sequences are served', async () => {
    for (const id of SEQUENCES) await add(id, 0, { sequence_start: true });
    const asked = SEQUENCES.map((id) => add(id, 1));
    for (const pid of childrenOf(server.pid).filter((pid) => !hosts.same.includes(pid))) {
      process.kill(pid, 'SIGKILL');
    }
    for (const { status, sum, error } of await Promise.all(asked)) {
      if (status === 200) assert.equal(sum, 1);
      else assert.match(error, /ended unexpectedly: host process|must specify the START flag/);
    }
    await sleep(100);
    const again = await add(99, 5, { sequence_start: true, sequence_end: true });
    assert.deepEqual([again.status, again.sum], [200, 5 + END], again.error);
  });

  test('a pipeline fails with its step and serves again with it', async () => {
    const ask = () => call(server, { path: '/v2/models/pipe/infer', body: identityBody(7) });
    assert.equal((await ask()).status, 200);
    for (const pid of hosts.same) process.kill(pid, 'SIGKILL');
    const answers = await Promise.all([ask(), ask(), ask()]);
    for (const { status, text } of answers) if (status !== 200) assert.match(text, /in ensemble 'pipe', /);
    await sleep(100);
    const after = await ask();
    assert.equal(after.status, 200, after.text);
  });
});
