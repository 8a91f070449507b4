// How large everything is for one model: contexts, cells, sequences, steps. From the settings where they say so, else from
// the model file. Pure but for questions to the model.

import { invalidArgument } from '../../domain/status.ts';
import { POOLING, type Pooling } from './library/context.ts';
import type { LlamaLibrary } from './library/libllama.ts';
import type { LlamaModel } from './library/model.ts';
import type { LlamaSettings } from './llama-settings.ts';

export interface ModelLimits {
  readonly isGenerating: boolean;
  readonly isEmbedding: boolean;
  /** Tokens of one request, prompt and answer together. */
  readonly contextLength: number;
  readonly cellCount: number;
  readonly sequenceCount: number;
  readonly runningMax: number;
  readonly stepTokens: number;
  readonly prefillChunk: number;
  readonly apartRows: number;
  /** Of the cache in which long prompts are computed apart from the others; 0: there is none. */
  readonly promptCells: number;
  readonly isPrefixCache: boolean;
  readonly keptCellsMax: number;
  readonly keptCellsMin: number;
  readonly embeddingTokens: number;
  readonly pooling: Pooling;
  /** One state per sequence, which cannot be cut back to an earlier token: no shared prefixes, no speculation. */
  readonly isRecurrent: boolean;
  /** Greedy tokens are chosen where the logits are; then libllama has two ids for each sequence. */
  readonly isDeviceSampling: boolean;
  readonly hasDevice: boolean;
  readonly threads: number;
  readonly batchThreads: number;
}

const CONTEXT_LENGTH_DEFAULT_MAX = 8192;
const CELLS_DEFAULT = 16384;
const CELLS_DEFAULT_ON_GPU = 65536;
/** With more texts side by side a CPU spends more on cells that are not theirs than a larger batch saves (docs/adr/0010). */
const RUNNING_MAX = 16;
const RUNNING_MAX_ON_GPU = 64;
const STEP_TOKENS = 512;
const STEP_TOKENS_ON_GPU = 2048;
/**
 * Rows of a prompt that running texts have to wait for: some tenths of a second of a small model on a CPU. Beside a GPU
 * `engine/step-pace.ts` sees to that.
 */
const PREFILL_CHUNK = 128;
/**
 * A CPU's attention takes so many rows and more in tiles, and computes for all rows of a tile what one of them needs: a few
 * decodes beside a prompt cost more than a step of their own (docs/adr/0010).
 */
const APART_ROWS = 64;
/** What is longer goes on in the cache of all. */
const PROMPT_CELLS_MAX = 2048;
/**
 * Every row of a decode looks at every cell, if only to see that it is not its own: on a CPU in the arithmetic, beside a GPU in
 * the mask that is made for it. None at all while prompts do not begin alike (docs/adr/0010).
 */
const KEPT_CELLS_DEFAULT = 1024;
const KEPT_CELLS_WITHOUT_REUSE = 0;
const EMBEDDING_TOKENS_DEFAULT_MAX = 2048;
/** Sequence ids for running requests and for kept prefixes; libllama has at most 256. */
const SEQUENCES_MAX = 256;

/** What the limits depend on. */
export type ModelFacts = Pick<
  LlamaModel,
  'metadata' | 'hasDecoder' | 'trainedContextLength' | 'isRecurrent' | 'hasSlidingWindow'
>;
export type DeviceFacts = Pick<LlamaLibrary, 'devices'>;

