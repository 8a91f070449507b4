// Real tritonclient.grpc programs, blocking and asyncio: what an existing Triton user's code does. The checks are
// written in Python (grpc_client.py, grpc_aio.py); each becomes one test here.
import { cpSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const EXAMPLES = inRoot('examples', 'models');

/** An identity model per datatype. */
const TYPES = 'BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 BF16 STRING'.split(' ');

const LEVELS_CONFIG = `dynamic_batching {
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy { default_timeout_microseconds: 60000000 allow_timeout_override: true }
}`;

describe('tritonclient.grpc', { skip: pythonSkip }, () => {
  let repository: TestRepository;
  let main: RunningServer;
  let explicit: RunningServer;
  const output = new Map<string, string>();

  before(async () => {
    repository = createRepository();
    for (const type of TYPES) {
      addIdentity(repository, { name: `echo_${type.toLowerCase()}`, type: `TYPE_${type}` });
    }
    addIdentity(repository, { name: 'slow', delayMs: 3000 });
    addIdentity(repository, { name: 'levels', delayMs: 100, config: LEVELS_CONFIG });
    cpSync(inRoot('test', 'e2e', 'grpc_models', 'request_info'), repository.at('request_info'), {
      recursive: true,
    });
    main = await startServer({
      repository: [EXAMPLES, repository.path],
      isGrpc: true,
      args: ['--grpc-header-forward-pattern=x-fwd-.*'],
      env: { NEREID_PYTHON: process.env.NEREID_TEST_PYTHON ?? '' },
    });
    explicit = await startServer({
      repository: EXAMPLES,
      isGrpc: true,
      args: [
        '--model-control-mode=explicit',
        '--grpc-infer-response-compression-level=high',
        '--grpc-http2-min-recv-ping-interval-without-data=10',
        '--grpc-keepalive-permit-without-calls=true',
      ],
    });
    const client = await runPython({
      script: 'e2e/grpc_client.py',
      args: [main.grpcAddress, explicit.grpcAddress],
    });
    output.set('client', client.output);
    output.set('aio', (await runPython({ script: 'e2e/grpc_aio.py', args: [main.grpcAddress] })).output);
  });
  after(async () => {
    await Promise.all([main?.stop(), explicit?.stop()]);
    repository?.remove();
  });

  testChecks('e2e/grpc_client.py', () => output.get('client') ?? '');
  describe('asyncio', () => testChecks('e2e/grpc_aio.py', () => output.get('aio') ?? ''));
});
