// A libllama context: the KV cache that all sequences share, and the batch of one step. The engine fills the batch row by
// row, decodes on a thread of koffi's, and reads the logits of the rows that asked for them.

import { StatusError } from '../../../domain/status.ts';
import type { MaybePointer } from './functions.ts';
import type { LlamaModel } from './model.ts';
import { int8Array, int32Array, type NativeArray, pointerArray, viewFloats } from './native-arrays.ts';
import type { ContextParams, NativeBatch } from './structs.ts';

export const POOLING = { unspecified: -1, none: 0, mean: 1, cls: 2, last: 3, rank: 4 } as const;
export type Pooling = keyof typeof POOLING;

export const CACHE_TYPES = {
  f32: 0,
  f16: 1,
  q4_0: 2,
  q4_1: 3,
  q5_0: 6,
  q5_1: 7,
  q8_0: 8,
  iq4_nl: 20,
  bf16: 30,
} as const;
export type CacheType = keyof typeof CACHE_TYPES;

const FLASH_ATTENTION = { auto: -1, off: 0, on: 1 } as const;

export interface ContextOptions {
  readonly cellCount: number;
  readonly sequenceCount: number;
  /** Rows in one decode. */
  readonly stepTokensMax: number;
  readonly threadCount: number;
  readonly batchThreadCount: number;
  /** Computes with the threads of this context; the two never compute at the same time. */
  readonly threadsOf?: LlamaContext;
  readonly cacheTypeK: CacheType;
  readonly cacheTypeV: CacheType;
  readonly flashAttention: keyof typeof FLASH_ATTENTION;
  readonly pooling: Pooling;
  readonly isEmbedding: boolean;
  /** Some of the model is not on the CPU. */
  readonly hasDevice: boolean;
  /** Rows of one step whose logits may be asked for; all of them, unless it says less. */
  readonly outputsMax?: number;
  /** Of one sequence in a step: one, and one for each token that may be proposed. */
  readonly outputsPerSequenceMax: number;
  /** Sequences below this id choose their greedy token on the device; 0 where the logits are in reach anyway. */
  readonly deviceSampledCount: number;
}

/** On which thread a step is decoded: given to the device here or on koffi's; `awaited`: it is waited for on koffi's. */
export type DecodePlace = 'here' | 'here-awaited' | 'aside' | 'aside-awaited';

export class LlamaContext {
  readonly model: LlamaModel;
  readonly pointer: bigint;
  readonly cellCount: number;
  readonly hasDevice: boolean;
  readonly #memory: MaybePointer;
  readonly #tokens;
  readonly #positions;
  readonly #sequences;
  readonly #sequenceCounts;
  readonly #sequencePointers;
  readonly #outputs;
  readonly #batch: NativeBatch;
  readonly #samplers: GreedySamplers;
  readonly #threads: MaybePointer;
  #rowCount = 0;
  #outputCount = 0;
  #logits: Float32Array = new Float32Array(0);
  #logitsAddress = 0n;
  #adapter: bigint | undefined;

