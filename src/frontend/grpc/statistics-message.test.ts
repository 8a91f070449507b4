// A snapshot becomes the message, and the message survives the wire.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DurationSnapshot, ModelStatisticsSnapshot } from '../../domain/statistics.ts';
import { decodeMessage } from '../../wire/v2-proto/decode-message.ts';
import { encodeMessage } from '../../wire/v2-proto/encode-message.ts';
import { statisticsMessage } from './statistics-message.ts';

let next = 1;
/** No two are equal, so that none can stand for another. */
function duration(): DurationSnapshot {
  return { count: next++, ns: next++ * 1000 };
}

const SNAPSHOT: ModelStatisticsSnapshot = {
  name: 'm',
  version: 3,
  lastInferenceMs: 1_700_000_000_123,
  inferenceCount: 70,
  executionCount: 60,
  success: duration(),
  fail: duration(),
  queue: duration(),
  computeInput: duration(),
  computeInfer: duration(),
  computeOutput: duration(),
  cacheHit: duration(),
  cacheMiss: duration(),
  responseStats: {
    '0': {
      computeInfer: duration(),
      computeOutput: duration(),
      success: duration(),
      fail: duration(),
      emptyResponse: duration(),
      cancel: duration(),
    },
  },
  batchStats: [
    { batchSize: 1, computeInput: duration(), computeInfer: duration(), computeOutput: duration() },
    { batchSize: 8, computeInput: duration(), computeInfer: duration(), computeOutput: duration() },
  ],
  memoryUsage: [{ type: 'GPU', id: 1, byteSize: 2 ** 40 }],
};

test('every number is in its own field', () => {
  const message = statisticsMessage(SNAPSHOT);
  assert.deepEqual(message, {
    name: 'm',
    version: '3',
    last_inference: SNAPSHOT.lastInferenceMs,
    inference_count: 70,
    execution_count: 60,
    inference_stats: {
      success: SNAPSHOT.success,
      fail: SNAPSHOT.fail,
      queue: SNAPSHOT.queue,
      compute_input: SNAPSHOT.computeInput,
      compute_infer: SNAPSHOT.computeInfer,
      compute_output: SNAPSHOT.computeOutput,
      cache_hit: SNAPSHOT.cacheHit,
      cache_miss: SNAPSHOT.cacheMiss,
    },
    batch_stats: SNAPSHOT.batchStats.map((batch) => ({
      batch_size: batch.batchSize,
      compute_input: batch.computeInput,
      compute_infer: batch.computeInfer,
      compute_output: batch.computeOutput,
    })),
    memory_usage: [{ type: 'GPU', id: 1, byte_size: 2 ** 40 }],
    response_stats: {
      '0': {
        compute_infer: SNAPSHOT.responseStats['0']?.computeInfer,
        compute_output: SNAPSHOT.responseStats['0']?.computeOutput,
        success: SNAPSHOT.responseStats['0']?.success,
        fail: SNAPSHOT.responseStats['0']?.fail,
        empty_response: SNAPSHOT.responseStats['0']?.emptyResponse,
        cancel: SNAPSHOT.responseStats['0']?.cancel,
      },
    },
  });
});

test('the message survives the wire', () => {
  const sent = { model_stats: [statisticsMessage(SNAPSHOT)] };
  const received = decodeMessage('ModelStatisticsResponse', encodeMessage('ModelStatisticsResponse', sent));
  const asNumbers = JSON.parse(
    JSON.stringify(received, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
  ) as unknown;
  assert.deepEqual(asNumbers, JSON.parse(JSON.stringify(sent)));
});
