// The llama backend: a GGUF file served by libllama. Loads library, model, adapters and draft model, makes the contexts, and
// starts the instance that answers requests. docs/llm.md is the user's side of it.

import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import type { Backend, BackendInstance, BackendModel, LoadContext } from '../../backend/sdk.ts';
import type { ServerCalls } from '../../backend/server-calls.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { completeConfig } from './complete-config.ts';
import { Drafter } from './engine/drafter.ts';
import { findVocabularyDifference } from './engine/drafter-vocabulary.ts';
import { EmbeddingEngine } from './engine/embedding-engine.ts';
import { SamplerPool } from './engine/sampler-pool.ts';
import type { SideContextOptions } from './engine/side-context.ts';
import { checkKvMemory } from './kv-memory.ts';
import { LlamaContext } from './library/context.ts';
import { type LlamaLibrary, loadLibrary } from './library/libllama.ts';
import { LlamaModel } from './library/model.ts';
import { LlamaInstance } from './llama-instance.ts';
import { type LlamaSettings, readSettings } from './llama-settings.ts';
import { limitsOfEach, planContexts } from './plan-contexts.ts';
import { isOnGpu, type ModelLimits, planLimits, planSamplerThreads } from './plan-limits.ts';
import { freeMemoryBytes, hasLargePages, isMappedBest, weightsBytes } from './weights-memory.ts';

export const llamaBackend: Backend = {
  name: 'llama',
  async load(context: LoadContext): Promise<BackendModel> {
    // A step comes a few dozen times a second: what runs in each would be interpreted for minutes before V8 compiles it.
    setFlagsFromString('--interrupt-budget=10000');
    const settings = readSettings(context);
    checkFile(settings.modelFile);
    const library = loadLibrary(context.backendConfig['library-path'], context.log);
    const config = completeConfig(context.config);
    return {
      config,
      isRequestInfoWanted: true,
      start: (started, calls) => start({ context, settings, library, config: started, calls }),
    };
  },
};

interface StartParts {
  readonly context: LoadContext;
  readonly settings: LlamaSettings;
  readonly library: LlamaLibrary;
  readonly config: ModelConfig;
  readonly calls: ServerCalls | undefined;
}

async function start({ context, settings, library, config, calls }: StartParts): Promise<BackendInstance> {
  const model = await loadModel(library, settings.modelFile, settings, context);
  if (!model.hasDecoder && !model.hasEncoder) throw invalidArgument(`${settings.modelFile} is no text model`);
  if (model.hasDecoder && model.hasEncoder) {
    throw invalidArgument(`${settings.modelFile} is an encoder-decoder model, which is not supported`);
  }
  if (model.isDiffusion)
    throw invalidArgument(`${settings.modelFile} is a diffusion model, which is not supported`);
  const limits = planLimits(model, settings, library);
  if (limits.isGenerating && !isOnGpu(settings, library))
    checkKvMemory((key) => model.metadata(key), {
      ...settings,
      cellCount: limits.cellCount + limits.promptCells,
    });
  const contextCount = limits.isGenerating ? planContexts(model, settings, limits) : 0;
  const eachLimits = limitsOfEach(limits, contextCount);
  context.log('info', describe(model, { limits, contextCount, library }));
  const contexts = Array.from({ length: contextCount }, () =>
    LlamaContext.create(model, contextOptions(settings, eachLimits)),
  );
  if (limits.hasDevice) for (const generating of contexts) generating.warmUp();
  return new LlamaInstance({
    config,
    model,
    limits,
    eachLimits,
    settings,
    version: context.version,
    contexts,
    side: contextCount === 1 ? makeSide(contexts[0]!, settings, limits) : undefined,
    pool: contextCount === 0 ? undefined : await startPool(model, settings, eachLimits, context),
    embedding: limits.isEmbedding ? makeEmbedding(model, settings, limits) : undefined,
    drafter:
      settings.draftFile === undefined
        ? undefined
        : await makeDrafter({ library, settings, limits, model, context, main: contexts[0] }),
    adapters: settings.adapters.map(({ file }) => {
      checkFile(file);
      return model.loadAdapter(file);
    }),
    chatTemplate: readTemplate(settings, model),
    calls,
    log: context.log,
  });
}

/** Progress in the log at most once in two seconds: a load of a large file takes minutes. */
const PROGRESS_MS = 2000;

function loadModel(
  library: LlamaLibrary,
  file: string,
  settings: LlamaSettings,
  context: LoadContext,
): Promise<LlamaModel> {
  let lastMs = performance.now();
  const isMemoryMapped = isMappedBest({
    isMapped: settings.isMemoryMapped,
    isOnGpu: isOnGpu(settings, library),
    fileBytes: weightsBytes(file),
    freeBytes: freeMemoryBytes(),
    hasLargePages: hasLargePages(),
  });
  return LlamaModel.load(library, file, {
    ...settings,
    isMemoryMapped,
    onProgress: (fraction) => {
      const nowMs = performance.now();
      if (nowMs - lastMs < PROGRESS_MS) return;
      lastMs = nowMs;
      context.log('info', `loading ${file}: ${Math.round(fraction * 100)} %`);
    },
  });
}

/** Cells for rows that nobody reads (engine/row-layout.ts): at most half as many as sequences; libllama rounds up to this. */
const PLACE_HOLDER_CELLS = 256;

