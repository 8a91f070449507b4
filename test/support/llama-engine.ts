// The LLM engine of a real libllama context without a server, for the contract tests: generations that note what they are told,
// and engines over contexts of any size, in one context or several.
import assert from 'node:assert/strict';
import { CandidateList } from '../../src/backends/llama/engine/candidate-list.ts';
import { Choice } from '../../src/backends/llama/engine/choice.ts';
import { Drafter } from '../../src/backends/llama/engine/drafter.ts';
import type { StepReport } from '../../src/backends/llama/engine/engine.ts';
import { EngineGroup } from '../../src/backends/llama/engine/engine-group.ts';
import type { Generation } from '../../src/backends/llama/engine/generation.ts';
import { TokenSampler } from '../../src/backends/llama/engine/token-sampler.ts';
import { CandidateMemory, GrammarConstraint } from '../../src/backends/llama/library/grammar.ts';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import type { StatusError } from '../../src/domain/status.ts';
import { createPrng } from '../../src/lib/prng.ts';
import { createNativeContext } from './gguf-native.ts';

export const EXACT = { cacheTypeK: 'f32', cacheTypeV: 'f32', threadCount: 1, batchThreadCount: 1 } as const;
export const PROMPT = [40, 50, 60, 70, 80];
/** Fewer than requests run, so that room must be made. */
export const SIDE_SEQUENCES = 3;

/** A generation that notes what it is told, and complains of what should not be. */
export class Noted implements Generation {
  readonly prompt: readonly number[];
  readonly choices: readonly Choice[];
  readonly maxTokens: number;
  readonly adapter = 0;
  readonly priority: number;
  readonly isDrafted: boolean;
  readonly ended: Promise<void>;
  readonly texts: string[];
  error: StatusError | undefined;
  endCount = 0;
  startCount = 0;
  cachedTokens = 0;
  isOver = false;
  #resolve: () => void = () => {};

  constructor(options: {
    prompt: readonly number[];
    choices: readonly Choice[];
    maxTokens: number;
    isDrafted: boolean;
    priority?: number;
  }) {
    this.prompt = options.prompt;
    this.choices = options.choices;
    this.texts = options.choices.map(() => '');
    this.maxTokens = options.maxTokens;
    this.isDrafted = options.isDrafted;
    this.priority = options.priority ?? 0;
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get text(): string {
    return this.texts.join('|');
  }

  onStarted(cachedTokens: number): void {
    this.startCount++;
    this.cachedTokens = cachedTokens;
  }

  onNews(): void {
    assert.equal(this.isOver, false, 'news after the end');
    for (const [i, choice] of this.choices.entries()) this.texts[i] += choice.takeNews().text;
    if (this.choices.every(({ finishReason }) => finishReason !== undefined)) this.#end();
  }

  onError(error: StatusError): void {
    this.error = error;
    this.#end();
  }

  /** As a client that goes: its native parts are freed at once. */
  cancel(): void {
    this.#end();
  }

  #end(): void {
    this.isOver = true;
    this.endCount++;
    for (const choice of this.choices) choice.free();
    this.#resolve();
  }
}

