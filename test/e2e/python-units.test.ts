// The unit tests of the Python host and of triton_python_backend_utils, in Python's own test runner.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pythonSkip, runPython } from '../support/python.ts';

test('the unit tests of the Python host', { skip: pythonSkip }, async () => {
  const { code, output } = await runPython({ script: 'python/run_tests.py', args: [] });
  assert.equal(code, 0, output);
  // Tests that need torch are skipped by name without it.
  assert.match(output, /\nOK(?: \(skipped=\d+\))?\n/);
});
