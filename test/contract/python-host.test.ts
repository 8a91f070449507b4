// The Python host under the contract of host.case.ts, and what it does with decoupled models.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { StatusError } from '../../src/domain/status.ts';
import type { HostCommand } from '../../src/instance/host-process.ts';
import { inRoot } from '../support/paths.ts';
import { pythonSkip } from '../support/python.ts';
import { describeHost } from './host.case.ts';
import { WatchedInstance } from './watched-instance.ts';

const HOST = inRoot('python', 'nereid_host', '__main__.py');
const MODEL = inRoot('test', 'contract', 'identity_model.py');
const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
const COMMAND: HostCommand = { file: PYTHON, args: [HOST, MODEL] };
const DECOUPLED = 'model_transaction_policy { decoupled: true }';
/** As in identity_model.py. */
const PART_COUNT = 300;

if (pythonSkip === false) {
  const directory = mkdtempSync(join(tmpdir(), 'nereid-python-host-'));
  after(() => rmSync(directory, { recursive: true }));
  describeHost({
    name: 'python host',
    command: COMMAND,
    flagPath: join(directory, 'blocked'),
    blockedCommand: (flagPath) => {
      const [flag, host, model] = [flagPath, HOST, MODEL].map((text) => JSON.stringify(text));
      const script = `import os, runpy, sys
if os.path.exists(${flag}): sys.exit(3)
sys.argv = [${host}, ${model}]
runpy.run_path(${host}, run_name="__main__")`;
      return { file: PYTHON, args: ['-c', script] };
    },
  });
}

async function withDecoupled(body: (watched: WatchedInstance) => Promise<void>): Promise<void> {
  const watched = new WatchedInstance(COMMAND, DECOUPLED);
  try {
    await watched.start();
    const data = [Buffer.from([1, 0, 0, 0])];
    const inputs = [0, 1].map((index) => ({ index, shape: [1, 1], data, byteLength: 4 }));
    watched.instance.execute(1, [{ inputs, requestedOutputs: [1] }]);
    await body(watched);
  } finally {
    await watched.instance.stop();
  }
}

async function until(isTrue: () => boolean, what: string): Promise<void> {
  for (const endMs = performance.now() + 10_000; performance.now() < endMs; await sleep(5))
    if (isTrue()) return;
  assert.fail(`no sign of ${what}`);
}

test(
  'python host: parts come in order, with the requested output alone, and the last one is final',
  {
    skip: pythonSkip,
  },
  () =>
    withDecoupled(async ({ parts, lost }) => {
      await until(() => parts.at(-1)?.isFinal === true, 'the final part');
      assert.equal(parts.length, PART_COUNT + 1);
      assert.equal(parts.filter((part) => part.isFinal).length, 1);
      const result = parts[0]?.result;
      assert.ok(result !== undefined && typeof result !== 'symbol' && !(result instanceof StatusError));
      assert.deepEqual(
        result.outputs.map(({ index, shape }) => ({ index, shape })),
        [{ index: 1, shape: [1, 1] }],
      );
      assert.equal(lost.length, 0);
    }),
);

test(
  'python host: a paused request sends nothing until it is resumed, and loses nothing',
  {
    skip: pythonSkip,
  },
  () =>
    withDecoupled(async ({ instance, parts }) => {
      await until(() => parts.length > 0, 'the first part');
      instance.setPaused(1, 0, true);
      await sleep(100);
      const countPaused = parts.length;
      assert.ok(countPaused < PART_COUNT);
      await sleep(200);
      assert.equal(parts.length, countPaused);
      instance.setPaused(1, 0, false);
      await until(() => parts.at(-1)?.isFinal === true, 'the final part');
      assert.equal(parts.length, PART_COUNT + 1);
    }),
);

test('python host: a cancelled request that is paused ends', { skip: pythonSkip }, () =>
  withDecoupled(async ({ instance, parts }) => {
    await until(() => parts.length > 0, 'the first part');
    instance.setPaused(1, 0, true);
    instance.cancel(1, 0);
    await until(() => parts.at(-1)?.isFinal === true, 'the final part');
    assert.ok(parts.length < PART_COUNT);
  }),
);
