// What a config says about scheduling.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QUEUE_BYTES_MAX } from '../../domain/limits.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { type SchedulerPolicy, toSchedulerPolicy } from './scheduler-policy.ts';

function policyOf(text: string): SchedulerPolicy {
  return toSchedulerPolicy(parseModelConfig(text));
}

test('without dynamic_batching there is no batching, no priority and no limit', () => {
  const policy = policyOf('max_batch_size: 8');
  assert.equal(policy.isBatching, false);
  assert.equal(policy.isPrefetching, true);
  assert.equal(policy.isOrderPreserved, false);
  assert.equal(policy.queuePolicies.length, 1);
  assert.equal(policy.queuePolicies[0]!.timeoutMs, 0);
  assert.deepEqual([0, 1, 7].map(policy.levelOf), [0, 0, 0]);
});

test('dynamic_batching on a model that takes one row batches nothing', () => {
  assert.equal(policyOf('max_batch_size: 1 dynamic_batching {}').isBatching, false);
  assert.equal(policyOf('dynamic_batching {}').isBatching, false);
  assert.equal(policyOf('dynamic_batching {}').batchSizeMax, 1);
});

test('without preferred sizes the largest batch is the preferred one', () => {
  const policy = policyOf('max_batch_size: 8 dynamic_batching {}');
  assert.equal(policy.isBatching, true);
  assert.equal(policy.preferredSizeMax, 8);
  assert.equal(policy.preferredSizes.size, 0);
  assert.equal(policy.queueDelayMs, 0);
});

test('preferred sizes and the delay are taken over', () => {
  const policy = policyOf(
    'max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 2 ] max_queue_delay_microseconds: 1500 preserve_ordering: true }',
  );
  assert.deepEqual([...policy.preferredSizes], [4, 2]);
  assert.equal(policy.preferredSizeMax, 4);
  assert.equal(policy.queueDelayMs, 1.5);
  assert.equal(policy.isOrderPreserved, true);
  assert.equal(policy.isPrefetching, true);
});

test('priority 0 and one too large mean the default level; level 1 comes first', () => {
  const policy = policyOf(
    'max_batch_size: 8 dynamic_batching { priority_levels: 3 default_priority_level: 2 }',
  );
  assert.deepEqual([0, 1, 2, 3, 4].map(policy.levelOf), [1, 0, 1, 2, 1]);
  assert.equal(policy.isPrefetching, false);
});

test('a level has its own queue policy or the default one', () => {
  const policy = policyOf(`max_batch_size: 8 dynamic_batching {
    priority_levels: 2 default_priority_level: 1
    default_queue_policy { max_queue_size: 5 }
    priority_queue_policy { key: 2 value { max_queue_size: 7 } }
  }`);
  assert.deepEqual(
    policy.queuePolicies.map(({ requestsMax }) => requestsMax),
    [5, 7],
  );
});

test('a queue policy needs requests to stay in the queue until an instance is free', () => {
  const text = 'max_batch_size: 8 dynamic_batching { default_queue_policy { max_queue_size: 5 } }';
  assert.equal(policyOf(text).isPrefetching, false);
});

test('max_queue_bytes is a number of bytes above 0, or the bound of the server', () => {
  const limited = (text: string) =>
    policyOf(`name: "m" parameters { key: "max_queue_bytes" value { string_value: "${text}" } }`);
  assert.equal(policyOf('').queueBytesMax, QUEUE_BYTES_MAX);
  assert.equal(limited('1048576').queueBytesMax, 1048576);
  for (const text of ['', '0', '-1', '1e6', '1.5', '4 GiB', '99999999999999999999']) {
    assert.throws(() => limited(text), {
      code: 'INVALID_ARG',
      message: `parameter 'max_queue_bytes' of model 'm' must be a number of bytes above 0, got '${text}'`,
    });
  }
});
