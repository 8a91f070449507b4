// Answers the requests of one llama model: reads what is asked, hands generations to the engine and vectors to the
// embedding engine, and answers tokenization itself. An execution ends at once; its answers come by their senders.

import {
  type BackendInstance,
  BY_SENDER,
  type ExecuteBatch,
  type ExecuteReply,
  type ResponseSender,
} from '../../backend/sdk.ts';
import type { ServerCalls } from '../../backend/server-calls.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { StatusError } from '../../domain/status.ts';
import type { Drafter } from './engine/drafter.ts';
import type { EmbeddingEngine } from './engine/embedding-engine.ts';
import type { StepReport } from './engine/engine.ts';
import { EngineGroup } from './engine/engine-group.ts';
import type { SamplerPool } from './engine/sampler-pool.ts';
import type { SideContextOptions } from './engine/side-context.ts';
import { EngineMetrics } from './engine-metrics.ts';
import type { LlamaContext } from './library/context.ts';
import type { LlamaModel } from './library/model.ts';
import type { LlamaSettings } from './llama-settings.ts';
import type { ModelLimits } from './plan-limits.ts';
import { answerEmbedding, answerRerank } from './requests/answer-embedding.ts';
import { answerTokenize } from './requests/answer-tokenize.ts';
import { GenerationBuilder, type Prompt, type RequestParts } from './requests/build-generation.ts';
import type { GenerationReport, GenerationResponder } from './requests/generation-responder.ts';
import { type LlamaRequest, readRequest } from './requests/read-request.ts';
import { parseRequestInfo } from './requests/request-info.ts';
import { ResponseTensors } from './requests/response-tensors.ts';
import { compileChatTemplate } from './text/chat-template.ts';

export interface InstanceParts {
  readonly config: ModelConfig;
  readonly version: number;
  readonly model: LlamaModel;
  readonly limits: ModelLimits;
  /** Of each context. */
  readonly eachLimits: ModelLimits;
  readonly settings: LlamaSettings;
  /** None for models that do not generate. */
  readonly contexts: readonly LlamaContext[];
  readonly side: SideContextOptions | undefined;
  readonly embedding: EmbeddingEngine | undefined;
  readonly pool: SamplerPool | undefined;
  readonly drafter: Drafter | undefined;
  readonly adapters: readonly bigint[];
  readonly chatTemplate: string | undefined;
  readonly calls: ServerCalls | undefined;
  log(level: 'warning', message: string): void;
}

export class LlamaInstance implements BackendInstance {
  readonly #parts: InstanceParts;
  readonly #engine: EngineGroup | undefined;
  readonly #builder: GenerationBuilder;
  readonly #metrics: EngineMetrics;
  readonly #inputNames: readonly string[];
  readonly #outputIndexes: ReadonlyMap<string, number>;
  /** By `batch:request`. */
  readonly #open = new Map<string, GenerationResponder>();

