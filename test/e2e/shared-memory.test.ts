// A real tritonclient program whose tensors lie in shared memory, over each protocol that is served.
// The checks are written in Python (shared_memory.py); each becomes one test here.
import { existsSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { addExample, addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/shared_memory.py';
const shmSkip = existsSync('/dev/shm') ? pythonSkip : 'this platform has no /dev/shm';

describe('shared memory', { skip: shmSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addExample(repository, { name: 'add_sub_int32', example: 'add_sub_int32' });
    addIdentity(repository, { name: 'echo' });
    addIdentity(repository, { name: 'texts', type: 'TYPE_STRING' });
    server = await startServer({ repository: repository.path, isGrpc: true });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  for (const protocol of ['http', 'grpc'] as const) {
    describe(`over ${protocol}`, () => {
      let output = '';
      before(async () => {
        const url = protocol === 'http' ? server.httpAddress : server.grpcAddress;
        output = (await runPython({ script: SCRIPT, args: [protocol, url] })).output;
      });
      testChecks(SCRIPT, () => output);
    });
  }
});
