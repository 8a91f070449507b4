// A real tritonclient.http program against the bundled examples: what an existing Triton user's code does.
// The checks are written in Python (tritonclient_http.py); each becomes one test here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/tritonclient_http.py';
const MODELS = inRoot('examples', 'models');
const checks = [...readFileSync(inRoot('test', SCRIPT), 'utf8').matchAll(/^def (check_\w+)/gm)].map(
  (m) => m[1] ?? '',
);

describe('tritonclient.http', { skip: pythonSkip }, () => {
  let main: RunningServer;
  let explicit: RunningServer;
  let output = '';

  before(async () => {
    main = await startServer({ repository: MODELS });
    explicit = await startServer({ repository: MODELS, args: ['--model-control-mode=explicit'] });
    output = (await runPython({ script: SCRIPT, args: [main.httpAddress, explicit.httpAddress] })).output;
  });
  after(() => Promise.all([main?.stop(), explicit?.stop()]));

  for (const check of checks) {
    test(check.replace('check_', '').replaceAll('_', ' '), () => {
      const report = new RegExp(
        `^(?:not )?ok ${check}$[\\s\\S]*?(?=^(?:not )?ok check_|(?![\\s\\S]))`,
        'm',
      ).exec(output);
      assert.ok(report?.[0].startsWith('ok'), report?.[0] ?? output);
    });
  }
});
