// A Python model that keeps dying: after some restarts it is shown as unavailable with its last traceback, its requests are
// refused at once with the same, and when the cause has gone it serves again.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { call, waitUntil } from '../support/load.ts';
import { pythonSkip } from '../support/python.ts';
import { addPythonModel, ask, askError, askText } from '../support/python-model.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
/** Five restarts, each later than the one before. */
const GIVE_UP_MS_MAX = 40_000;

/** Starts while no file named `broken` is in the model's directory. */
const MODEL = `class TritonPythonModel:
    def initialize(self, args):
        if os.path.exists(os.path.join(args["model_repository"], "broken")):
            raise RuntimeError("the weights are gone")

    def execute(self, requests):
        if asked(requests) == "die":
            print("Traceback: the last words", file=sys.stderr)
            os._exit(4)
        return answers(requests, "alive")
`;

interface IndexRow {
  readonly name: string;
  readonly state: string;
  readonly reason: string;
}

describe('a Python model that keeps dying', { skip: pythonSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addPythonModel(repository, { name: 'at_start', source: MODEL });
    addPythonModel(repository, { name: 'at_work', source: MODEL });
    server = await startServer({ repository: repository.path, env: { NEREID_PYTHON: PYTHON } });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  async function indexRow(model: string): Promise<IndexRow> {
    const { text } = await call(server, { path: '/v2/repository/index', body: '' });
    return (JSON.parse(text) as IndexRow[]).find((row) => row.name === model)!;
  }

  const isUnavailable = async (model: string) => (await indexRow(model)).state === 'UNAVAILABLE';

  async function isReady(path: string): Promise<boolean> {
    return (await call(server, { path })).status === 200;
  }

  test('in initialize: unavailable with the traceback, and back when it starts again', async () => {
    assert.equal(await askText(server, 'at_start', ''), 'alive');
    writeFileSync(repository.at('at_start', 'broken'), '');
    assert.match(await askError(server, 'at_start', 'die'), /exited with code 4/);
    // Waits for the restart, which does not come.
    const traceback = `RuntimeError: the weights are gone\n\nAt:\n  ${repository.at('at_start', '1', 'model.py')}(15): initialize\n`;
    const waited = await ask(server, 'at_start', '');
    assert.equal(waited.status, 503);
    const refusal = `no instance of the model is running: ${traceback}`;
    assert.deepEqual(JSON.parse(waited.text), { error: refusal });
    assert.ok(await waitUntil(() => isUnavailable('at_start'), GIVE_UP_MS_MAX));
    assert.equal((await indexRow('at_start')).reason, `Internal: ${traceback}`);
    assert.equal(await isReady('/v2/models/at_start/ready'), false);
    assert.equal(await isReady('/v2/health/ready'), false);
    assert.equal(await askError(server, 'at_start', ''), refusal);
    rmSync(repository.at('at_start', 'broken'));
    assert.ok(await waitUntil(() => isReady('/v2/models/at_start/ready'), GIVE_UP_MS_MAX));
    assert.equal(await askText(server, 'at_start', ''), 'alive');
    assert.deepEqual(await indexRow('at_start'), { name: 'at_start', version: '1', state: 'READY' });
  });

  test('in execute: unavailable with what it printed last', async () => {
    let error = '';
    const isGivenUp = await waitUntil(async () => {
      error = await askError(server, 'at_work', 'die');
      return error.startsWith('no instance of the model is running');
    }, GIVE_UP_MS_MAX);
    assert.ok(isGivenUp, error);
    const death =
      "instance 'at_work_0_0' of model 'at_work' ended unexpectedly: host process exited with code 4; " +
      'it printed: Traceback: the last words';
    assert.equal(error, `no instance of the model is running: ${death}`);
    const { state, reason } = await indexRow('at_work');
    assert.deepEqual({ state, reason }, { state: 'UNAVAILABLE', reason: `Unavailable: ${death}` });
    assert.ok(await waitUntil(() => isReady('/v2/models/at_work/ready'), GIVE_UP_MS_MAX));
    assert.equal(await askText(server, 'at_work', ''), 'alive');
  });
});
