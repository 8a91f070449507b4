// When another try is made, after which wait, and when not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PassingError, PullError } from './pull-error.ts';
import { type RetryRules, withRetries } from './with-retries.ts';

function rules(waits: number[], signal = new AbortController().signal): RetryRules {
  return { triesMax: 4, waitMs: 1, signal, onWait: (_, waitMs) => waits.push(waitMs) };
}

test('waits grow, and the last failure is told', async () => {
  const waits: number[] = [];
  const fail = () => Promise.reject(new PassingError('busy'));
  await assert.rejects(withRetries(rules(waits), fail), /^PullError: busy \(after 4 tries\)$/);
  assert.deepEqual(waits, [1, 2, 4]);
});

test('what the server asks for is waited', async () => {
  const waits: number[] = [];
  let count = 0;
  const task = async () => {
    if (count++ === 0) throw new PassingError('busy', { waitMs: 3 });
    return 'done';
  };
  assert.equal(await withRetries(rules(waits), task), 'done');
  assert.deepEqual(waits, [3]);
});

test('progress begins the count anew', async () => {
  const waits: number[] = [];
  let byteLength = 0;
  const task = async () => {
    if (byteLength === 12) return byteLength;
    byteLength++;
    throw new PassingError('lost');
  };
  assert.equal(await withRetries(rules(waits), task, () => byteLength), 12);
  assert.deepEqual(waits, Array(12).fill(1));
});

test('other failures and the end of the user’s patience are final', async () => {
  const waits: number[] = [];
  await assert.rejects(
    withRetries(rules(waits), () => Promise.reject(new PullError('wrong'))),
    /^PullError: wrong$/,
  );
  const stopping = new AbortController();
  const task = () => {
    stopping.abort();
    return Promise.reject(new PassingError('lost'));
  };
  await assert.rejects(withRetries(rules(waits, stopping.signal), task), { name: 'AbortError' });
  assert.deepEqual(waits, []);
});
