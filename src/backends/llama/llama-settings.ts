// Reads the parameters of a llama model's config.pbtxt. Each has a default that fits most; a wrong value or an unknown name
// fails the load with a text that says what is right. docs/llm.md lists them.

import { readdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { LoadContext } from '../../backend/sdk.ts';
import { invalidArgument } from '../../domain/status.ts';
import { CONTEXTS_MAX } from './call-threads.ts';
import { CACHE_TYPES, type CacheType, POOLING, type Pooling } from './library/context.ts';

export interface LlamaSettings {
  readonly modelFile: string;
  /** Undefined: from the model. */
  readonly contextLength: number | undefined;
  readonly isContextShift: boolean;
  readonly kvCells: number | undefined;
  /** Undefined: by how large the model is, and where. */
  readonly contextCount: number | undefined;
  /** Undefined: by where the model is. */
  readonly maxRunning: number | undefined;
  readonly maxWaiting: number;
  /** Undefined: by where the model is. */
  readonly stepTokens: number | undefined;
  /** Undefined: by where the model is. */
  readonly prefillChunk: number | undefined;
  readonly promptCells: number | undefined;
  /** Undefined: by where the model is. */
  readonly threads: number | undefined;
  /** Undefined: as many as those. */
  readonly batchThreads: number | undefined;
  /** The instance's share of the cores. */
  readonly coreCount: number;
  /** Calls of libllama that can be under way on other threads at once. */
  readonly callThreads: number;
  readonly isPrefixCache: boolean;
  /** Undefined: as many as there are on a GPU, a few on a CPU. */
  readonly prefixCacheCells: number | undefined;
  /** Negative: all. */
  readonly gpuLayers: number;
  readonly splitMode: 'none' | 'layer' | 'row' | 'tensor';
  readonly mainGpu: number;
  readonly tensorSplit: readonly number[];
  readonly cacheTypeK: CacheType;
  readonly cacheTypeV: CacheType;
  readonly flashAttention: 'auto' | 'on' | 'off';
  /** Undefined: on a GPU. */
  readonly isDeviceSampling: boolean | undefined;
  /** Beside the main thread. Undefined: some on a GPU, none on a CPU. */
  readonly samplerThreads: number | undefined;
  readonly draftFile: string | undefined;
  readonly draftTokens: number;
  readonly draftSequencesMax: number;
  readonly speculative: Speculation;
  readonly adapters: readonly { readonly name: string; readonly file: string }[];
  /** A file beside the model, in place of the template in the GGUF. */
  readonly chatTemplateFile: string | undefined;
  readonly pooling: Pooling;
  readonly isEmbedding: boolean;
  /** Undefined: by where the model is and how much memory is free. */
  readonly isMemoryMapped: boolean | undefined;
  readonly isMemoryLocked: boolean;
}

const DEFAULT_FILE = 'model.gguf';

export type Speculation = 'off' | 'draft' | 'lookup';

const NAMES = [
  'model_file',
  'context_length',
  'context_shift',
  'kv_cells',
  'contexts',
  'max_running',
  'max_waiting',
  'step_tokens',
  'prefill_chunk',
  'prompt_cells',
  'threads',
  'threads_batch',
  'prefix_cache',
  'prefix_cache_cells',
  'gpu_layers',
  'split_mode',
  'main_gpu',
  'tensor_split',
  'cache_type_k',
  'cache_type_v',
  'flash_attention',
  'device_sampling',
  'sampler_threads',
  'draft_model',
  'draft_tokens',
  'draft_max_running',
  'speculative',
  'lora_adapters',
  'chat_template',
  'pooling',
  'embeddings',
  'mmap',
  'mlock',
] as const;

type Name = (typeof NAMES)[number];

export function readSettings(context: LoadContext): LlamaSettings {
  const values = new Map<string, string>();
  for (const [name, { string_value }] of Object.entries(context.config.parameters)) {
    if (!(NAMES as readonly string[]).includes(name)) {
      throw invalidArgument(`unknown parameter '${name}' of a llama model; known are ${NAMES.join(', ')}`);
    }
    values.set(name, string_value);
  }
  const read = new Reader(values);
  const inVersion = (file: string) => (isAbsolute(file) ? file : join(context.versionDirectory, file));
  const draft = read.text('draft_model');
  const template = read.text('chat_template');
  return {
    modelFile: inVersion(read.text('model_file') ?? fileName(context)),
    contextLength: read.integer('context_length', 16, 1 << 24),
    isContextShift: read.boolean('context_shift') ?? false,
    kvCells: read.integer('kv_cells', 16, 1 << 26),
    contextCount: read.integer('contexts', 1, CONTEXTS_MAX),
    maxRunning: read.integer('max_running', 1, 256),
    maxWaiting: read.integer('max_waiting', 1, 1 << 20) ?? 1024,
    stepTokens: read.integer('step_tokens', 1, 65536),
    prefillChunk: read.integer('prefill_chunk', 1, 65536),
    promptCells: read.integer('prompt_cells', 0, 1 << 26),
    threads: read.integer('threads', 1, 512),
    batchThreads: read.integer('threads_batch', 1, 512),
    coreCount: context.placement.threadCount,
    callThreads: Number(process.env['UV_THREADPOOL_SIZE'] ?? 1),
    isPrefixCache: read.boolean('prefix_cache') ?? true,
    prefixCacheCells: read.integer('prefix_cache_cells', 0, 1 << 26),
    gpuLayers: read.integer('gpu_layers', -1, 1 << 16) ?? (context.placement.kind === 'KIND_CPU' ? 0 : -1),
    splitMode: read.oneOf('split_mode', ['none', 'layer', 'row', 'tensor']) ?? 'layer',
    mainGpu: read.integer('main_gpu', 0, 64) ?? Math.max(context.placement.deviceId, 0),
    tensorSplit: read.shares('tensor_split'),
    cacheTypeK: read.oneOf('cache_type_k', keysOf(CACHE_TYPES)) ?? 'f16',
    cacheTypeV: read.oneOf('cache_type_v', keysOf(CACHE_TYPES)) ?? 'f16',
    flashAttention: read.oneOf('flash_attention', ['auto', 'on', 'off']) ?? 'auto',
    isDeviceSampling: read.boolean('device_sampling'),
    samplerThreads: read.integer('sampler_threads', 0, 64),
    draftFile: draft === undefined ? undefined : inVersion(draft),
    draftTokens: read.integer('draft_tokens', 1, 64) ?? 5,
    draftSequencesMax: read.integer('draft_max_running', 1, 256) ?? 4,
    speculative: speculation(read, draft),
    adapters: read.adapters('lora_adapters').map(({ name, file }) => ({ name, file: inVersion(file) })),
    chatTemplateFile: template === undefined ? undefined : inVersion(template),
    pooling: read.oneOf('pooling', keysOf(POOLING)) ?? 'unspecified',
    isEmbedding: read.boolean('embeddings') ?? false,
    isMemoryMapped: read.boolean('mmap'),
    isMemoryLocked: read.boolean('mlock') ?? false,
  };
}

function speculation(read: Reader, draft: string | undefined): Speculation {
  const value = read.oneOf('speculative', ['off', 'draft', 'lookup']);
  if (value === 'draft' && draft === undefined) {
    throw invalidArgument("parameter 'speculative' is \"draft\", but 'draft_model' names no file");
  }
  return value ?? (draft === undefined ? 'off' : 'draft');
}

/** What the config says, model.gguf, or the only one there is; of a model in parts the first. */
function fileName({ versionDirectory: directory, config }: LoadContext): string {
  const files = readdirSync(directory).filter((name) => name.endsWith('.gguf'));
  const named = config.default_model_filename || DEFAULT_FILE;
  if (files.includes(named) || named !== DEFAULT_FILE) return named;
  const whole = files.filter((name) => !/-\d{5}-of-\d{5}\.gguf$/.test(name) || /-00001-of-/.test(name));
  if (whole.length === 1) return whole[0]!;
  if (whole.length === 0) throw invalidArgument(`no GGUF file in ${directory}; it is expected as model.gguf`);
  throw invalidArgument(
    `${directory} has several GGUF files (${whole.sort().join(', ')}); name one with the parameter 'model_file'`,
  );
}

class Reader {
  readonly #values: ReadonlyMap<string, string>;

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values;
  }

  text(name: Name): string | undefined {
    const value = this.#values.get(name);
    return value === '' ? undefined : value;
  }

  integer(name: Name, low: number, high: number): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (Number.isInteger(number) && number >= low && number <= high) return number;
    throw wrong(name, value, `a whole number from ${low} to ${high}`);
  }

  boolean(name: Name): boolean | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if (/^(true|1|on|yes)$/i.test(value)) return true;
    if (/^(false|0|off|no)$/i.test(value)) return false;
    throw wrong(name, value, 'true or false');
  }

  oneOf<T extends string>(name: Name, allowed: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if ((allowed as readonly string[]).includes(value)) return value as T;
    throw wrong(name, value, `one of ${allowed.join(', ')}`);
  }

  shares(name: Name): number[] {
    const value = this.text(name);
    if (value === undefined) return [];
    const shares = value.split(/[,/]/).map(Number);
    if (shares.every((share) => Number.isFinite(share) && share >= 0) && shares.some((share) => share > 0))
      return shares;
    throw wrong(name, value, 'shares of the GPUs such as "3,1"');
  }

  adapters(name: Name): { name: string; file: string }[] {
    const value = this.text(name);
    if (value === undefined) return [];
    let parsed: unknown;
    try {
      parsed = JSON.parse(value);
    } catch {
      throw wrong(name, value, 'JSON such as {"name": "file.gguf"}');
    }
    const isTable = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    const entries = isTable ? Object.entries(parsed as object) : [];
    if (!isTable || entries.some(([, file]) => typeof file !== 'string')) {
      throw wrong(name, value, 'JSON such as {"name": "file.gguf"}');
    }
    return entries.map(([adapter, file]) => ({ name: adapter, file: file as string }));
  }
}

function wrong(name: Name, value: string, right: string): Error {
  return invalidArgument(`parameter '${name}' is "${value}"; it must be ${right}`);
}

function keysOf<T extends object>(table: T): (keyof T & string)[] {
  return Object.keys(table) as (keyof T & string)[];
}
