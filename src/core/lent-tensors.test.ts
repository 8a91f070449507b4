// Only who answers a client may learn that nobody else refers to the tensors of a request: whatever stands between a model
// and its client may keep them, and must not pass that on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CachingSink } from './cache/caching-sink.ts';
import { OrderedSink } from './cache/ordered-sink.ts';
import { StepRun } from './ensemble/step-run.ts';
import { HostCallSink } from './model/host-call-sink.ts';
import { RouterSink } from './router/router-sink.ts';
import { SharedMemorySink } from './shm/shared-memory-sink.ts';

test('what stands before a sink does not own the tensors', () => {
  for (const sink of [CachingSink, OrderedSink, StepRun, HostCallSink, RouterSink, SharedMemorySink]) {
    assert.ok(!('own' in sink.prototype), `${sink.name} says that nobody refers to the tensors`);
  }
});
