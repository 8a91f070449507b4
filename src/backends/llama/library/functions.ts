// The functions of libllama and ggml that the engine calls, as a table: name, result, arguments. libllama.ts binds them.
// Memory of ours that only the call needs is given as the array itself ("array"): its address alone would not keep it, and
// libllama's log calls JavaScript, and with it the collector, in the middle of many functions.

import type { ContextParams, ModelParams, NativeBatch } from './structs.ts';

/** An address in native memory; null is C's NULL. */
export type Pointer = bigint;
export type MaybePointer = bigint | null;

interface ValueTypes {
  void: undefined;
  bool: boolean;
  int32_t: number;
  uint32_t: number;
  size_t: number;
  uint64_t: number;
  str: string | null;
  'void *': MaybePointer;
  array: ArrayBufferView | null;
  ModelParams: ModelParams;
  ContextParams: ContextParams;
  Batch: NativeBatch;
  ChainParams: { no_perf: boolean };
}

export type ValueName = keyof ValueTypes;

export interface FunctionRow<
  R extends ValueName = ValueName,
  A extends readonly ValueName[] = readonly ValueName[],
> {
  readonly result: R;
  readonly arguments: A;
}

type ArgumentsOf<A extends readonly ValueName[]> = { [I in keyof A]: ValueTypes[A[I]] };

/** A bound function; `async` runs it on a thread of koffi's and calls back on the event loop. */
export interface NativeFunction<R extends ValueName, A extends readonly ValueName[]> {
  (...args: ArgumentsOf<A>): ValueTypes[R];
  async(...args: [...ArgumentsOf<A>, (error: unknown, result: ValueTypes[R]) => void]): void;
}

export type Bound<T extends Readonly<Record<string, FunctionRow>>> = {
  readonly [K in keyof T]: T[K] extends FunctionRow<infer R, infer A> ? NativeFunction<R, A> : never;
};

function row<R extends ValueName, const A extends readonly ValueName[]>(
  result: R,
  ...args: A
): FunctionRow<R, A> {
  return { result, arguments: args };
}

export const LLAMA_FUNCTIONS = {
  llama_version: row('str'),
  llama_backend_init: row('void'),
  llama_model_default_params: row('ModelParams'),
  llama_context_default_params: row('ContextParams'),
  llama_log_set: row('void', 'void *', 'void *'),
  llama_max_devices: row('size_t'),
  llama_max_parallel_sequences: row('size_t'),

  llama_model_load_from_file: row('void *', 'str', 'ModelParams'),
  llama_model_free: row('void', 'void *'),
  llama_model_get_vocab: row('void *', 'void *'),
  llama_model_n_ctx_train: row('int32_t', 'void *'),
  llama_model_n_embd_out: row('int32_t', 'void *'),
  llama_model_n_cls_out: row('uint32_t', 'void *'),
  llama_model_size: row('uint64_t', 'void *'),
  llama_model_desc: row('int32_t', 'void *', 'array', 'size_t'),
  llama_model_meta_val_str: row('int32_t', 'void *', 'str', 'array', 'size_t'),
  llama_model_chat_template: row('str', 'void *', 'str'),
  llama_model_has_encoder: row('bool', 'void *'),
  llama_model_has_decoder: row('bool', 'void *'),
  llama_model_n_swa: row('int32_t', 'void *'),
  llama_model_is_recurrent: row('bool', 'void *'),
  llama_model_is_hybrid: row('bool', 'void *'),
  llama_model_is_diffusion: row('bool', 'void *'),

  llama_adapter_lora_init: row('void *', 'void *', 'str'),
  llama_set_adapters_lora: row('int32_t', 'void *', 'array', 'size_t', 'array'),

  llama_init_from_model: row('void *', 'void *', 'ContextParams'),
  llama_free: row('void', 'void *'),
  llama_n_ctx: row('uint32_t', 'void *'),
  llama_get_memory: row('void *', 'void *'),
  llama_pooling_type: row('int32_t', 'void *'),
  llama_attach_threadpool: row('void', 'void *', 'void *', 'void *'),

  llama_memory_clear: row('void', 'void *', 'bool'),
  llama_memory_seq_rm: row('bool', 'void *', 'int32_t', 'int32_t', 'int32_t'),
  llama_memory_seq_pos_max: row('int32_t', 'void *', 'int32_t'),
  llama_memory_seq_cp: row('void', 'void *', 'int32_t', 'int32_t', 'int32_t', 'int32_t'),

  llama_state_seq_get_size: row('size_t', 'void *', 'int32_t'),
  llama_state_seq_get_data: row('size_t', 'void *', 'array', 'size_t', 'int32_t'),
  llama_state_seq_set_data: row('size_t', 'void *', 'array', 'size_t', 'int32_t'),

  llama_decode: row('int32_t', 'void *', 'Batch'),
  llama_synchronize: row('void', 'void *'),
  llama_get_logits: row('void *', 'void *'),
  llama_get_embeddings_seq: row('void *', 'void *', 'int32_t'),
  llama_get_sampled_token_ith: row('int32_t', 'void *', 'int32_t'),

  llama_vocab_n_tokens: row('int32_t', 'void *'),
  llama_vocab_get_text: row('str', 'void *', 'int32_t'),
  llama_vocab_is_eog: row('bool', 'void *', 'int32_t'),
  llama_vocab_bos: row('int32_t', 'void *'),
  llama_vocab_eos: row('int32_t', 'void *'),
  llama_vocab_sep: row('int32_t', 'void *'),
  llama_vocab_get_add_bos: row('bool', 'void *'),
  llama_vocab_get_add_eos: row('bool', 'void *'),
  llama_vocab_get_add_sep: row('bool', 'void *'),
  llama_tokenize: row('int32_t', 'void *', 'array', 'int32_t', 'array', 'int32_t', 'bool', 'bool'),
  llama_token_to_piece: row('int32_t', 'void *', 'int32_t', 'array', 'int32_t', 'int32_t', 'bool'),

  llama_sampler_chain_init: row('void *', 'ChainParams'),
  llama_sampler_chain_add: row('void', 'void *', 'void *'),
  llama_sampler_init_greedy: row('void *'),
  llama_sampler_init_grammar: row('void *', 'void *', 'str', 'str'),
  llama_sampler_apply: row('void', 'void *', 'void *'),
  llama_sampler_accept: row('void', 'void *', 'int32_t'),
  llama_sampler_free: row('void', 'void *'),
} satisfies Readonly<Record<string, FunctionRow>>;

export const GGML_FUNCTIONS = {
  ggml_backend_load_all_from_path: row('void', 'str'),
  ggml_backend_dev_count: row('size_t'),
  ggml_backend_dev_get: row('void *', 'size_t'),
} satisfies Readonly<Record<string, FunctionRow>>;

export const GGML_BASE_FUNCTIONS = {
  ggml_backend_dev_name: row('str', 'void *'),
  ggml_backend_dev_description: row('str', 'void *'),
  ggml_backend_dev_type: row('int32_t', 'void *'),
  ggml_backend_dev_memory: row('void', 'void *', 'void *', 'void *'),
  ggml_backend_dev_backend_reg: row('void *', 'void *'),
  ggml_backend_reg_get_proc_address: row('void *', 'void *', 'str'),
  ggml_threadpool_params_init: row('void', 'array', 'int32_t'),
} satisfies Readonly<Record<string, FunctionRow>>;