  private constructor(
    model: LlamaModel,
    pointer: bigint,
    {
      options,
      threads,
      samplers,
    }: { options: ContextOptions; threads: MaybePointer; samplers: GreedySamplers },
  ) {
    const { functions } = model.library;
    const rows = options.stepTokensMax;
    this.model = model;
    this.pointer = pointer;
    this.#samplers = samplers;
    this.#threads = threads;
    this.hasDevice = options.hasDevice;
    this.cellCount = functions.llama_n_ctx(pointer);
    this.#memory = functions.llama_get_memory(pointer);
    this.#tokens = int32Array(rows);
    this.#positions = int32Array(rows);
    this.#sequences = int32Array(rows);
    this.#sequenceCounts = int32Array(rows);
    this.#sequenceCounts.values.fill(1);
    this.#sequencePointers = pointerArray(rows + 1);
    for (let i = 0; i < rows; i++) this.#sequencePointers.values[i] = this.#sequences.address + BigInt(i * 4);
    this.#outputs = int8Array(rows);
    this.#batch = {
      n_tokens: 0,
      token: this.#tokens.address,
      embd: null,
      pos: this.#positions.address,
      n_seq_id: this.#sequenceCounts.address,
      seq_id: this.#sequencePointers.address,
      logits: this.#outputs.address,
    };
  }

  static create(model: LlamaModel, options: ContextOptions): LlamaContext {
    const { library } = model;
    const samplers = greedySamplers(model, options.deviceSampledCount);
    const params: ContextParams = {
      ...library.functions.llama_context_default_params(),
      n_ctx: options.cellCount,
      n_batch: options.stepTokensMax,
      n_ubatch: options.stepTokensMax,
      n_seq_max: options.sequenceCount,
      n_outputs_max_per_seq: options.outputsPerSequenceMax,
      // The library plans one output per sequence, however small a batch is, and aborts where it may have fewer.
      n_outputs_max: Math.max(options.outputsMax ?? options.stepTokensMax, options.sequenceCount),
      n_threads: options.threadCount,
      n_threads_batch: options.batchThreadCount,
      pooling_type: POOLING[options.pooling],
      flash_attn_type: FLASH_ATTENTION[options.flashAttention],
      type_k: CACHE_TYPES[options.cacheTypeK],
      type_v: CACHE_TYPES[options.cacheTypeV],
      embeddings: options.isEmbedding,
      swa_full: true,
      kv_unified: true,
      samplers: samplers.configs?.address ?? null,
      n_samplers: samplers.pointers.length,
    };
    library.takeMessages();
    const pointer = library.functions.llama_init_from_model(model.pointer, params);
    if (pointer === null) {
      const reasons = library.takeMessages().map((line) => line.replace(/^\w+: /, ''));
      throw new StatusError(
        'UNAVAILABLE',
        `a KV cache of ${options.cellCount} cells cannot be made: ${reasons.slice(-3).join('; ') || 'no reason given'}; ` +
          'lower kv_cells or step_tokens, or quantize the cache with cache_type_k and cache_type_v',
      );
    }
    const threads =
      options.threadsOf === undefined ? createThreads(model, options) : options.threadsOf.#threads;
    if (threads !== null) library.functions.llama_attach_threadpool(pointer, threads, null);
    return new LlamaContext(model, pointer, { options, threads, samplers });
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** An adapter for all rows of the next decodes; undefined for none. */
  useAdapter(adapter: bigint | undefined): void {
    if (adapter === this.#adapter) return;
    this.#adapter = adapter;
    const list = BigUint64Array.of(adapter ?? 0n);
    const scales = Float32Array.of(1);
    const count = adapter === undefined ? 0 : 1;
    this.model.library.functions.llama_set_adapters_lora(this.pointer, list, count, scales);
  }

  beginBatch(): void {
    this.#rowCount = 0;
    this.#outputCount = 0;
  }

  /** The index of its logits among the outputs of the step, or -1. */
  addRow(token: number, position: number, sequence: number, isOutput: boolean): number {
    const row = this.#rowCount++;
    this.#tokens.values[row] = token;
    this.#positions.values[row] = position;
    this.#sequences.values[row] = sequence;
    this.#outputs.values[row] = isOutput ? 1 : 0;
    return isOutput ? this.#outputCount++ : -1;
  }

  /**
   * 0: done; 1: no cells left, nothing was changed; other numbers: failed. A device may still compute when this resolves,
   * unless it was waited for.
   */
  decode(place: DecodePlace = 'aside'): Promise<number> {
    const { functions } = this.model.library;
    const batch = { ...this.#batch, n_tokens: this.#rowCount };
    if (place === 'here') {
      const code = functions.llama_decode(this.pointer, batch);
      // A turn of the event loop, for what is to be sent and what has come meanwhile.
      return new Promise((resolve) => setImmediate(() => resolve(code)));
    }
    if (place === 'here-awaited') return this.#awaitDevice(functions.llama_decode(this.pointer, batch));
    const decoding = new Promise<number>((resolve, reject) => {
      functions.llama_decode.async(this.pointer, batch, (error, code) =>
        error ? reject(error) : resolve(code),
      );
    });
    return place === 'aside' ? decoding : decoding.then((code) => this.#awaitDevice(code));
  }

  #awaitDevice(code: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const { functions } = this.model.library;
      functions.llama_synchronize.async(this.pointer, (error) => (error ? reject(error) : resolve(code)));
    });
  }

  /** Waits for the device; a CPU is finished when `decode` has answered. */
  finishCompute(): void {
    if (this.hasDevice) this.model.library.functions.llama_synchronize(this.pointer);
  }

  /** Call once after each decode, before `logitsOf`. */
  readLogits(): void {
    if (this.#outputCount === 0) return;
    const address = this.model.library.functions.llama_get_logits(this.pointer);
    if (address === null) throw new StatusError('INTERNAL', 'libllama has no logits after a decode');
    const length = this.#outputCount * this.model.tokenCount;
    if (address === this.#logitsAddress && length <= this.#logits.length) return;
    this.#logitsAddress = address;
    this.#logits = viewFloats(address, length);
  }

  /** Where `readLogits` has found them, for other threads; as long valid. */
  get logits(): { readonly address: bigint; readonly outputCount: number } {
    return { address: this.#logitsAddress, outputCount: this.#outputCount };
  }

  /** Valid until the next decode; may be changed. */
  logitsOf(output: number): Float32Array {
    const { tokenCount } = this.model;
    return this.#logits.subarray(output * tokenCount, (output + 1) * tokenCount);
  }

  /** The token that the device chose for this row of the batch. */
  sampledToken(row: number): number {
    return this.model.library.functions.llama_get_sampled_token_ith(this.pointer, row);
  }

  embeddingOfSequence(sequence: number, length: number): Float32Array | undefined {
    const address = this.model.library.functions.llama_get_embeddings_seq(this.pointer, sequence);
    return address === null ? undefined : viewFloats(address, length);
  }

  /** How the library pools, whatever was asked for. */
  get pooling(): Pooling {
    const type = this.model.library.functions.llama_pooling_type(this.pointer);
    return (Object.keys(POOLING) as Pooling[]).find((name) => POOLING[name] === type) ?? 'none';
  }

  removeCells(sequence: number, from: number, to: number): boolean {
    return this.model.library.functions.llama_memory_seq_rm(this.#memory, sequence, from, to);
  }

  /** The position after its last cell; 0 for an empty sequence. */
  lengthOf(sequence: number): number {
    return this.model.library.functions.llama_memory_seq_pos_max(this.#memory, sequence) + 1;
  }

  shareCells(source: number, target: number, from: number, to: number): void {
    this.model.library.functions.llama_memory_seq_cp(this.#memory, source, target, from, to);
  }

  /** Copies the cells of a sequence into another context of the same model, where the sequence had none, and frees them here. */
  moveCells(source: number, { target, sequence }: { target: LlamaContext; sequence: number }): void {
    const { functions } = this.model.library;
    const state = new Uint8Array(functions.llama_state_seq_get_size(this.pointer, source));
    const length = functions.llama_state_seq_get_data(this.pointer, state, state.length, source);
    if (functions.llama_state_seq_set_data(target.pointer, state, length, sequence) === 0) {
      const reasons = this.model.library.takeMessages().join('; ');
      throw new StatusError('INTERNAL', `libllama could not move the cells of a prompt: ${reasons}`);
    }
    this.removeCells(source, 0, -1);
  }

  /** A device loads what it computes with at the first step, which takes tenths of a second: better now than for a request. */
  warmUp(): void {
    this.beginBatch();
    this.addRow(Math.max(this.model.beginToken, 0), 0, 0, true);
    this.model.library.functions.llama_decode(this.pointer, { ...this.#batch, n_tokens: this.#rowCount });
    this.finishCompute();
    this.clearCells();
  }

  /** Models without a cache have nothing to clear. */
  clearCells(): void {
    if (this.#memory === null) return;
    this.model.library.functions.llama_memory_clear(this.#memory, false);
  }

  free(): void {
    const { functions } = this.model.library;
    functions.llama_free(this.pointer);
    for (const sampler of this.#samplers.pointers) functions.llama_sampler_free(sampler);
  }
}

const SAMPLER_CONFIG_WORDS = 2;

interface GreedySamplers {
  readonly pointers: readonly bigint[];
  /** As libllama wants them named at the start; kept, since it may look again. */
  readonly configs: NativeArray<BigUint64Array> | undefined;
}

/** One greedy chain per sequence id, attached for good: a change would make the library plan its memory anew. */
function greedySamplers(model: LlamaModel, count: number): GreedySamplers {
  const { functions } = model.library;
  const pointers: bigint[] = [];
  if (count === 0) return { pointers, configs: undefined };
  const configs = pointerArray(count * SAMPLER_CONFIG_WORDS);
  for (let sequence = 0; sequence < count; sequence++) {
    const chain = functions.llama_sampler_chain_init({ no_perf: true })!;
    functions.llama_sampler_chain_add(chain, functions.llama_sampler_init_greedy());
    pointers.push(chain);
    configs.values[sequence * SAMPLER_CONFIG_WORDS] = BigInt(sequence);
    configs.values[sequence * SAMPLER_CONFIG_WORDS + 1] = chain;
  }
  return { pointers, configs };
}

/** Threads of a pool wait in a loop for more to do: two pools that take turns would be in each other's way. */
function createThreads({ library }: LlamaModel, options: ContextOptions): MaybePointer {
  return library.createThreadpool(Math.max(options.threadCount, options.batchThreadCount));
}
