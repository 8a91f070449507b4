// Streams of a real tritonclient.grpc program, with decoupled models (repeat and square, and one in Python) and with
// ordinary ones. The checks are written in Python (grpc_stream.py); each becomes one test here.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/grpc_stream.py';

const DECOUPLED: Readonly<Record<string, string>> = {
  repeat: `backend: "repeat"
input [
  { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
  { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] }
]
output [
  { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] }
]`,
  square: `backend: "square"
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]`,
};

describe('tritonclient.grpc streams', { skip: pythonSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let output = '';

  before(async () => {
    repository = createRepository();
    for (const [name, config] of Object.entries(DECOUPLED)) {
      mkdirSync(repository.at(name, '1'), { recursive: true });
      writeFileSync(
        repository.at(name, 'config.pbtxt'),
        `${config}\nmodel_transaction_policy { decoupled: true }\n`,
      );
    }
    cpSync(inRoot('test', 'e2e', 'grpc_models', 'py_repeat'), repository.at('py_repeat'), {
      recursive: true,
    });
    addIdentity(repository, { name: 'quick' });
    addIdentity(repository, { name: 'late', delayMs: 400 });
    addIdentity(repository, { name: 'endless', delayMs: 60_000 });
    server = await startServer({
      repository: repository.path,
      isGrpc: true,
      env: { NEREID_PYTHON: process.env.NEREID_TEST_PYTHON ?? '' },
    });
    output = (await runPython({ script: SCRIPT, args: [server.grpcAddress] })).output;
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  testChecks(SCRIPT, () => output);
});
