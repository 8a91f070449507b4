import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Accelerator, ModelConfig } from '../../domain/model-config.ts';
import { planProviders } from './execution-providers.ts';
import { CPU, makeConfig } from './test-fixture.ts';

const GPU = { ...CPU, kind: 'KIND_GPU', deviceId: 3 } as const;

function accelerated(gpu: Accelerator[], cpu: Accelerator[] = []): ModelConfig {
  return makeConfig({
    optimization: {
      execution_accelerators: { gpu_execution_accelerator: gpu, cpu_execution_accelerator: cpu },
      priority: 'PRIORITY_DEFAULT',
      gather_kernel_buffer_threshold: 0,
      eager_batching: false,
    },
  });
}

test('a GPU instance runs on CUDA on its own device', () => {
  assert.deepEqual(planProviders(makeConfig({}), GPU), [
    { provider: 'CUDAExecutionProvider', options: { device_id: '3' } },
  ]);
});

test('TensorRT comes before CUDA, with its options in the names of the library', () => {
  const config = accelerated([
    {
      name: 'tensorrt',
      parameters: {
        precision_mode: 'FP16',
        max_workspace_size_bytes: '1024',
        trt_engine_cache_enable: 'true',
      },
    },
    { name: 'cuda', parameters: { arena_extend_strategy: 'kSameAsRequested' } },
  ]);
  assert.deepEqual(planProviders(config, GPU), [
    {
      provider: 'TensorrtExecutionProvider',
      options: {
        trt_fp16_enable: '1',
        trt_max_workspace_size: '1024',
        trt_engine_cache_enable: '1',
        device_id: '3',
      },
    },
    {
      provider: 'CUDAExecutionProvider',
      options: { arena_extend_strategy: 'kSameAsRequested', device_id: '3' },
    },
  ]);
});

test('parameters of older configs still set CUDA options', () => {
  const config = makeConfig({
    parameters: {
      cudnn_conv_algo_search: { string_value: '1' },
      gpu_mem_limit: { string_value: '4096' },
    },
  });
  assert.deepEqual(planProviders(config, GPU)[0]?.options, {
    cudnn_conv_algo_search: 'HEURISTIC',
    gpu_mem_limit: '4096',
    device_id: '3',
  });
});

test('GPU accelerators say nothing about a CPU instance; an unknown name is refused', () => {
  assert.deepEqual(planProviders(accelerated([{ name: 'nothing', parameters: {} }]), CPU), []);
  assert.throws(() => planProviders(accelerated([{ name: 'nothing', parameters: {} }]), GPU), {
    code: 'INVALID_ARG',
    message: "unknown Execution Accelerator 'nothing' is requested",
  });
  assert.throws(() => planProviders(accelerated([], [{ name: 'other', parameters: {} }]), CPU), {
    message: "unknown Execution Accelerator 'other' is requested",
  });
});