/** For one model, of 512 tokens. */
export function createEngineKit(model: LlamaModel) {
  const grammarScratch = new CandidateMemory(model.tokenCount);
  const candidates = new CandidateList(512);
  const makeEngine = (
    options: {
      cellCount?: number;
      contextCount?: number;
      runningMax?: number;
      isDrafting?: boolean;
      isDeviceSampling?: boolean;
      hasDevice?: boolean;
      waitingMax?: number;
      keptCells?: number;
      contextLength?: number;
      /** Prompts of so many rows are computed in a context of their own. */
      asideRows?: number;
    } = {},
  ) => {
    const { cellCount = 1024, runningMax = 8, waitingMax = 100, keptCells = cellCount } = options;
    const { isDrafting = false, isDeviceSampling = false, hasDevice = false } = options;
    const { contextLength = cellCount, asideRows } = options;
    const isContextShift = contextLength < cellCount;
    const contexts = Array.from({ length: options.contextCount ?? 1 }, () =>
      createNativeContext(model, {
        ...EXACT,
        hasDevice,
        // With room for the rows that nobody reads.
        cellCount: hasDevice ? cellCount + 256 : cellCount,
        sequenceCount: isDeviceSampling ? 64 : 32,
        stepTokensMax: 64,
        outputsPerSequenceMax: 4,
        deviceSampledCount: isDeviceSampling ? 32 : 0,
      }),
    );
    const context = contexts[0]!;
    const draft = isDrafting
      ? createNativeContext(model, { ...EXACT, cellCount, sequenceCount: 32, stepTokensMax: 64 })
      : undefined;
    const side =
      asideRows === undefined
        ? undefined
        : createNativeContext(model, {
            ...EXACT,
            ...{ cellCount: 256, sequenceCount: SIDE_SEQUENCES, stepTokensMax: 64 },
            ...{ outputsMax: SIDE_SEQUENCES, threadsOf: context },
          });
    const reports: StepReport[] = [];
    const engine = new EngineGroup({
      contexts,
      side: side && { context: side, sequenceCount: SIDE_SEQUENCES, rowsMin: asideRows! },
      limits: {
        ...{
          cellCount,
          sequenceCount: 32,
          stepTokensMax: 64,
          prefillChunkMax: 32,
          apartRowsMin: asideRows ?? 64,
          runningMax,
          waitingMax,
        },
        ...{
          contextLength,
          isContextShift,
          isPrefixReuse: true,
          keptCellsMax: keptCells,
          keptCellsMin: keptCells,
        },
      },
      adapters: [],
      isDeviceSampling,
      drafter:
        draft === undefined ? undefined : new Drafter({ context: draft, stepTokensMax: 64, tokenCount: 512 }),
      draftTokens: 3,
      draftSequencesMax: 8,
      onStep: (report) => reports.push(report),
      warn: (message) => assert.fail(message),
    });
    const close = async () => {
      await engine.close();
      side?.free();
      for (const each of contexts) each.free();
      draft?.free();
    };
    return { engine, context, contexts, side, reports, close };
  };

  const makeGeneration = (
    options: {
      prompt?: readonly number[];
      maxTokens?: number;
      n?: number;
      grammar?: string;
      seed?: number;
      isDrafted?: boolean;
      priority?: number;
    } = {},
  ) => {
    const { prompt = PROMPT, maxTokens = 12, n = 1, seed, isDrafted = false } = options;
    const choices = Array.from({ length: n }, (_, i) => {
      const settings = {
        ...{
          temperature: seed === undefined ? 0 : 1,
          topK: 3,
          topP: 1,
          minP: 0,
          typicalP: 1,
          penaltyLastTokens: -1,
        },
        ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, logitBias: new Map() },
      };
      const sampler = new TokenSampler(settings, prompt, createPrng((seed ?? 0) + i), candidates);
      const grammar =
        options.grammar === undefined
          ? undefined
          : new GrammarConstraint(model, options.grammar, grammarScratch);
      const choice = {
        ...{ maxTokens, minTokens: 0, stop: [], isStopIncluded: false, stopTokens: new Set<number>() },
        ...{ isEndIgnored: true, isSpecialShown: true, logprobCount: undefined, isLookup: false },
      };
      return new Choice(model, choice, prompt, { sampler, grammar });
    });
    return new Noted({ prompt, choices, maxTokens, isDrafted, priority: options.priority ?? 0 });
  };

  const assertIdle = (reports: readonly StepReport[]) => {
    const { running, waiting, cellsUsed, cellsCached } = reports.at(-1)!.stats;
    assert.deepEqual(
      { running, waiting, used: cellsUsed - cellsCached },
      { running: 0, waiting: 0, used: 0 },
    );
  };

  return { makeEngine, makeGeneration, assertIdle };
}
