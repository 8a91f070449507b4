// Nine well-known architectures (AlexNet to VGG-19) from the PyPI package onnx, served with no config at all and
// compared with the tensors their authors expect, over binary and JSON, through the real client.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pythonSkip, runPython } from '../support/python.ts';
import { startServer } from '../support/server.ts';

test('nine networks without config answer what their authors expect', { skip: pythonSkip }, async () => {
  const repository = await mkdtemp(join(tmpdir(), 'nereid-light-'));
  try {
    const prepared = await runPython({ script: 'e2e/light_models.py', args: ['prepare', repository] });
    assert.equal(prepared.code, 0, prepared.output);
    // One at a time: all nine together would need gigabytes, for their weights are computed at load.
    const server = await startServer({ repository, args: ['--model-control-mode=explicit'] });
    try {
      const checked = await runPython({
        script: 'e2e/light_models.py',
        args: ['check', server.httpAddress],
        msMax: 240_000,
      });
      assert.equal(checked.code, 0, `${checked.output}\n--- server log\n${server.logs()}`);
      assert.match(checked.output, /all equal/);
    } finally {
      await server.stop();
    }
  } finally {
    await rm(repository, { recursive: true, force: true });
  }
});
