// Compares the structures of structs.ts with the library that was loaded, by defaults that are known: a field that has
// moved shows another value. Called by libllama.ts after the version, before anything is loaded.

import koffi from 'koffi';
import { StatusError } from '../../../domain/status.ts';
import type { Bound, LLAMA_FUNCTIONS } from './functions.ts';
import { BATCH, CONTEXT_PARAMS, MODEL_PARAMS } from './structs.ts';

const SIZES: readonly (readonly [string, typeof BATCH, number])[] = [
  ['llama_model_params', MODEL_PARAMS, 80],
  ['llama_context_params', CONTEXT_PARAMS, 160],
  ['llama_batch', BATCH, 56],
];

/** First, middle and last fields: what lies between cannot have changed its size unseen. */
const MODEL_DEFAULTS: Readonly<Record<string, unknown>> = {
  devices: null,
  n_gpu_layers: -1,
  split_mode: 1,
  load_mode: -1,
  lazy_mode: 1,
  main_gpu: 0,
  tensor_split: null,
  kv_overrides: null,
  vocab_only: false,
  use_extra_bufts: true,
  load_mtp: false,
};

const CONTEXT_DEFAULTS: Readonly<Record<string, unknown>> = {
  n_ctx: 512,
  n_batch: 2048,
  n_ubatch: 512,
  n_seq_max: 1,
  n_outputs_max_per_seq: 1,
  rope_scaling_type: -1,
  pooling_type: -1,
  flash_attn_type: -1,
  yarn_ext_factor: -1,
  defrag_thold: -1,
  cb_eval: null,
  type_k: 1,
  type_v: 1,
  abort_callback: null,
  embeddings: false,
  offload_kqv: true,
  no_perf: true,
  swa_full: true,
  kv_unified: false,
  samplers: null,
  n_samplers: 0,
  ctx_other: null,
};

export function checkLayout(functions: Bound<typeof LLAMA_FUNCTIONS>, directory: string): void {
  for (const [name, type, byteLength] of SIZES) {
    if (koffi.sizeof(type) !== byteLength) {
      throw layoutDiffers(
        directory,
        `${name} has ${koffi.sizeof(type)} bytes on this platform, not ${byteLength}`,
      );
    }
  }
  compare(directory, 'llama_model_params', { ...functions.llama_model_default_params() }, MODEL_DEFAULTS);
  compare(
    directory,
    'llama_context_params',
    { ...functions.llama_context_default_params() },
    CONTEXT_DEFAULTS,
  );
}

function compare(
  directory: string,
  struct: string,
  actual: Readonly<Record<string, unknown>>,
  expected: Readonly<Record<string, unknown>>,
): void {
  for (const [field, value] of Object.entries(expected)) {
    if (actual[field] !== value) {
      throw layoutDiffers(directory, `${struct}.${field} is ${String(actual[field])}, not ${String(value)}`);
    }
  }
}

function layoutDiffers(directory: string, difference: string): StatusError {
  return new StatusError(
    'UNAVAILABLE',
    `libllama in ${directory} is not the release this server was written for (${difference}); ` +
      'install the @node-llama-cpp package that package.json names, or build it with npm run build:libllama',
  );
}
