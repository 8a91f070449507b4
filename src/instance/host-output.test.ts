import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { HostOutput } from './host-output.ts';

function createOutput() {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const lines: string[] = [];
  const output = new HostOutput({ stdout, stderr, onLine: (level, line) => lines.push(`${level} ${line}`) });
  return { stdout, stderr, lines, output };
}

test('lines come one by one, whatever the pieces', async () => {
  const { stdout, stderr, lines } = createOutput();
  stdout.write('one\ntw');
  stdout.write('o\n\n   \nthree');
  stderr.write('bad\n');
  await turn();
  assert.deepEqual(lines, ['info one', 'info two', 'warning bad']);
  stdout.end();
  await turn();
  assert.equal(lines.at(-1), 'info three');
});

test('the last words are those of standard error, in whole lines', async () => {
  const { stdout, stderr, output } = createOutput();
  assert.equal(output.lastWords(), '');
  stdout.write('not this\n');
  stderr.write('Traceback\n  line\nValueError: no\n');
  await turn();
  assert.equal(output.lastWords(), 'Traceback\n  line\nValueError: no');
  for (let i = 0; i < 500; i++) stderr.write(`line number ${i}\n`);
  await turn();
  const words = output.lastWords().split('\n');
  assert.match(words[0]!, /^line number \d+$/);
  assert.equal(words.at(-1), 'line number 499');
});

test('endless printing is read slowly, and the rest when the process has ended', async () => {
  const { stdout, lines, output } = createOutput();
  const block = `${'x'.repeat(99)}\n`.repeat(100);
  let isFull = false;
  for (let i = 0; i < 100 && !isFull; i++) {
    isFull = !stdout.write(block) && stdout.isPaused();
    await turn();
  }
  assert.ok(isFull, 'the writer was never made to wait');
  const readBefore = lines.length;
  assert.ok(readBefore < 2000, `${readBefore} lines were read at once`);
  output.end();
  await turn();
  assert.ok(lines.length > readBefore);
});
