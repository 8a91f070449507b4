// What is said of settings that break a rule, of devices, schedulers and warm-up.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { internal, invalidArgument, type StatusError } from '../../../domain/status.ts';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import { completeBackend } from '../complete-backend.ts';
import { normalizeConfig, normalizeInstanceGroups } from '../normalize-config.ts';
import { validateInstanceGroups, validateIoConfig, validateModelConfig } from '../validate-config.ts';
import { diagnose } from './diagnose.ts';
import { factsOf, IO, NOTHING, read, thrownBy } from './test-facts.ts';

/** What the server's own checks say of this config. */
function refusalOf(configText: string): StatusError {
  return thrownBy(() => {
    const given = parseModelConfig(configText);
    const config = normalizeConfig(completeBackend(given, { modelName: 'm', versionEntries: [] }));
    validateModelConfig(config);
    validateIoConfig(config);
    validateInstanceGroups(normalizeInstanceGroups(config, { gpuCount: 0, isAutoGpu: true }), { gpuIds: [] });
  });
}

/** A config that the server's rules refuse, and what the explanation says. */
const REFUSED: readonly (readonly [config: string, says: RegExp])[] = [
  ['max_batch_size: -1', /max_batch_size is -1/],
  [
    'max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 2, 8 ] }',
    /\[ 2, 8 \] does not fit max_batch_size 4[\s\S]*preferred_batch_size: \[ 2 \][\s\S]*max_batch_size: 8/,
  ],
  ['dynamic_batching { preferred_batch_size: [ 8 ] }', /max_batch_size is 0[\s\S]*max_batch_size: 8/],
  [
    'max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 3 }',
    /default_priority_level is 3, with 2[\s\S]*default_priority_level: 2/,
  ],
  [
    'max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 5 value { } } }',
    /outside 1 to 2/,
  ],
  [
    'max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }',
    /remove preserve_ordering or the priorities/,
  ],
  [`instance_group [ { kind: KIND_GPU } ] ${IO}`, /this machine has none[\s\S]*kind: KIND_CPU/],
  [`instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ] ${IO}`, /KIND_CPU and lists gpus/],
  [`instance_group [ { kind: KIND_CPU profile: "1" } ] ${IO}`, /profiles belong to TensorRT/],
  ['platform: "tensorrt_plan"', /does not belong to backend "onnxruntime"/],
  [
    'response_cache { enable: true } model_transaction_policy { decoupled: true }',
    /remove {2}response_cache/,
  ],
  ['input { name: "X" dims: [ 2 ] }', /input 'X' has no data_type[\s\S]*data_type: TYPE_FP32/],
  ['output { name: "Y" data_type: TYPE_FP32 }', /output 'Y' has no dims/],
  ['input { data_type: TYPE_FP32 dims: [ 2 ] }', /input of the config has no name/],
  ['input { name: "X" data_type: TYPE_FP32 dims: [ 0 ] }', /0 or below -1/],
  [
    'input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] reshape { shape: [ 3 ] } }',
    /from dims \[ 2 \] to \[ 3 \]/,
  ],
  ['input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] reshape { } }', /reshaped to a scalar/],
  ['input { name: "X" data_type: TYPE_FP32 dims: [ 1 ] format: FORMAT_NHWC }', /does not have 3 dims/],
];

describe('a config that breaks a rule', () => {
  for (const [config, says] of REFUSED) {
    test(config.slice(0, 80), () => {
      const text = `backend: "onnxruntime" ${config}`;
      assert.match(read(refusalOf(text), factsOf(text)), says);
    });
  }

  test('a platform nobody knows', () => {
    const text = 'platform: "something"';
    assert.match(read(refusalOf(text), factsOf(text)), /platform "something" is not known/);
  });
});

describe('schedulers and warm-up', () => {
  test('an ensemble that does not fit together', () => {
    const error = invalidArgument("ensemble input 'X' for ensemble m' is not used");
    assert.match(read(error, factsOf('')), /do not fit together/);
  });

  test('warm-up', () => {
    const open = invalidArgument(
      "warmup setting expects all variable-size dimensions are specified for input 'X'",
    );
    assert.match(read(open, factsOf('')), /size of input 'X' open/);
    const name = invalidArgument("unexpected inference input 'Z' for model 'm' in warmup");
    assert.match(read(name, factsOf(IO)), /names input 'Z'[\s\S]*its inputs are: X/);
    const run = internal("failed to run warmup sample 's': Internal: no; ");
    assert.match(read(run, factsOf('')), /warm-up request fails/);
  });

  test('a host that ended', () => {
    const error = internal('host process was ended by signal SIGSEGV; it printed: oops');
    assert.match(read(error, factsOf('')), /brought its process down/);
  });
});

test('an error that no table knows is passed on without a guess', () => {
  const { what, fix } = diagnose(internal('something new'), factsOf(''));
  assert.equal(what, NOTHING);
  assert.match(fix.join(), /as the error says/);
});
