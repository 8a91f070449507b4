// Line formats, escaping, tables, levels at run time, and sinks that fail.
// The default format and the tables look as Triton 2.51 prints them.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { consoleSink, fileSink, type LogSink } from './log-sink.ts';
import { createLogger, type LoggerOptions } from './logger.ts';

const WALL_MS = Date.UTC(2026, 10, 15, 4, 12, 40, 874) + 0.978;

function recorded(options: LoggerOptions = {}) {
  const out: string[] = [];
  const err: string[] = [];
  const sink: LogSink = {
    write: (line, isError) => (isError ? err : out).push(line),
    flush: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const logger = createLogger({ sink, wallMs: () => WALL_MS, pid: 9600, isQuoted: true, ...options });
  return { logger, out, err };
}

test('the default format is that of Triton', () => {
  const { logger, out, err } = recorded();
  const http = logger.child('http_server');
  http.info('Started HTTPService at 0.0.0.0:8000');
  http.warn('a "quoted" word');
  http.error('broken');
  const time = '04:12:40.874';
  assert.match(
    out[0]!,
    /^I1115 04:12:40\.87497[78] 9600 http_server:1\] "Started HTTPService at 0\.0\.0\.0:8000"\n$/,
  );
  assert.ok(err[0]!.startsWith(`W1115 ${time}`));
  assert.ok(err[0]!.endsWith('] "a \\"quoted\\" word"\n'));
  assert.ok(err[1]!.startsWith(`E1115 ${time}`));
});

test('the ISO8601 format has seconds and the level after the time', () => {
  const { logger, out } = recorded({ settings: { format: 'ISO8601' }, isQuoted: false });
  logger.info('hello');
  assert.deepEqual(out, ['2026-11-15T04:12:40Z I 9600 nereid:1] hello\n']);
});

test('text of a client cannot forge a line or move the cursor', () => {
  for (const isQuoted of [true, false]) {
    const { logger, out } = recorded({ isQuoted });
    logger.info('a\nE1115 00:00:00.000000 1 x:1] forged\r\u001b[2J\u0085\u2028\u007f\u0000');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    assert.doesNotMatch(out[0]!.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    assert.ok(out[0]!.includes('a\\nE1115'));
    assert.ok(out[0]!.includes('\\u001b[2J'));
  }
});

test('levels are changed while the server runs, for children as well', () => {
  const { logger, out, err } = recorded();
  const child = logger.child('core');
  child.verbose(1, 'not yet');
  assert.equal(child.isVerbose(1), false);
  logger.update({ verboseLevel: 1, isWarning: false, isError: false });
  child.verbose(1, 'detail');
  child.verbose(2, 'too much');
  child.warn('no');
  child.error('no');
  logger.update({ isInfo: false });
  child.info('no');
  assert.equal(out.length, 1);
  assert.ok(out[0]!.startsWith('I'));
  assert.equal(err.length, 0);
  assert.deepEqual(logger.settings(), {
    logFile: '',
    isInfo: false,
    isWarning: false,
    isError: false,
    verboseLevel: 1,
    format: 'default',
  });
});

test('a table looks like the start-up tables of Triton', () => {
  const { logger, out } = recorded();
  const rows = [
    ['simple', '1', 'READY'],
    ['broken', '1', 'UNAVAILABLE: a\nb'],
  ];
  logger.child('server').table('', ['Model', 'Version', 'Status'], rows);
  const expected = [
    '] ',
    '+--------+---------+-------------------+',
    '| Model  | Version | Status            |',
    '+--------+---------+-------------------+',
    '| simple | 1       | READY             |',
    '| broken | 1       | UNAVAILABLE: a\\nb |',
    '+--------+---------+-------------------+',
    '',
    '',
  ];
  assert.equal(out[0]!.slice(out[0]!.indexOf(']')), expected.join('\n'));
});

test('a cell too wide for the table is broken over several lines', () => {
  const { logger, out } = recorded();
  logger.table('', ['Option', 'Value'], [['x', 'v'.repeat(1000)]]);
  const lines = out.join('').split('\n');
  // each column has half of 500 less the borders, which is 246; the first leaves 240 of them to the second
  assert.equal(lines[4], `| x      | ${'v'.repeat(486)} |`);
  assert.equal(lines[5], `|        | ${'v'.repeat(486)} |`);
  assert.equal(lines[6], `|        | ${'v'.repeat(28).padEnd(486)} |`);
});

test('a log file is appended to', async () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'nereid-log-'));
  try {
    const file = path.join(directory, 'server.log');
    for (const word of ['first', 'second']) {
      const logger = createLogger({ settings: { logFile: file }, isQuoted: false });
      logger.info(word);
      logger.error(word);
      await logger.flush();
      await logger.close();
    }
    const lines = readFileSync(file, 'utf8').split('\n');
    assert.deepEqual(
      lines.map((line) => line[0] ?? ''),
      ['I', 'E', 'I', 'E', ''],
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a broken pipe and a file that cannot be opened are survived', async () => {
  const broken = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('EPIPE'), { code: 'EPIPE' })),
  });
  const fine: string[] = [];
  const working = new Writable({
    write: (chunk, _encoding, done) => {
      fine.push(String(chunk));
      done();
    },
  });
  const logger = createLogger({ sink: consoleSink({ stdout: broken, stderr: working }) });
  logger.info('lost');
  await new Promise((resolve) => setImmediate(resolve));
  logger.info('lost as well');
  logger.error('kept');
  await logger.flush();
  assert.equal(fine.length, 1);

  const sink = fileSink(path.join(os.tmpdir(), 'no-such-directory', 'x', 'server.log'));
  sink.write('lost\n', false);
  await sink.flush();
  await sink.close();
});

test('a reader that does not read loses lines, not the server its memory', async () => {
  const pending: (() => void)[] = [];
  let received = '';
  const slow = new Writable({
    write: (chunk, _encoding, done) => {
      received += String(chunk);
      pending.push(done);
    },
  });
  const sink = consoleSink({ stdout: slow, stderr: slow });
  const line = `${'x'.repeat(1024 * 1024 - 1)}\n`;
  for (let i = 0; i < 40; i++) sink.write(line, false);
  assert.ok(slow.writableLength < 20 * 1024 * 1024);
  while (pending.length > 0) {
    pending.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  }
  sink.write('after\n', false);
  while (pending.length > 0) {
    pending.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.match(received, /\d+ log lines were dropped[^\n]*\nafter\n$/);
});
