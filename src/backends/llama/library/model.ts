// A GGUF model that libllama has loaded, and its vocabulary: text to tokens, tokens to bytes. Made once per host by
// llama-backend.ts; contexts (context.ts) run on it.

import koffi from 'koffi';
import { StatusError } from '../../../domain/status.ts';
import type { LlamaLibrary } from './libllama.ts';
import { float32Array, type NativeArray } from './native-arrays.ts';
import type { ModelParams } from './structs.ts';

export interface ModelLoadOptions {
  /** Negative: all. */
  readonly gpuLayers: number;
  readonly splitMode: 'none' | 'layer' | 'row' | 'tensor';
  readonly mainGpu: number;
  /** Shares of the GPUs; empty: by their memory. */
  readonly tensorSplit: readonly number[];
  readonly isMemoryMapped: boolean;
  readonly isMemoryLocked: boolean;
  readonly onProgress: (fraction: number) => void;
}

const SPLIT_MODES = { none: 0, layer: 1, row: 2, tensor: 3 } as const;
const LOAD_MODE_PLAIN = 0;
const LOAD_MODE_MAPPED = 1;
const LOAD_MODE_LOCKED = 2;

const PROGRESS_CALLBACK = koffi.proto('bool', ['float', 'void *']);

export interface TokenizeOptions {
  /** The tokens that the vocabulary puts at the ends. */
  readonly isSpecialAdded: boolean;
  /** Texts of special tokens become these tokens. */
  readonly isSpecialParsed: boolean;
}

export class LlamaModel {
  readonly library: LlamaLibrary;
  readonly pointer: bigint;
  readonly vocab: bigint;
  readonly tokenCount: number;
  readonly #pieces: (Buffer | undefined)[] = [];
  readonly #specialPieces: (Buffer | undefined)[] = [];
  readonly #isEog: boolean[] = [];
  #endTokens: readonly number[] | undefined;
  #tokens = new Int32Array(4096);
  #longestPiece: number | undefined;
  readonly #piece = Buffer.alloc(512);
  /** Kept, since libllama has its address. */
  readonly tensorSplit: NativeArray<Float32Array> | undefined;

  private constructor(library: LlamaLibrary, pointer: bigint, split: NativeArray<Float32Array> | undefined) {
    this.library = library;
    this.tensorSplit = split;
    this.pointer = pointer;
    this.vocab = library.functions.llama_model_get_vocab(pointer)!;
    this.tokenCount = library.functions.llama_vocab_n_tokens(this.vocab);
  }

  static async load(library: LlamaLibrary, path: string, options: ModelLoadOptions): Promise<LlamaModel> {
    const { functions } = library;
    const split = options.tensorSplit.length === 0 ? undefined : tensorSplit(library, options.tensorSplit);
    // The return value says whether to go on; the callback comes from the loading thread and waits for ours.
    const progress = koffi.register((fraction: number) => {
      options.onProgress(fraction);
      return true;
    }, koffi.pointer(PROGRESS_CALLBACK));
    const params: ModelParams = {
      ...functions.llama_model_default_params(),
      n_gpu_layers: options.gpuLayers,
      split_mode: SPLIT_MODES[options.splitMode],
      main_gpu: options.mainGpu,
      tensor_split: split?.address ?? null,
      load_mode:
        (options.isMemoryMapped ? LOAD_MODE_MAPPED : LOAD_MODE_PLAIN) |
        (options.isMemoryLocked ? LOAD_MODE_LOCKED : LOAD_MODE_PLAIN),
      progress_callback: progress,
    };
    library.takeMessages();
    try {
      const pointer = await new Promise<bigint | null>((resolve, reject) => {
        functions.llama_model_load_from_file.async(path, params, (error, result) => {
          if (error) reject(error);
          else resolve(result);
        });
      });
      if (pointer === null) throw loadFailed(path, library.takeMessages());
      return new LlamaModel(library, pointer, split);
    } finally {
      koffi.unregister(progress);
    }
  }

  get trainedContextLength(): number {
    return this.library.functions.llama_model_n_ctx_train(this.pointer);
  }

  get embeddingLength(): number {
    return this.library.functions.llama_model_n_embd_out(this.pointer);
  }

  get classCount(): number {
    return this.library.functions.llama_model_n_cls_out(this.pointer);
  }

  /** Some layers look back at the last tokens only. */
  get hasSlidingWindow(): boolean {
    return this.library.functions.llama_model_n_swa(this.pointer) > 0;
  }

  /** Such models keep one state per sequence that cannot be cut back to an earlier token. */
  get isRecurrent(): boolean {
    const { functions } = this.library;
    return functions.llama_model_is_recurrent(this.pointer) || functions.llama_model_is_hybrid(this.pointer);
  }

  get hasEncoder(): boolean {
    return this.library.functions.llama_model_has_encoder(this.pointer);
  }

  get hasDecoder(): boolean {
    return this.library.functions.llama_model_has_decoder(this.pointer);
  }

  get isDiffusion(): boolean {
    return this.library.functions.llama_model_is_diffusion(this.pointer);
  }

