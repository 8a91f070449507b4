// The services beside inference, asked with Google's own Python packages: reflection (what grpcurl and its like use)
// and health. The checks are written in Python (reflection_client.py); each becomes one test here.
import { after, before, describe } from 'node:test';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/reflection_client.py';

describe('gRPC reflection and health', { skip: pythonSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let output = '';

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'echo' });
    server = await startServer({ repository: repository.path, isGrpc: true });
    output = (await runPython({ script: SCRIPT, args: [server.grpcAddress] })).output;
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  testChecks(SCRIPT, () => output);
});
