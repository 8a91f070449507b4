// Which execution providers an instance asks for, from its placement and optimization.execution_accelerators, and
// the adding of them to session options. The plan is pure; only appendProviders calls the library.

import type { InstancePlacement } from '../../backend/sdk.ts';
import type { Accelerator, ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { NativeWords } from './native-memory.ts';
import { check, type OrtLibrary } from './ort-library.ts';

export interface ProviderRequest {
  readonly provider: 'TensorrtExecutionProvider' | 'CUDAExecutionProvider' | 'OpenVINOExecutionProvider';
  readonly options: Readonly<Record<string, string>>;
}

/** Triton's own spelling of TensorRT settings; every `trt_…` key passes as it is. */
const TENSORRT_KEYS: Readonly<Record<string, string>> = {
  max_workspace_size_bytes: 'trt_max_workspace_size',
  int8_calibration_table_name: 'trt_int8_calibration_table_name',
  int8_use_native_calibration_table: 'trt_int8_use_native_calibration_table',
};
const TENSORRT_PRECISIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  FP32: {},
  FP16: { trt_fp16_enable: '1' },
  BF16: { trt_bf16_enable: '1' },
  INT8: { trt_int8_enable: '1' },
};

/** Model parameters of older configs that mean CUDA options; a number selects one of the names. */
const CUDA_PARAMETERS: Readonly<Record<string, readonly string[] | undefined>> = {
  cudnn_conv_algo_search: ['EXHAUSTIVE', 'HEURISTIC', 'DEFAULT'],
  arena_extend_strategy: ['kNextPowerOfTwo', 'kSameAsRequested'],
  gpu_mem_limit: undefined,
  do_copy_in_default_stream: undefined,
};

const HOW_TO_GET: Readonly<Record<ProviderRequest['provider'], string>> = {
  TensorrtExecutionProvider: 'a GPU build of ONNX Runtime with TensorRT installed',
  CUDAExecutionProvider: 'a GPU build of ONNX Runtime with CUDA and cuDNN installed',
  OpenVINOExecutionProvider: 'an OpenVINO build of ONNX Runtime',
};

/** In order of preference; the CPU provider is always there and comes last by itself. */
export function planProviders(config: ModelConfig, placement: InstancePlacement): ProviderRequest[] {
  const accelerators = config.optimization?.execution_accelerators;
  const plan: ProviderRequest[] = [];
  if (placement.kind === 'KIND_GPU') {
    const device = { device_id: String(placement.deviceId) };
    let cuda: Record<string, string> = cudaParameters(config);
    for (const accelerator of accelerators?.gpu_execution_accelerator ?? []) {
      if (accelerator.name === 'tensorrt') {
        plan.push({
          provider: 'TensorrtExecutionProvider',
          options: { ...tensorrtOptions(accelerator), ...device },
        });
      } else if (accelerator.name === 'cuda') {
        cuda = { ...cuda, ...accelerator.parameters };
      } else {
        throw unknownAccelerator(accelerator.name);
      }
    }
    plan.push({ provider: 'CUDAExecutionProvider', options: { ...cuda, ...device } });
  }
  for (const accelerator of accelerators?.cpu_execution_accelerator ?? []) {
    if (accelerator.name !== 'openvino') throw unknownAccelerator(accelerator.name);
    plan.push({
      provider: 'OpenVINOExecutionProvider',
      options: { device_type: 'CPU', ...accelerator.parameters },
    });
  }
  return plan;
}

export function appendProviders(
  library: OrtLibrary,
  options: bigint,
  plan: readonly ProviderRequest[],
): void {
  for (const request of plan) {
    if (!library.providers.includes(request.provider)) throw missingProvider(library, request);
    appendProvider(library, options, request);
  }
}

function unknownAccelerator(name: string): Error {
  return invalidArgument(`unknown Execution Accelerator '${name}' is requested`);
}

function missingProvider(library: OrtLibrary, { provider }: ProviderRequest): Error {
  return invalidArgument(
    `${provider} is requested, but ONNX Runtime ${library.version} at ${library.path} has only: ` +
      `${library.providers.join(', ')}. Name ${HOW_TO_GET[provider]} with ` +
      '--backend-config=onnxruntime,library-path=<file or directory>, or run the model with kind: KIND_CPU and ' +
      'without that accelerator',
  );
}

function tensorrtOptions(accelerator: Accelerator): Record<string, string> {
  const options: Record<string, string> = {};
  for (const [key, value] of Object.entries(accelerator.parameters)) {
    if (key === 'precision_mode') {
      const precision = TENSORRT_PRECISIONS[value];
      if (precision === undefined)
        throw invalidArgument(`unsupported precision mode '${value}' is requested`);
      Object.assign(options, precision);
      continue;
    }
    const name = TENSORRT_KEYS[key] ?? (key.startsWith('trt_') ? key : undefined);
    if (name === undefined) {
      throw invalidArgument(`unknown parameter '${key}' is provided for TensorRT Execution Accelerator`);
    }
    options[name] = flagText(value);
  }
  return options;
}

function cudaParameters(config: ModelConfig): Record<string, string> {
  const options: Record<string, string> = {};
  for (const [key, names] of Object.entries(CUDA_PARAMETERS)) {
    const value = config.parameters[key]?.string_value;
    if (value === undefined) continue;
    const text = names === undefined ? value : names[Number(value)];
    if (text === undefined) throw invalidArgument(`unsupported ${key} value '${value}' is requested`);
    options[key] = text;
  }
  return options;
}

/** Configs say true and false, TensorRT's options 1 and 0. */
function flagText(value: string): string {
  const lower = value.toLowerCase();
  return lower === 'true' ? '1' : lower === 'false' ? '0' : value;
}

function appendProvider(library: OrtLibrary, options: bigint, request: ProviderRequest): void {
  const { api } = library;
  const keys = Object.keys(request.options);
  const values = Object.values(request.options);
  if (request.provider === 'OpenVINOExecutionProvider') {
    check(api, api.SessionOptionsAppendExecutionProvider(options, 'OpenVINO', keys, values, keys.length));
    return;
  }
  const isTensorrt = request.provider === 'TensorrtExecutionProvider';
  const [create, update, append, release] = isTensorrt
    ? ([
        api.CreateTensorRTProviderOptions,
        api.UpdateTensorRTProviderOptions,
        api.SessionOptionsAppendExecutionProvider_TensorRT_V2,
        api.ReleaseTensorRTProviderOptions,
      ] as const)
    : ([
        api.CreateCUDAProviderOptions,
        api.UpdateCUDAProviderOptions,
        api.SessionOptionsAppendExecutionProvider_CUDA_V2,
        api.ReleaseCUDAProviderOptions,
      ] as const);
  const out = new NativeWords(1);
  check(api, create(out.address));
  try {
    check(api, update(out.pointer(0), keys, values, keys.length));
    check(api, append(options, out.pointer(0)));
  } finally {
    release(out.pointer(0));
  }
}
