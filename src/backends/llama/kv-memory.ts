// How much memory a KV cache takes, by what the GGUF says of its layers, and whether the machine has it. Linux promises memory
// that it does not have and ends processes when it is used, ours or others': so it is asked for before libllama takes it.
// Called by llama-backend.ts; pure but for the question how much is free.

import { StatusError } from '../../domain/status.ts';
import type { CacheType } from './library/context.ts';
import { freeMemoryBytes } from './weights-memory.ts';

/** Bytes of one element; quantized types pack 32 of them with their scales. */
const BYTES: Readonly<Record<CacheType, number>> = {
  f32: 4,
  f16: 2,
  bf16: 2,
  q8_0: 34 / 32,
  q5_1: 24 / 32,
  q5_0: 22 / 32,
  q4_1: 20 / 32,
  q4_0: 18 / 32,
  iq4_nl: 18 / 32,
};

export interface KvCache {
  readonly cellCount: number;
  readonly cacheTypeK: CacheType;
  readonly cacheTypeV: CacheType;
}

/** Undefined where the metadata does not say it all, as for recurrent models. */
export function kvCacheBytes(
  metadata: (key: string) => string | undefined,
  { cellCount, cacheTypeK, cacheTypeV }: KvCache,
): number | undefined {
  const architecture = metadata('general.architecture') ?? '';
  const read = (key: string) => Number(metadata(`${architecture}.${key}`) ?? Number.NaN);
  const layerCount = read('block_count');
  const headCount = sumOf(metadata(`${architecture}.attention.head_count`), layerCount) / layerCount;
  const headLength = read('embedding_length') / headCount;
  const kvHeads = sumOf(
    metadata(`${architecture}.attention.head_count_kv`) ?? metadata(`${architecture}.attention.head_count`),
    layerCount,
  );
  const keyLength = orElse(read('attention.key_length'), headLength);
  const valueLength = orElse(read('attention.value_length'), headLength);
  const bytes = cellCount * kvHeads * (keyLength * BYTES[cacheTypeK] + valueLength * BYTES[cacheTypeV]);
  return Number.isFinite(bytes) ? bytes : undefined;
}

export function checkKvMemory(metadata: (key: string) => string | undefined, cache: KvCache): void {
  const neededBytes = kvCacheBytes(metadata, cache);
  const freeBytes = freeMemoryBytes();
  if (neededBytes === undefined || neededBytes <= freeBytes) return;
  throw new StatusError(
    'UNAVAILABLE',
    `a KV cache of ${cache.cellCount} cells needs ${gigabytes(neededBytes)} GB, but only ${gigabytes(freeBytes)} GB of memory ` +
      'are free; lower kv_cells, or quantize the cache with cache_type_k and cache_type_v',
  );
}

/** Over all layers: one number for each of them, or a list. */
function sumOf(value: string | undefined, layerCount: number): number {
  if (value === undefined) return Number.NaN;
  if (!value.startsWith('[')) return Number(value) * layerCount;
  const numbers = value.replace(/[[\]]/g, '').split(',').map(Number);
  return numbers.length === layerCount ? numbers.reduce((sum, number) => sum + number, 0) : Number.NaN;
}

function orElse(value: number, fallback: number): number {
  return Number.isNaN(value) ? fallback : value;
}

function gigabytes(bytes: number): string {
  return (bytes / 1e9).toFixed(1);
}
