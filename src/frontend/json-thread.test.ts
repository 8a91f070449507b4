// What the thread for JSON does when a module is not there, and when the thread itself ends.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { StatusError } from '../domain/status.ts';
import { JsonThread } from './json-thread.ts';

const asModule = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`);
const DOUBLE = asModule('export const runTask = (n) => ({ value: n * 2, made: [] })');
const CRASH = asModule('export const runTask = () => { process.exit(3); }');

const thread = new JsonThread();
after(() => thread.close());

const isStatus = (code: string, pattern: RegExp) => (error: unknown) =>
  error instanceof StatusError && error.code === code && pattern.test(error.message);

test('tasks are answered each with its own result', async () => {
  const results = await Promise.all([1, 2, 3].map((n) => thread.run(DOUBLE, n, [])));
  assert.deepEqual(results, [2, 4, 6]);
});

test('what a task throws, and a module that is not there, are errors of that task alone', async () => {
  const throwing = asModule("export const runTask = () => { throw new Error('no cheese'); }");
  await assert.rejects(thread.run(throwing, 1, []), isStatus('INTERNAL', /no cheese/));
  await assert.rejects(thread.run(new URL('./absent.js', import.meta.url), 1, []), /absent/);
  assert.equal(await thread.run(DOUBLE, 4, []), 8);
});

test('bytes that are given away move', async () => {
  const echo = asModule('export const runTask = (bytes) => ({ value: bytes, made: [bytes] })');
  const bytes = new Uint8Array([1, 2, 3]);
  assert.deepEqual(await thread.run(echo, bytes, [bytes]), new Uint8Array([1, 2, 3]));
  assert.equal(bytes.length, 0);
});

test('a thread that ends fails its tasks, and the next one has a new thread', async () => {
  await assert.rejects(thread.run(CRASH, 1, []), isStatus('UNAVAILABLE', /thread for large JSON failed/));
  assert.equal(await thread.run(DOUBLE, 5, []), 10);
});
