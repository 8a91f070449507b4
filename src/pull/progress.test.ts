// The bar, the lines, and when each is written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { barText, lineText, Progress } from './progress.ts';

const HALF = { name: 'm.gguf', doneByteLength: 5e8, totalByteLength: 1e9, bytesPerSecond: 5e6 };

test('a bar fits the terminal', () => {
  const wide = barText(HALF, 120);
  assert.equal(
    wide,
    `m.gguf  [${'#'.repeat(15)}${'-'.repeat(15)}]   50 %  500.0 MB of 1.00 GB  5.00 MB/s, 1 min 40 s left`,
  );
  for (const columns of [20, 60, 70, 80]) assert.ok(barText(HALF, columns).length < columns, String(columns));
  assert.equal(barText({ ...HALF, totalByteLength: undefined }, 80), 'm.gguf  500.0 MB  5.00 MB/s');
});

test('a line says as much', () => {
  assert.equal(lineText(HALF), 'm.gguf: 500.0 MB of 1.00 GB, 5.00 MB/s, 1 min 40 s left');
  assert.equal(lineText({ ...HALF, bytesPerSecond: 0 }), 'm.gguf: 500.0 MB of 1.00 GB, 0 B/s');
});

function record(isTTY: boolean): { progress: Progress; written: string[]; wait(ms: number): void } {
  const written: string[] = [];
  let nowMs = 0;
  const terminal = { isTTY, columns: 80, write: (text: string) => written.push(text) };
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { progress: new Progress(terminal, () => nowMs), written, wait };
}

test('on a terminal the bar is drawn ten times a second and lines stand above it', () => {
  const { progress, written, wait } = record(true);
  progress.begin('m', 0);
  for (let ms = 0; ms < 1000; ms += 10) {
    progress.update(ms * 1000, 1e7);
    wait(10);
  }
  assert.equal(written.length, 10);
  assert.match(written[9]!, /^\r.*\[2Km {2}\[/);
  progress.say('hello');
  progress.say('again');
  assert.deepEqual(written.slice(10), ['\r\u001b[2Khello\n', 'again\n']);
});

test('elsewhere a line comes every ten seconds, with the speed of this run', () => {
  const { progress, written, wait } = record(false);
  progress.begin('m', 4e6);
  for (let second = 0; second < 25; second++) {
    wait(1000);
    progress.update(4e6 + (second + 1) * 1e6, 1e8);
  }
  assert.deepEqual(written, [
    'm: 14.0 MB of 100.0 MB, 1.00 MB/s, 1 min 26 s left\n',
    'm: 24.0 MB of 100.0 MB, 1.00 MB/s, 1 min 16 s left\n',
  ]);
});
