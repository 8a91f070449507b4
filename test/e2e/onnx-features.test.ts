// ONNX files that use less common features, served and called through the real client: external data files, another
// file name, optimisation levels and thread parameters, outputs of unknown shape, FP16, absent providers.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pythonSkip, runPython } from '../support/python.ts';
import { startServer } from '../support/server.ts';

test('less common features of ONNX models', { skip: pythonSkip }, async (t) => {
  const repository = mkdtempSync(join(tmpdir(), 'nereid-onnx-'));
  t.after(() => rmSync(repository, { recursive: true, force: true }));
  const made = await runPython({ script: 'e2e/onnx_features.py', args: ['make', repository] });
  assert.equal(made.code, 0, made.output);
  const server = await startServer({ repository, args: ['--exit-on-error=false'] });
  t.after(() => server.stop());
  const checked = await runPython({ script: 'e2e/onnx_features.py', args: ['check', server.httpAddress] });
  assert.equal(checked.code, 0, checked.output);
});