function contextOptions(settings: LlamaSettings, limits: ModelLimits) {
  return {
    cellCount: limits.cellCount + (limits.hasDevice ? PLACE_HOLDER_CELLS : 0),
    sequenceCount: limits.isDeviceSampling ? limits.sequenceCount * 2 : limits.sequenceCount,
    stepTokensMax: limits.stepTokens,
    threadCount: limits.threads,
    batchThreadCount: limits.batchThreads,
    cacheTypeK: settings.cacheTypeK,
    cacheTypeV: settings.cacheTypeV,
    flashAttention: settings.flashAttention,
    pooling: 'unspecified' as const,
    isEmbedding: false,
    hasDevice: limits.hasDevice,
    outputsMax: Math.min(limits.stepTokens, limits.runningMax * (1 + settings.draftTokens)),
    outputsPerSequenceMax: 1 + settings.draftTokens,
    deviceSampledCount: limits.isDeviceSampling ? limits.sequenceCount : 0,
  };
}

/** So many prompts are computed side by side at most. */
const SIDE_SEQUENCES = 16;

function makeSide(
  main: LlamaContext,
  settings: LlamaSettings,
  limits: ModelLimits,
): SideContextOptions | undefined {
  if (limits.promptCells === 0) return undefined;
  const context = LlamaContext.create(main.model, {
    ...contextOptions(settings, limits),
    threadsOf: main,
    cellCount: limits.promptCells,
    sequenceCount: SIDE_SEQUENCES,
    outputsMax: SIDE_SEQUENCES,
    outputsPerSequenceMax: 1,
  });
  return { context, sequenceCount: SIDE_SEQUENCES, rowsMin: limits.apartRows };
}

async function startPool(
  { tokenCount }: LlamaModel,
  { samplerThreads }: LlamaSettings,
  { hasDevice, runningMax }: ModelLimits,
  { log }: LoadContext,
): Promise<SamplerPool | undefined> {
  const threadCount = planSamplerThreads(samplerThreads, { hasDevice, coreCount: availableParallelism() });
  if (threadCount === 0) return undefined;
  const logError = (message: string) => log('error', message);
  return SamplerPool.start({ threadCount, tokenCount, rowsMax: runningMax, logError });
}

function makeEmbedding(model: LlamaModel, settings: LlamaSettings, limits: ModelLimits): EmbeddingEngine {
  const sequencesMax = 32;
  const context = LlamaContext.create(model, {
    ...contextOptions(settings, limits),
    cellCount: limits.embeddingTokens,
    sequenceCount: sequencesMax,
    stepTokensMax: limits.embeddingTokens,
    outputsMax: limits.embeddingTokens,
    pooling: limits.pooling,
    isEmbedding: true,
    deviceSampledCount: 0,
  });
  return new EmbeddingEngine({
    context,
    batchTokensMax: limits.embeddingTokens,
    sequencesMax,
    waitingMax: settings.maxWaiting,
    outputLength: limits.pooling === 'rank' ? Math.max(model.classCount, 1) : model.embeddingLength,
  });
}

interface DrafterParts {
  readonly library: LlamaLibrary;
  readonly settings: LlamaSettings;
  readonly limits: ModelLimits;
  readonly model: LlamaModel;
  readonly context: LoadContext;
  readonly main: LlamaContext | undefined;
}

async function makeDrafter(parts: DrafterParts): Promise<Drafter> {
  const { library, settings, limits, model, context, main } = parts;
  checkFile(settings.draftFile!);
  const draft = await loadModel(library, settings.draftFile!, settings, context);
  const difference = findVocabularyDifference(draft, model);
  if (difference !== undefined) {
    throw invalidArgument(
      `draft model ${settings.draftFile} does not share the model's vocabulary: ${difference}`,
    );
  }
  if (draft.isRecurrent) {
    throw invalidArgument(
      `draft model ${settings.draftFile} is recurrent: its state cannot be cut back to what was accepted`,
    );
  }
  if (!limits.hasDevice) checkKvMemory((key) => draft.metadata(key), { ...settings, ...limits });
  const options = {
    ...contextOptions(settings, limits),
    deviceSampledCount: 0,
    ...(main === undefined ? {} : { threadsOf: main }),
  };
  return new Drafter({
    context: LlamaContext.create(draft, options),
    stepTokensMax: options.stepTokensMax,
    tokenCount: model.tokenCount,
  });
}

function readTemplate({ chatTemplateFile }: LlamaSettings, model: LlamaModel): string | undefined {
  if (chatTemplateFile === undefined) return model.chatTemplate;
  checkFile(chatTemplateFile);
  return readFileSync(chatTemplateFile, 'utf8');
}

function checkFile(file: string): void {
  if (!existsSync(file)) throw invalidArgument(`there is no file ${file}`);
}

function describe(
  model: LlamaModel,
  {
    limits,
    contextCount,
    library,
  }: { readonly limits: ModelLimits; readonly contextCount: number; readonly library: LlamaLibrary },
): string {
  const gpus = library.devices.filter(({ kind }) => kind === 'GPU').map(({ name }) => name);
  const what = limits.isGenerating
    ? `${limits.contextLength} tokens per request, ${limits.cellCount} KV cells${contextCount > 1 ? ` in ${contextCount} contexts` : ''}, at most ${limits.runningMax} at once`
    : `embeddings of up to ${limits.embeddingTokens} tokens`;
  const megabytes = Math.round(model.byteLength / 1e6);
  return `${model.description}, ${megabytes} MB, ${what}; libllama ${library.version} on ${gpus.join(', ') || 'CPU'}`;
}
