// The defaults that loading writes into a config, as recorded from a real server.

import assert from 'node:assert/strict';
import test from 'node:test';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { type InstanceGroupContext, normalizeConfig, normalizeInstanceGroups } from './normalize-config.ts';

function normalize(text: string) {
  const before = parseModelConfig(text);
  const copy = structuredClone(before);
  const config = normalizeConfig(before);
  assert.deepEqual(before, copy, 'the argument must stay as it was');
  assert.deepEqual(normalizeConfig(config), config, 'a second time changes nothing');
  return config;
}

test('version policy and pinned memory have defaults', () => {
  const config = normalize('backend: "onnxruntime"');
  assert.deepEqual(config.version_policy, { latest: { num_versions: 1 } });
  assert.deepEqual(config.optimization, {
    priority: 'PRIORITY_DEFAULT',
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
    input_pinned_memory: { enable: true },
    output_pinned_memory: { enable: true },
  });
  const given = normalize(
    'version_policy { all { } } optimization { input_pinned_memory { enable: false } }',
  );
  assert.deepEqual(given.version_policy, { all: {} });
  assert.deepEqual(given.optimization?.input_pinned_memory, { enable: false });
  assert.deepEqual(given.optimization?.output_pinned_memory, { enable: true });
});

test('an ensemble gets no optimization', () => {
  assert.equal(normalize('platform: "ensemble" ensemble_scheduling { }').optimization, undefined);
});

test('preferred sizes default to the largest batch', () => {
  assert.deepEqual(
    normalize('max_batch_size: 8 dynamic_batching { }').dynamic_batching?.preferred_batch_size,
    [8],
  );
  assert.deepEqual(normalize('dynamic_batching { }').dynamic_batching?.preferred_batch_size, []);
  const sequence = normalize('max_batch_size: 4 sequence_batching { oldest { } }').sequence_batching;
  assert.deepEqual(sequence?.oldest?.preferred_batch_size, [4]);
  assert.equal(sequence?.max_sequence_idle_microseconds, 1_000_000);
  const given = normalize('sequence_batching { max_sequence_idle_microseconds: 5 }').sequence_batching;
  assert.equal(given?.max_sequence_idle_microseconds, 5);
});

function groups(text: string, context: InstanceGroupContext) {
  const before = parseModelConfig(`name: "m" ${text}`);
  const copy = structuredClone(before);
  const config = normalizeInstanceGroups(before, context);
  assert.deepEqual(before, copy, 'the argument must stay as it was');
  return config.instance_group.map((g) => `${g.name} ${g.kind} ${g.count} [${g.gpus}]`);
}

test('instance groups: names, kinds and counts', () => {
  const cpu = { gpuCount: 0, isAutoGpu: true };
  assert.deepEqual(groups('backend: "onnxruntime"', cpu), ['m KIND_CPU 2 []']);
  assert.deepEqual(groups('backend: "python"', cpu), ['m KIND_CPU 1 []']);
  assert.deepEqual(groups('backend: "onnxruntime" instance_group { kind: KIND_CPU count: 1 }', cpu), [
    'm_0 KIND_CPU 1 []',
  ]);
  assert.deepEqual(groups('backend: "python" instance_group [ { name: "a" }, { kind: KIND_MODEL } ]', cpu), [
    'a KIND_CPU 1 []',
    'm_1 KIND_MODEL 1 []',
  ]);
});

test('instance groups with GPUs', () => {
  const two = { gpuCount: 2, isAutoGpu: true };
  assert.deepEqual(groups('backend: "onnxruntime"', two), ['m KIND_GPU 1 [0,1]']);
  assert.deepEqual(groups('backend: "onnxruntime" instance_group { gpus: 1 }', two), ['m_0 KIND_GPU 1 [1]']);
  assert.deepEqual(groups('backend: "onnxruntime" instance_group { gpus: 5 }', two), ['m_0 KIND_CPU 2 [5]']);
});

test('a backend may prefer a kind and a count', () => {
  const context: InstanceGroupContext = {
    gpuCount: 1,
    isAutoGpu: true,
    backendDefaults: { kind: 'KIND_CPU', count: 3 },
  };
  assert.deepEqual(groups('backend: "fil"', context), ['m KIND_CPU 3 []']);
  assert.deepEqual(groups('platform: "ensemble" ensemble_scheduling { }', context), []);
});

test('KIND_AUTO stays on the CPU where the library of the backend is a CPU build', () => {
  const bundled = { gpuCount: 2, isAutoGpu: false };
  const config = parseModelConfig('name: "m" backend: "onnxruntime"');
  assert.equal(normalizeInstanceGroups(config, bundled).instance_group[0]?.kind, 'KIND_CPU');
  const listed = parseModelConfig('name: "m" backend: "onnxruntime" instance_group [ { gpus: [ 1 ] } ]');
  assert.equal(normalizeInstanceGroups(listed, bundled).instance_group[0]?.kind, 'KIND_GPU');
});
