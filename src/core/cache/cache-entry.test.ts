import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ParameterValue } from '../../domain/request.ts';
import { planEntry, readEntry, readEntryInSteps, writeEntry, writeEntryInSteps } from './cache-entry.ts';
import { keyOf } from './cache-key.ts';
import { output, requestOf } from './test-served.ts';

const key = keyOf('m:1:a', requestOf([1, 2]));
const parameters = new Map<string, ParameterValue>([
  ['text', 'ü'],
  ['truth', false],
  ['int64', 2n ** 62n],
  ['double', -0],
]);
const response = { parameters, outputs: [output('Y', [3, 4, 5]), output('EMPTY', [])] };

test('an entry gives back the answer it was made of, as views on itself', async () => {
  const entry = writeEntry(planEntry(key, response));
  for (const read of [readEntry(entry, key), await readEntryInSteps(entry, key)]) {
    assert.deepEqual(read, response);
    assert.equal(read!.outputs[0]!.data[0]!.buffer, entry.buffer);
  }
  assert.deepEqual(await writeEntryInSteps(planEntry(key, response)), entry);
});

test('an entry has memory of its own and nothing beside it', () => {
  const plan = planEntry(key, { parameters: undefined, outputs: [] });
  const entry = writeEntry(plan);
  assert.equal(entry.length, plan.byteLength);
  assert.equal(entry.buffer.byteLength, entry.length);
  assert.deepEqual(readEntry(entry, key), { parameters: undefined, outputs: [] });
});

test('the answer to another request is no answer, however alike', async () => {
  const entry = writeEntry(planEntry(key, response));
  for (const values of [[1, 3], [1, 2, 3], [1]]) {
    const other = keyOf('m:1:a', requestOf(values));
    assert.equal(readEntry(entry, other), undefined);
    assert.equal(await readEntryInSteps(entry, other), undefined);
  }
});

test('bytes that are no entry are not read', () => {
  const entry = writeEntry(planEntry(key, response));
  assert.equal(readEntry(Buffer.alloc(0), key), undefined);
  assert.equal(readEntry(Buffer.alloc(11), key), undefined);
  for (let length = 0; length < entry.length; length++) {
    assert.equal(readEntry(entry.subarray(0, length), key), undefined, `cut to ${length} bytes`);
  }
  const newer = Buffer.from(entry);
  newer[0] = 2;
  assert.equal(readEntry(newer, key), undefined);
  const broken = Buffer.from(entry);
  broken[11] = 0x5b;
  assert.equal(readEntry(broken, key), undefined);
});
