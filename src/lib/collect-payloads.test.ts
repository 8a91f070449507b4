// Unit test of the early collection: it comes with every sixteen megabytes, later when more is in flight, behind an answer
// where there is one, and is one of young objects.

import assert from 'node:assert/strict';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { bytesUntilNext, noteAnswerLeft, notePayload } from './collect-payloads.ts';

const PAYLOAD_BYTES = 1024 * 1024;
const COUNT = 320;

/** Collections of young objects while so many payloads come. */
async function countCollections(payloadCount: number, afterEach: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as unknown as { detail: { kind: number } }[]) {
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) count++;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  for (let i = 0; i < payloadCount; i++) {
    // As the frame reader makes them.
    notePayload(Buffer.allocUnsafeSlow(PAYLOAD_BYTES).length);
    await afterEach();
  }
  await sleep(50);
  observer.disconnect();
  return count;
}

test('payloads that come and go are collected with the young objects, behind an answer', async () => {
  const count = await countCollections(COUNT, () => {
    noteAnswerLeft();
    return turn();
  });
  assert.ok(count >= COUNT / 16 - 1, `${count} collections for ${COUNT} MiB`);
});

test('without an answer it comes soon all the same', async () => {
  const count = await countCollections(64, () => sleep(3));
  assert.ok(count >= 3, `${count} collections for 64 MiB`);
});

test('the more is in flight the later it comes, and before V8 marks the heap', () => {
  const MEBIBYTE = 1024 * 1024;
  assert.equal(bytesUntilNext(0), 16 * MEBIBYTE);
  assert.equal(bytesUntilNext(30 * MEBIBYTE), 30 * MEBIBYTE);
  assert.equal(bytesUntilNext(500 * MEBIBYTE), 48 * MEBIBYTE);
});