export function planLimits(model: ModelFacts, settings: LlamaSettings, library: DeviceFacts): ModelLimits {
  const architecture = model.metadata('general.architecture') ?? '';
  const poolingInFile = Number(model.metadata(`${architecture}.pooling_type`) ?? Number.NaN);
  const isCausal = model.metadata(`${architecture}.attention.causal`) !== 'false';
  const isPooled = poolingInFile >= 1 || settings.pooling === 'rank';
  const isGenerating = model.hasDecoder && isCausal && !isPooled;
  const trained = model.trainedContextLength;
  const contextLength = settings.contextLength ?? Math.min(trained, CONTEXT_LENGTH_DEFAULT_MAX);
  const isGpu = isOnGpu(settings, library);
  const cellCount = settings.kvCells ?? Math.max(isGpu ? CELLS_DEFAULT_ON_GPU : CELLS_DEFAULT, contextLength);
  if (cellCount < contextLength && settings.contextLength !== undefined) {
    throw invalidArgument(
      `kv_cells is ${cellCount}, less than context_length ${contextLength}: one request could not be finished`,
    );
  }
  const { isRecurrent } = model;
  const threads = settings.threads ?? planThreads(model, settings, isGpu);
  if (isRecurrent && settings.speculative !== 'off') {
    throw invalidArgument(
      'parameter \'speculative\' must be "off": the state of a recurrent model cannot be cut back',
    );
  }
  const isPrefixCache = settings.isPrefixCache && !isRecurrent;
  const isEmbedding = !isGenerating || settings.isEmbedding;
  const pooling = planPooling(settings.pooling, poolingInFile);
  if (isEmbedding && pooling === 'none') {
    throw invalidArgument(
      'parameter \'pooling\' is "none", but an input needs one vector: mean, cls, last or rank',
    );
  }
  const isDeviceSampling = (settings.isDeviceSampling ?? isGpu) && settings.splitMode !== 'tensor';
  const idCount = isDeviceSampling ? SEQUENCES_MAX / 2 : SEQUENCES_MAX;
  const runningDefault = isGpu ? RUNNING_MAX_ON_GPU : RUNNING_MAX;
  const stepTokens = settings.stepTokens ?? (isGpu ? STEP_TOKENS_ON_GPU : STEP_TOKENS);
  const runningMax = Math.min(settings.maxRunning ?? runningDefault, stepTokens, idCount);
  const sequenceCount = isPrefixCache ? idCount : runningMax;
  return {
    isGenerating,
    isEmbedding,
    contextLength: Math.min(contextLength, cellCount),
    cellCount,
    sequenceCount,
    runningMax,
    stepTokens,
    prefillChunk: Math.min(settings.prefillChunk ?? (isGpu ? stepTokens : PREFILL_CHUNK), stepTokens),
    promptCells: planPromptCells(model, settings, { isGpu, contextLength }),
    apartRows: isGpu ? Number.POSITIVE_INFINITY : APART_ROWS,
    isPrefixCache,
    keptCellsMax: settings.prefixCacheCells ?? (isGpu ? cellCount : KEPT_CELLS_DEFAULT),
    keptCellsMin: settings.prefixCacheCells ?? KEPT_CELLS_WITHOUT_REUSE,
    embeddingTokens: Math.min(
      trained,
      settings.contextLength ?? (isGenerating ? EMBEDDING_TOKENS_DEFAULT_MAX : CONTEXT_LENGTH_DEFAULT_MAX),
    ),
    pooling,
    isRecurrent,
    isDeviceSampling,
    hasDevice: isGpu,
    threads,
    batchThreads: settings.batchThreads ?? threads,
  };
}

/** A sliding window loses what it no longer sees when it moves, and a shared beginning may need it; a recurrent state has no cells. */
function planPromptCells(
  { isRecurrent, hasSlidingWindow }: ModelFacts,
  { promptCells }: LlamaSettings,
  { isGpu, contextLength }: { readonly isGpu: boolean; readonly contextLength: number },
): number {
  const obstacle = isGpu
    ? 'on a GPU'
    : isRecurrent || hasSlidingWindow
      ? 'with a sliding window or a recurrent state'
      : undefined;
  if (obstacle === undefined) return promptCells ?? Math.min(PROMPT_CELLS_MAX, contextLength);
  if (promptCells === undefined || promptCells === 0) return 0;
  throw invalidArgument(`parameter 'prompt_cells' must be 0 for a model ${obstacle}`);
}

/** As told, else as the file says. A model that was not made for it has none; the mean of its tokens serves best. */
function planPooling(told: Pooling, inFile: number): Pooling {
  const names = Object.keys(POOLING) as Pooling[];
  return told === 'unspecified'
    ? (names.find((name) => POOLING[name] === inFile && inFile >= 1) ?? 'mean')
    : told;
}

export function isOnGpu({ gpuLayers }: LlamaSettings, library: DeviceFacts): boolean {
  return gpuLayers !== 0 && library.devices.some(({ kind }) => kind === 'GPU');
}

/**
 * A GPU with all layers leaves the CPU one row of a table per token, and libllama gives that to one thread; others would only
 * spin beside it.
 */
function planThreads(model: ModelFacts, settings: LlamaSettings, isGpu: boolean): number {
  return isGpu && hasAllLayers(model, settings) ? 1 : settings.coreCount;
}

/** The GPU, if there is one. The output counts as a layer. */
export function hasAllLayers(model: ModelFacts, { gpuLayers }: LlamaSettings): boolean {
  const architecture = model.metadata('general.architecture') ?? '';
  const layers = Number(model.metadata(`${architecture}.block_count`) ?? Number.NaN) + 1;
  return gpuLayers < 0 || gpuLayers >= layers;
}

const SAMPLER_THREADS_MAX = 8;
/** With fewer, threads that choose tokens would only be in each other's way. */
const SAMPLER_CORES_MIN = 4;

/** A CPU computes the next step with all its cores; beside a GPU they are free. */
export function planSamplerThreads(
  told: number | undefined,
  { hasDevice, coreCount }: { readonly hasDevice: boolean; readonly coreCount: number },
): number {
  if (told !== undefined) return told;
  return hasDevice && coreCount >= SAMPLER_CORES_MIN ? Math.min(SAMPLER_THREADS_MAX, coreCount - 2) : 0;
}
