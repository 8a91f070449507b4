// The C structures of libllama that cross the border, as version 0.5.0 (node-llama-cpp 3.22.1) lays them out. They change
// between releases: check-layout.ts compares sizes and known defaults at start and refuses a library that differs.

import koffi from 'koffi';

export type KoffiType = ReturnType<typeof koffi.struct>;

export const MODEL_PARAMS: KoffiType = koffi.struct({
  devices: 'void *',
  tensor_buft_overrides: 'void *',
  n_gpu_layers: 'int32_t',
  split_mode: 'int32_t',
  load_mode: 'int32_t',
  lazy_mode: 'int32_t',
  main_gpu: 'int32_t',
  tensor_split: 'void *',
  progress_callback: 'void *',
  progress_callback_user_data: 'void *',
  kv_overrides: 'void *',
  vocab_only: 'bool',
  check_tensors: 'bool',
  use_extra_bufts: 'bool',
  no_host: 'bool',
  no_alloc: 'bool',
  load_mtp: 'bool',
});

export interface ModelParams {
  devices: bigint | null;
  n_gpu_layers: number;
  split_mode: number;
  load_mode: number;
  main_gpu: number;
  tensor_split: bigint | null;
  progress_callback: bigint | null;
  vocab_only: boolean;
  check_tensors: boolean;
  use_extra_bufts: boolean;
}

export const CONTEXT_PARAMS: KoffiType = koffi.struct({
  n_ctx: 'uint32_t',
  n_batch: 'uint32_t',
  n_ubatch: 'uint32_t',
  n_seq_max: 'uint32_t',
  n_rs_seq: 'uint32_t',
  n_outputs_max: 'uint32_t',
  n_outputs_max_per_seq: 'uint32_t',
  n_threads: 'int32_t',
  n_threads_batch: 'int32_t',
  ctx_type: 'int32_t',
  rope_scaling_type: 'int32_t',
  pooling_type: 'int32_t',
  attention_type: 'int32_t',
  flash_attn_type: 'int32_t',
  rope_freq_base: 'float',
  rope_freq_scale: 'float',
  yarn_ext_factor: 'float',
  yarn_attn_factor: 'float',
  yarn_beta_fast: 'float',
  yarn_beta_slow: 'float',
  yarn_orig_ctx: 'uint32_t',
  defrag_thold: 'float',
  cb_eval: 'void *',
  cb_eval_user_data: 'void *',
  type_k: 'int32_t',
  type_v: 'int32_t',
  abort_callback: 'void *',
  abort_callback_data: 'void *',
  embeddings: 'bool',
  offload_kqv: 'bool',
  no_perf: 'bool',
  op_offload: 'bool',
  swa_full: 'bool',
  kv_unified: 'bool',
  samplers: 'void *',
  n_samplers: 'size_t',
  ctx_other: 'void *',
});

export interface ContextParams {
  n_ctx: number;
  n_batch: number;
  n_ubatch: number;
  n_seq_max: number;
  n_outputs_max: number;
  n_outputs_max_per_seq: number;
  n_threads: number;
  n_threads_batch: number;
  pooling_type: number;
  attention_type: number;
  flash_attn_type: number;
  type_k: number;
  type_v: number;
  embeddings: boolean;
  no_perf: boolean;
  swa_full: boolean;
  kv_unified: boolean;
  rope_scaling_type: number;
  defrag_thold: number;
  samplers: bigint | null;
  n_samplers: number;
}

export const BATCH: KoffiType = koffi.struct({
  n_tokens: 'int32_t',
  token: 'void *',
  embd: 'void *',
  pos: 'void *',
  n_seq_id: 'void *',
  seq_id: 'void *',
  logits: 'void *',
});

export interface NativeBatch {
  n_tokens: number;
  token: bigint;
  embd: bigint | null;
  pos: bigint;
  n_seq_id: bigint;
  seq_id: bigint;
  logits: bigint;
}

/** For grammars: the candidates of one token. */
export const TOKEN_DATA_ARRAY: KoffiType = koffi.struct({
  data: 'void *',
  size: 'size_t',
  selected: 'int64_t',
  sorted: 'bool',
});

export const SAMPLER_SEQ_CONFIG_BYTES = 16;
export const TOKEN_DATA_BYTES = 12;

export const SAMPLER_CHAIN_PARAMS: KoffiType = koffi.struct({ no_perf: 'bool' });

/** By the names in functions.ts; the others are C's own. */
const TYPES: Readonly<Record<string, KoffiType | string>> = {
  ModelParams: MODEL_PARAMS,
  ContextParams: CONTEXT_PARAMS,
  Batch: BATCH,
  ChainParams: SAMPLER_CHAIN_PARAMS,
  array: 'void *',
};

export function typeNamed(name: string): KoffiType | string {
  return TYPES[name] ?? name;
}
