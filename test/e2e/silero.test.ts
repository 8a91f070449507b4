// A real recurrent network as a sequence model with implicit state: 32 audio streams at once through the Silero voice
// activity detector, each answer compared with the network run alone. The package and onnxruntime for Python are
// fetched once into the user's cache; where they cannot be had the test is skipped with pip's reason.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findPackages } from '../support/pip-packages.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { createRepository } from '../support/repository.ts';
import { startServer } from '../support/server.ts';

const VERSION = '6.2.3';
/** Without their dependencies: silero-vad wants torch, of which nothing is used here. */
const PACKAGES = [`silero-vad==${VERSION}`, 'onnxruntime', 'flatbuffers', 'packaging'];

test('32 streams of audio through Silero VAD are what the network alone answers', {
  skip: pythonSkip,
}, async (t) => {
  const packages = await findPackages('silero-vad', PACKAGES);
  if ('reason' in packages) {
    t.skip(packages.reason);
    return;
  }
  const env = { PYTHONPATH: packages.folder };
  const file = join(packages.folder, 'silero_vad', 'data', 'silero_vad.onnx');
  const repository = createRepository();
  try {
    const prepared = await runPython({
      script: 'e2e/silero.py',
      args: ['prepare', repository.path, file],
      env,
    });
    assert.equal(prepared.code, 0, prepared.output);
    const server = await startServer({ repository: repository.path, isGrpc: true });
    try {
      const checked = await runPython({
        script: 'e2e/silero.py',
        args: ['check', server.grpcAddress, file],
        env,
      });
      assert.equal(checked.code, 0, `${checked.output}\n--- server log\n${server.logs()}`);
      assert.match(checked.output, /all equal/);
      t.diagnostic(checked.output.trim());
    } finally {
      await server.stop();
    }
  } finally {
    repository.remove();
  }
});
