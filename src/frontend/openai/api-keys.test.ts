import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogSink } from '../../lib/log-sink.ts';
import { createLogger } from '../../lib/logger.ts';
import { until } from '../http/test-loopback.ts';
import { ApiKeys, parseKeys } from './api-keys.ts';

const SILENT: LogSink = { write: () => {}, flush: async () => {}, close: async () => {} };

function fileOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'nereid-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'keys');
}

test('keys are lines, comments are not', () => {
  assert.deepEqual(parseKeys('# a\n\n sk-1 \r\nsk-2#x\n'), ['sk-1', 'sk-2#x']);
});

test('the file is read again when it changes, and stays in use when it goes', async (t) => {
  const path = fileOf(t);
  writeFileSync(path, 'sk-1\n');
  const keys = await ApiKeys.open({ path, logger: createLogger({ sink: SILENT }), pollMs: 5 });
  t.after(() => keys.close());
  const isAccepted = (key: string) => keys.isAccepted(`Bearer ${key}`);
  assert.deepEqual([isAccepted('sk-1'), isAccepted('sk-2')], [true, false]);
  assert.deepEqual(
    [undefined, '', 'sk-1', 'Basic sk-1', 'Bearer', 'Bearer ', 'Bearer sk-1 sk-1'].map((header) =>
      keys.isAccepted(header),
    ),
    Array(7).fill(false),
  );
  assert.equal(keys.isAccepted('bearer  sk-1'), true);
  writeFileSync(path, 'sk-2\nsk-3\nschlüssel\n');
  await until(() => isAccepted('sk-3'));
  assert.deepEqual([isAccepted('sk-1'), isAccepted('sk-2')], [false, true]);
  assert.equal(isAccepted(Buffer.from('schlüssel').toString('latin1')), true);
  rmSync(path);
  await sleep(50);
  assert.equal(isAccepted('sk-2'), true);
  writeFileSync(path, 'sk-4\n');
  await until(() => isAccepted('sk-4'));
  assert.equal(isAccepted('sk-2'), false);
});

test('a file without keys, and none, do not start', async (t) => {
  const path = fileOf(t);
  const logger = createLogger({ sink: SILENT });
  await assert.rejects(ApiKeys.open({ path, logger }), /--openai-api-key-file: cannot read it/);
  writeFileSync(path, '# nothing\n');
  await assert.rejects(ApiKeys.open({ path, logger }), /has no key in it/);
});