  get description(): string {
    const { functions } = this.library;
    const length = functions.llama_model_desc(this.pointer, this.#piece, this.#piece.length);
    return this.#piece.toString('utf8', 0, Math.max(length, 0));
  }

  get byteLength(): number {
    return Number(this.library.functions.llama_model_size(this.pointer));
  }

  get chatTemplate(): string | undefined {
    return this.library.functions.llama_model_chat_template(this.pointer, null) ?? undefined;
  }

  /** `rerank` has {query} and {document} in it; `tool_use` is a chat template for requests with tools. Few models have any. */
  templateNamed(name: 'rerank' | 'tool_use'): string | undefined {
    return this.library.functions.llama_model_chat_template(this.pointer, name) ?? undefined;
  }

  /** A value of the GGUF's metadata as text. */
  metadata(key: string): string | undefined {
    const { functions } = this.library;
    const piece = this.#piece;
    const length = functions.llama_model_meta_val_str(this.pointer, key, piece, piece.length);
    return length < 0 ? undefined : piece.toString('utf8', 0, Math.min(length, piece.length));
  }

  get beginToken(): number {
    return this.library.functions.llama_vocab_bos(this.vocab);
  }

  get endToken(): number {
    return this.library.functions.llama_vocab_eos(this.vocab);
  }

  get separatorToken(): number {
    return this.library.functions.llama_vocab_sep(this.vocab);
  }

  get isBeginAdded(): boolean {
    return this.library.functions.llama_vocab_get_add_bos(this.vocab);
  }

  get isEndAdded(): boolean {
    return this.library.functions.llama_vocab_get_add_eos(this.vocab);
  }

  get isSeparatorAdded(): boolean {
    return this.library.functions.llama_vocab_get_add_sep(this.vocab);
  }

  /** Text of a token as the vocabulary writes it, for templates; empty where there is no such token. */
  tokenText(token: number): string {
    return token < 0 ? '' : (this.library.functions.llama_vocab_get_text(this.vocab, token) ?? '');
  }

  /** All tokens that end a generation. */
  get endTokens(): readonly number[] {
    this.#endTokens ??= Array.from({ length: this.tokenCount }, (_, token) => token).filter((token) =>
      this.isEndOfGeneration(token),
    );
    return this.#endTokens;
  }

  isEndOfGeneration(token: number): boolean {
    this.#isEog[token] ??= this.library.functions.llama_vocab_is_eog(this.vocab, token);
    return this.#isEog[token];
  }

  tokenize(text: string, options: TokenizeOptions): number[] {
    const source = Buffer.from(text);
    for (;;) {
      const tokens = this.#tokens;
      const count = this.library.functions.llama_tokenize(
        ...([this.vocab, source, source.length, tokens, tokens.length] as const),
        ...([options.isSpecialAdded, options.isSpecialParsed] as const),
      );
      if (count >= 0) return Array.from(tokens.subarray(0, count));
      this.#tokens = new Int32Array(moreTokens(count));
    }
  }

  /** The same on another thread, for texts that would take long. */
  tokenizeAside(text: string, options: TokenizeOptions): Promise<number[]> {
    return this.library.asideTokenizer.tokenize({ vocab: this.vocab, text, ...options });
  }

  /** Bytes of the longest token. */
  get longestPiece(): number {
    if (this.#longestPiece !== undefined) return this.#longestPiece;
    let longest = 1;
    for (let token = 0; token < this.tokenCount; token++) {
      longest = Math.max(longest, this.piece(token, true).length);
    }
    this.#longestPiece = longest;
    return longest;
  }

  /** The bytes of a token; a character may be spread over several. `isSpecial`: control tokens have a text, too. */
  piece(token: number, isSpecial: boolean): Buffer {
    const pieces = isSpecial ? this.#specialPieces : this.#pieces;
    pieces[token] ??= this.#readPiece(token, isSpecial);
    return pieces[token];
  }

  #readPiece(token: number, isSpecial: boolean): Buffer {
    const { functions } = this.library;
    if (token < 0 || token >= this.tokenCount) return Buffer.alloc(0);
    let target = this.#piece;
    for (;;) {
      const length = functions.llama_token_to_piece(this.vocab, token, target, target.length, 0, isSpecial);
      if (length >= 0) return Buffer.from(target.subarray(0, length));
      target = Buffer.alloc(-length);
    }
  }

  /** The address of a LoRA adapter, which lives as long as the model. */
  loadAdapter(path: string): bigint {
    this.library.takeMessages();
    const pointer = this.library.functions.llama_adapter_lora_init(this.pointer, path);
    if (pointer === null) {
      throw new StatusError(
        'INVALID_ARG',
        `LoRA adapter ${path} cannot be loaded: ${why(this.library.takeMessages())}`,
      );
    }
    return pointer;
  }

  free(): void {
    this.library.functions.llama_model_free(this.pointer);
  }
}

const INT32_MIN = -(2 ** 31);

/** What there must be room for, by what libllama answers where there was not enough. */
function moreTokens(count: number): number {
  if (count === INT32_MIN)
    throw new StatusError('INVALID_ARG', 'the text has more tokens than can be counted');
  return -count;
}

function tensorSplit(library: LlamaLibrary, shares: readonly number[]): NativeArray<Float32Array> {
  const array = float32Array(Number(library.functions.llama_max_devices()));
  if (shares.length > array.values.length) {
    throw new StatusError(
      'INVALID_ARG',
      `tensor_split has ${shares.length} shares, at most ${array.values.length} are allowed`,
    );
  }
  array.values.set(shares);
  return array;
}

function loadFailed(path: string, messages: readonly string[]): StatusError {
  return new StatusError('INVALID_ARG', `${path} cannot be loaded: ${why(messages)}`);
}

/** The library says what is wrong before it says that it failed; names of its functions are left out. */
function why(messages: readonly string[]): string {
  const reasons = messages.map((line) => line.replace(/^\w+: (error loading model: )?/, ''));
  const told = reasons.filter((line) => line !== 'failed to load model' && line !== '');
  return told.slice(-3).join('; ') || 'libllama gave no reason';
}
