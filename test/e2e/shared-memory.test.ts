// A real tritonclient program whose tensors lie in shared memory, over each protocol that is served.
// The checks are written in Python (shared_memory.py); each becomes one test here.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { addExample, addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/shared_memory.py';
const shmSkip = existsSync('/dev/shm') ? pythonSkip : 'this platform has no /dev/shm';
const checks = [...readFileSync(inRoot('test', SCRIPT), 'utf8').matchAll(/^def (check_\w+)/gm)].map(
  (m) => m[1] ?? '',
);

describe('shared memory over http', { skip: shmSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let output = '';

  before(async () => {
    repository = createRepository();
    addExample(repository, { name: 'add_sub_int32', example: 'add_sub_int32' });
    addIdentity(repository, { name: 'echo' });
    addIdentity(repository, { name: 'texts', type: 'TYPE_STRING' });
    server = await startServer({ repository: repository.path });
    output = (await runPython({ script: SCRIPT, args: ['http', server.httpAddress] })).output;
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

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