  constructor(parts: InstanceParts) {
    const { config, model, limits } = parts;
    this.#parts = parts;
    this.#inputNames = config.input.map(({ name }) => name);
    this.#outputIndexes = new Map(config.output.map(({ name }, index) => [name, index]));
    this.#metrics = new EngineMetrics(parts.calls, {
      name: config.name,
      version: parts.version,
      contextLength: limits.contextLength,
    });
    this.#builder = new GenerationBuilder({
      model,
      limits,
      settings: parts.settings,
      template: compileChatTemplate({
        text: parts.chatTemplate,
        toolUseText:
          parts.settings.chatTemplateFile === undefined ? model.templateNamed('tool_use') : undefined,
        bosToken: model.tokenText(model.beginToken),
        eosToken: model.tokenText(model.endToken),
      }),
      templateText: parts.chatTemplate,
      pool: parts.pool,
    });
    if (parts.contexts.length > 0) this.#engine = this.#startEngine();
  }

  execute(batch: ExecuteBatch, senderOf: (request: number) => ResponseSender): ExecuteReply {
    batch.requests.forEach((_, index) => {
      const sender = senderOf(index);
      try {
        this.#begin(batch, index, sender);
      } catch (thrown) {
        sender.send(StatusError.from(thrown), true);
      }
    });
    return {
      results: batch.requests.map(() => BY_SENDER),
      computeInputNs: 0,
      computeInferNs: 0,
      computeOutputNs: 0,
    };
  }

  /** Executions are over at once. */
  cancel(): void {}

  cancelRequest(batchId: number, request: number): void {
    const responder = this.#open.get(`${batchId}:${request}`);
    if (responder === undefined) return;
    this.#engine?.cancel(responder);
    responder.cancel();
  }

  async close(): Promise<void> {
    await this.#engine?.close();
    await this.#parts.pool?.close();
    await this.#parts.embedding?.close();
    this.#parts.drafter?.free();
    this.#parts.side?.context.free();
    for (const context of this.#parts.contexts) context.free();
    this.#metrics.close();
    this.#parts.model.free();
  }

  #startEngine(): EngineGroup {
    const { eachLimits: limits, contexts, settings, side, drafter, adapters, pool } = this.#parts;
    return new EngineGroup({
      contexts,
      side,
      limits: {
        cellCount: Math.min(limits.cellCount, contexts[0]!.cellCount),
        sequenceCount: limits.sequenceCount,
        stepTokensMax: limits.stepTokens,
        prefillChunkMax: limits.prefillChunk,
        apartRowsMin: limits.apartRows,
        runningMax: limits.runningMax,
        waitingMax: settings.maxWaiting,
        contextLength: limits.contextLength,
        isContextShift: settings.isContextShift,
        isPrefixReuse: limits.isPrefixCache,
        keptCellsMax: limits.keptCellsMax,
        keptCellsMin: limits.keptCellsMin,
      },
      adapters,
      isDeviceSampling: limits.isDeviceSampling,
      pool,
      drafter,
      draftTokens: settings.draftTokens,
      draftSequencesMax: settings.draftSequencesMax,
      onStep: (report) => this.#onStep(report),
      warn: (message) => this.#parts.log('warning', message),
    });
  }

  #begin(batch: ExecuteBatch, index: number, sender: ResponseSender): void {
    const execute = batch.requests[index]!;
    const request = readRequest(batch, execute, this.#inputNames);
    const tensors = () => new ResponseTensors(this.#outputIndexes, execute.requestedOutputs);
    switch (request.question.kind) {
      case 'embed':
        this.#answer(
          sender,
          tensors,
          answerEmbedding(this.#parts, request.question.body, () => !sender.isCancelled),
          request,
        );
        return;
      case 'rerank':
        this.#answer(
          sender,
          tensors,
          answerRerank(this.#parts, request.question.body, () => !sender.isCancelled),
          request,
        );
        return;
      case 'tokenize':
        this.#answer(sender, tensors, answerTokenize(this.#builder, request.question.body), request);
        return;
      default:
    }
    const engine = this.#engine;
    if (engine === undefined) {
      throw new StatusError(
        'INVALID_ARG',
        `Model ${this.#parts.config.name} does not support 'generate' request`,
      );
    }
    const key = `${batch.id}:${index}`;
    const parts = { info: parseRequestInfo(execute.info), sender, tensors };
    const prompt = this.#builder.readPrompt(request.question);
    if (!(prompt instanceof Promise)) {
      this.#generate(engine, key, this.#build(request, prompt, key, parts));
      return;
    }
    prompt
      .then((known) => {
        if (sender.isCancelled) throw new StatusError('CANCELLED', 'Request was cancelled');
        this.#generate(engine, key, this.#build(request, known, key, parts));
      })
      .catch((thrown: unknown) => sender.send(StatusError.from(thrown), true));
  }

  #build(
    request: LlamaRequest,
    prompt: Prompt,
    key: string,
    parts: Pick<RequestParts, 'info' | 'sender' | 'tensors'>,
  ): GenerationResponder {
    return this.#builder.build(request, prompt, {
      ...parts,
      onStarted: (promptTokens, cachedTokens) => {
        this.#metrics.count('promptTokens', promptTokens);
        this.#metrics.count('prefixQueried', promptTokens);
        this.#metrics.count('prefixHit', cachedTokens);
      },
      onEnd: (report) => {
        this.#open.delete(key);
        this.#onEnd(report);
      },
    });
  }

  #generate(engine: EngineGroup, key: string, responder: GenerationResponder): void {
    try {
      engine.submit(responder);
    } catch (thrown) {
      responder.drop();
      throw thrown;
    }
    this.#open.set(key, responder);
  }

  /** One response with JSON in it. */
  #answer(
    sender: ResponseSender,
    tensors: () => ResponseTensors,
    pending: Promise<{ json: object; promptTokens: number }>,
    request: LlamaRequest,
  ): void {
    void pending.then(
      ({ json, promptTokens }) => {
        const response = tensors().texts('text_output', [JSON.stringify(json)]);
        if (request.extras.has('inputTokens')) response.uint32s('num_input_tokens', [promptTokens]);
        this.#metrics.count('promptTokens', promptTokens);
        sender.send(response.outputs, true);
      },
      (thrown: unknown) => sender.send(StatusError.from(thrown), true),
    );
  }

  #onStep(report: StepReport): void {
    const { sequences, tokens, durationMs, stats, statsBefore } = report;
    this.#metrics.count('generatedTokens', tokens);
    if (sequences > 0) this.#metrics.observe('perToken', (durationMs * sequences) / tokens / 1000, tokens);
    this.#metrics.takeStats(stats, statsBefore, this.#parts.limits.cellCount);
  }

  #onEnd(report: GenerationReport): void {
    const metrics = this.#metrics;
    metrics.countFinished(report.reason);
    metrics.observe('request', report.totalMs / 1000);
    metrics.observe('choices', report.choiceCount);
    metrics.observe('promptLength', report.promptTokens);
    metrics.observe('generatedLength', report.generatedTokens);
    if (report.firstTokenMs !== undefined) metrics.observe('firstToken', report.firstTokenMs / 1000);
  }
}
