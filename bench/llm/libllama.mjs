// The few functions of libllama that the limit needs, through koffi: its own declarations, so that the limit depends on
// nothing of Nereid. The structures are those of llama.cpp v0.5.0 (llama.h). Called by limit.mjs alone.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';

const CPU_DEVICE = 0;
const LOG_LEVEL_ERROR = 4;

const ModelParams = koffi.struct('bench_llama_model_params', {
  devices: 'void *',
  tensor_buft_overrides: 'void *',
  n_gpu_layers: 'int32_t',
  split_mode: 'int',
  load_mode: 'int',
  lazy_mode: 'int',
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

const ContextParams = koffi.struct('bench_llama_context_params', {
  n_ctx: 'uint32_t',
  n_batch: 'uint32_t',
  n_ubatch: 'uint32_t',
  n_seq_max: 'uint32_t',
  n_rs_seq: 'uint32_t',
  n_outputs_max: 'uint32_t',
  n_outputs_max_per_seq: 'uint32_t',
  n_threads: 'int32_t',
  n_threads_batch: 'int32_t',
  ctx_type: 'int',
  rope_scaling_type: 'int',
  pooling_type: 'int',
  attention_type: 'int',
  flash_attn_type: 'int',
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
  type_k: 'int',
  type_v: 'int',
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

const Batch = koffi.struct('bench_llama_batch', {
  n_tokens: 'int32_t',
  token: 'void *',
  embd: 'void *',
  pos: 'void *',
  n_seq_id: 'void *',
  seq_id: 'void *',
  logits: 'void *',
});

const ChainParams = koffi.struct('bench_llama_sampler_chain_params', { no_perf: 'bool' });

const LogCallback = koffi.proto('void bench_log(int level, const char *text, void *data)');

export function openLibrary(folder) {
  const names = readdirSync(folder);
  const open = (pattern) => {
    const name = names.find((candidate) => pattern.test(candidate));
    if (name === undefined) throw new Error(`${folder}: no file matches ${pattern}`);
    return koffi.load(join(folder, name), { lazy: true, global: true });
  };
  // The files of the npm package carry the release in their names.
  const base = open(/^libggml-base\.(?:so|dylib)$/);
  const ggml = open(/^libggml(?:\.v[\d.]+)?\.(?:so|dylib)$/);
  const llama = open(/^libllama(?:\.v[\d.]+)?\.(?:so|dylib)$/);
  const library = { ...declareGgml({ ggml, base }), ...declareLlama(llama) };
  silence(library);
  // Backends built as modules are loaded by name; a build for one machine has them linked in.
  if (library.deviceCount() === 0) library.loadBackends(folder);
  library.backendInit();
  return library;
}

function declareGgml({ ggml, base }) {
  return {
    deviceCount: ggml.func('size_t ggml_backend_dev_count()'),
    loadBackends: ggml.func('void ggml_backend_load_all_from_path(const char *folder)'),
    deviceByType: ggml.func('void *ggml_backend_dev_by_type(int type)'),
    registryOf: base.func('void *ggml_backend_dev_backend_reg(void *device)'),
    findFunction: base.func('void *ggml_backend_reg_get_proc_address(void *registry, const char *name)'),
    initThreadpoolParams: base.func('void ggml_threadpool_params_init(void *params, int threads)'),
  };
}

function declareLlama(llama) {
  return {
    logSet: llama.func('llama_log_set', 'void', [koffi.pointer(LogCallback), 'void *']),
    backendInit: llama.func('void llama_backend_init()'),
    modelDefaults: llama.func('llama_model_default_params', ModelParams, []),
    contextDefaults: llama.func('llama_context_default_params', ContextParams, []),
    loadModel: llama.func('llama_model_load_from_file', 'void *', ['str', ModelParams]),
    createContext: llama.func('llama_init_from_model', 'void *', ['void *', ContextParams]),
    attachThreadpool: llama.func('void llama_attach_threadpool(void *context, void *pool, void *poolBatch)'),
    vocabOf: llama.func('void *llama_model_get_vocab(void *model)'),
    vocabSize: llama.func('int llama_vocab_n_tokens(void *vocab)'),
    tokenize: llama.func(
      'int llama_tokenize(void *vocab, const char *text, int length, _Out_ int32_t *tokens, int max, bool special, bool parse)',
    ),
    memoryOf: llama.func('void *llama_get_memory(void *context)'),
    removeCells: llama.func('bool llama_memory_seq_rm(void *memory, int sequence, int from, int to)'),
    shareCells: llama.func(
      'void llama_memory_seq_cp(void *memory, int source, int target, int from, int to)',
    ),
    createBatch: llama.func('llama_batch_init', Batch, ['int', 'int', 'int']),
    decode: llama.func('llama_decode', 'int', ['void *', Batch]),
    synchronize: llama.func('void llama_synchronize(void *context)'),
    logitsOf: llama.func('void *llama_get_logits(void *context)'),
    createChain: llama.func('llama_sampler_chain_init', 'void *', [ChainParams]),
    addToChain: llama.func('void llama_sampler_chain_add(void *chain, void *sampler)'),
    createGreedy: llama.func('void *llama_sampler_init_greedy()'),
    setSampler: llama.func('bool llama_set_sampler(void *context, int sequence, void *chain)'),
    sampledToken: llama.func('int llama_get_sampled_token_ith(void *context, int index)'),
  };
}

/** Errors alone are worth a line; the callback must outlive this function. */
let logCallback;
function silence(library) {
  logCallback = koffi.register((level, text) => {
    if (level === LOG_LEVEL_ERROR) process.stderr.write(text);
  }, koffi.pointer(LogCallback));
  library.logSet(logCallback, null);
}

/** Threads that live as long as the context; without, a library built without OpenMP makes new ones in every step. */
export function createThreadpool(library, threads) {
  const registry = library.registryOf(library.deviceByType(CPU_DEVICE));
  const found = library.findFunction(registry, 'ggml_threadpool_new');
  const create = koffi.decode(found, koffi.proto('void *bench_threadpool_new(void *params)'));
  // A mask of 512 processors and five small fields, in the size that it has with room to spare.
  const params = Buffer.alloc(1024);
  library.initThreadpoolParams(params, threads);
  return create(params);
}

/** A batch that stays: its arrays are seen from here as typed arrays over the library's own memory. */
export function createBatch(library, { size, sequenceCount }) {
  const struct = library.createBatch(size, 0, 1);
  const view = (pointer, Type) => new Type(koffi.view(pointer, size * Type.BYTES_PER_ELEMENT));
  const ids = koffi.alloc('int32_t', sequenceCount);
  new Int32Array(koffi.view(ids, sequenceCount * 4)).forEach((_, i, all) => {
    all[i] = i;
  });
  const idsAddress = koffi.address(ids);
  const tokens = view(struct.token, Int32Array);
  const positions = view(struct.pos, Int32Array);
  const sequences = view(struct.seq_id, BigUint64Array);
  const outputs = view(struct.logits, Int8Array);
  view(struct.n_seq_id, Int32Array).fill(1);
  return {
    struct,
    add({ token, position, sequence, isOutput }) {
      const i = struct.n_tokens;
      tokens[i] = token;
      positions[i] = position;
      sequences[i] = idsAddress + BigInt(4 * sequence);
      outputs[i] = isOutput ? 1 : 0;
      struct.n_tokens = i + 1;
      return i;
    },
    clear() {
      struct.n_tokens = 0;
    },
    get length() {
      return struct.n_tokens;
    },
  };
}

/** A view of the logits of the last step; the address changes only when the library makes room for more. */
export function createLogitsReader(library, { context, vocabSize }) {
  let address;
  let floats = new Float32Array(0);
  return (rowCount) => {
    const pointer = library.logitsOf(context);
    const now = koffi.address(pointer);
    if (now !== address || floats.length < rowCount * vocabSize) {
      address = now;
      floats = new Float32Array(koffi.view(pointer, rowCount * vocabSize * 4));
    }
    return floats;
  };
}
