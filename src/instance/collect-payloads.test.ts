// Unit test of the early collection: payloads that nobody holds are gone long before V8 would look for them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { notePayload } from './collect-payloads.ts';

const PAYLOAD_BYTES = 1024 * 1024;
const COUNT = 200;

test('payloads that came and went do not pile up', async () => {
  let highestBytes = 0;
  for (let i = 0; i < COUNT; i++) {
    // As the frame reader makes them.
    const payload = Buffer.allocUnsafeSlow(PAYLOAD_BYTES);
    notePayload(payload.length);
    await turn();
    highestBytes = Math.max(highestBytes, process.memoryUsage().arrayBuffers);
  }
  // Without the collection some sixty megabytes wait for V8's own.
  assert.ok(highestBytes < 40 * PAYLOAD_BYTES, `${highestBytes} bytes at most`);
});
