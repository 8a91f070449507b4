// The clients of examples/clients, run as the README tells a newcomer to, each against the bundled models.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { inRoot } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const run = promisify(execFile);

describe('the example clients', () => {
  let server: RunningServer;
  let env: Record<string, string>;

  before(async () => {
    server = await startServer({ repository: inRoot('examples', 'models'), isGrpc: true });
    env = { NEREID_URL: server.httpAddress, NEREID_GRPC_URL: server.grpcAddress };
  });
  after(() => server?.stop());

  test('classify.sh reads a seven', {
    skip: process.platform === 'win32' && 'needs a POSIX shell',
  }, async () => {
    const { stdout } = await run(inRoot('examples', 'clients', 'classify.sh'), ['seven'], {
      env: { ...process.env, ...env },
    });
    const answer = JSON.parse(stdout) as { outputs: { data: string[] }[] };
    assert.match(answer.outputs[0]?.data[0] ?? '', /:7:seven$/);
  });

  test('classify.py reads a seven and a two', { skip: pythonSkip }, async () => {
    const images = ['examples/images/seven.png', 'examples/images/two.png'];
    const { code, output } = await runPython({
      script: '../examples/clients/classify.py',
      args: images,
      env,
    });
    assert.equal(code, 0, output);
    assert.match(output, /seven\.png\n {2}seven [\s\S]*two\.png\n {2}two /);
  });

  test('ticker.py counts down over a gRPC stream', { skip: pythonSkip }, async () => {
    const { code, output } = await runPython({
      script: '../examples/clients/ticker.py',
      args: ['3', '2', '1'],
      env,
    });
    assert.equal(code, 0, output);
    assert.equal(output.trim(), '3\n2\n1');
  });

  test('the ticker counts down as server-sent events', async () => {
    const response = await fetch(`http://${server.httpAddress}/v2/models/ticker/generate_stream`, {
      method: 'POST',
      body: '{"IN":[3,2,1],"DELAY":[30,30,30],"WAIT":0}',
    });
    const events = (await response.text()).trim().split('\n\n');
    assert.deepEqual(
      events.map((event) => (JSON.parse(event.slice('data: '.length)) as { OUT: number }).OUT),
      [3, 2, 1],
    );
  });

  test('classify.ts reads a seven', async () => {
    // Compiled with the tests; Node from 22.6 on runs the .ts file itself.
    const args = ['dist-test/examples/clients/classify.js', 'examples/images/seven.png'];
    const { stdout } = await run(process.execPath, args, { cwd: inRoot(), env: { ...process.env, ...env } });
    assert.match(stdout, /seven\.png\n {2}seven /);
  });
});
