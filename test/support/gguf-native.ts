// libllama in the test's own process: models and contexts as the backend makes them, without a server. For tests of the
// parts of the llama backend that call native code, and for numbers to compare a server's answers with.
import { type ContextOptions, LlamaContext } from '../../src/backends/llama/library/context.ts';
import { loadLibrary } from '../../src/backends/llama/library/libllama.ts';
import { LlamaModel } from '../../src/backends/llama/library/model.ts';

export function loadNativeModel(file: string): Promise<LlamaModel> {
  return LlamaModel.load(
    loadLibrary(undefined, () => {}),
    file,
    {
      ...{ gpuLayers: 0, splitMode: 'none', mainGpu: 0, tensorSplit: [] },
      ...{ isMemoryMapped: true, isMemoryLocked: false, onProgress: () => {} },
    },
  );
}

export function createNativeContext(model: LlamaModel, options: Partial<ContextOptions> = {}): LlamaContext {
  return LlamaContext.create(model, {
    ...{ cellCount: 512, sequenceCount: 4, stepTokensMax: 512, threadCount: 2, batchThreadCount: 2 },
    ...{ cacheTypeK: 'f16', cacheTypeV: 'f16', flashAttention: 'auto', pooling: 'unspecified' },
    ...{ isEmbedding: false, hasDevice: false, outputsPerSequenceMax: 1, deviceSampledCount: 0 },
    ...options,
  });
}

/** The pooled output of one input in a batch of its own. */
export async function poolAlone(
  model: LlamaModel,
  tokens: readonly number[],
  options: { readonly length: number } & Partial<ContextOptions>,
): Promise<number[]> {
  const context = createNativeContext(model, { sequenceCount: 1, isEmbedding: true, ...options });
  try {
    context.beginBatch();
    for (const [position, token] of tokens.entries()) context.addRow(token, position, 0, true);
    const code = await context.decode();
    if (code !== 0) throw new Error(`decode answered ${code}`);
    await context.finishCompute();
    return Array.from(context.embeddingOfSequence(0, options.length)!);
  } finally {
    context.free();
  }
}
