// A llama model through ModelStreamInfer, with a real tritonclient.grpc program. The checks are written in Python
// (llama_grpc.py); each becomes one test here.
import { after, before, describe } from 'node:test';
import { addLlama, findGguf } from '../support/llama.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/llama_grpc.py';
const gguf = pythonSkip === false ? await findGguf() : { reason: pythonSkip };

describe('a llama model through tritonclient.grpc', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let output = '';

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    const parameters = { threads: 1, context_length: 512, prefix_cache: 'false' };
    addLlama(repository, { name: 'smol', file: gguf.file, parameters });
    server = await startServer({ repository: repository.path, isGrpc: true });
    output = (await runPython({ script: SCRIPT, args: [server.grpcAddress, server.metricsUrl] })).output;
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  testChecks(SCRIPT, () => output);
});
