// Makes a generation of a request: its prompt as tokens, its settings checked, one choice for each text it wants. Everything
// that can be wrong with a request is refused here, before it takes a place in the engine.

import { randomInt } from 'node:crypto';
import type { ResponseSender } from '../../../backend/sdk.ts';
import { invalidArgument } from '../../../domain/status.ts';
import { createPrng } from '../../../lib/prng.ts';
import { CandidateList } from '../engine/candidate-list.ts';
import { Choice, type ChoiceSettings } from '../engine/choice.ts';
import type { PooledSampler, SamplerPool } from '../engine/sampler-pool.ts';
import { type SamplerSettings, TokenSampler } from '../engine/token-sampler.ts';
import { CandidateMemory, GrammarConstraint } from '../library/grammar.ts';
import type { LlamaModel, TokenizeOptions } from '../library/model.ts';
import type { LlamaSettings } from '../llama-settings.ts';
import type { ModelLimits } from '../plan-limits.ts';
import type { ChatTemplate } from '../text/chat-template.ts';
import {
  parseSamplingParameters,
  type SamplingSettings,
  samplingFromRequestParameters,
} from '../text/sampling-parameters.ts';
import {
  parseToolChoice,
  parseTools,
  type ToolFormat,
  toolFormatOf,
  toolGrammar,
} from '../text/tool-format.ts';
import { type GenerationReport, GenerationResponder } from './generation-responder.ts';
import { PromptTokenizer } from './prompt-tokenizer.ts';
import type { LlamaRequest, Question } from './read-request.ts';
import type { RequestInfo } from './request-info.ts';
import type { ResponseTensors } from './response-tensors.ts';

/** Characters that are tokenized without asking first whether so many can fit. */
const UNASKED_MAX = 16_384;

export interface BuilderParts {
  readonly model: LlamaModel;
  readonly limits: ModelLimits;
  readonly settings: LlamaSettings;
  readonly template: ChatTemplate;
  readonly templateText: string | undefined;
  /** Undefined: all tokens are chosen on this thread. */
  readonly pool?: SamplerPool | undefined;
}

export interface RequestParts {
  readonly info: RequestInfo;
  readonly sender: ResponseSender;
  tensors(): ResponseTensors;
  onStarted(promptTokens: number, cachedTokens: number): void;
  onEnd(report: GenerationReport): void;
}

export interface Prompt {
  readonly tokens: readonly number[];
  /** As the client gave it. */
  readonly text: string;
  /** A grammar that forces tool calls. */
  readonly grammar: string | undefined;
  readonly hasTools: boolean;
  readonly stop: readonly string[];
}

export class GenerationBuilder {
  readonly #parts: BuilderParts;
  readonly #tokenizer: PromptTokenizer;
  readonly #toolFormat: ToolFormat;
  readonly #candidates: CandidateList;
  readonly #grammarScratch: CandidateMemory;

  constructor(parts: BuilderParts) {
    this.#parts = parts;
    this.#tokenizer = new PromptTokenizer(parts.model, parts.limits.hasDevice);
    this.#toolFormat = toolFormatOf(parts.templateText);
    this.#candidates = new CandidateList(parts.model.tokenCount);
    this.#grammarScratch = new CandidateMemory(parts.model.tokenCount);
  }

  get contextLength(): number {
    return this.#parts.limits.contextLength;
  }

  /** A promise for texts that take long to tokenize. */
  readPrompt(question: Question): Prompt | Promise<Prompt> {
    const plain = { grammar: undefined, hasTools: false, stop: [] };
    switch (question.kind) {
      case 'text': {
        const { text } = question;
        if (text === '') throw invalidArgument('the prompt is empty');
        const tokens = this.#tokenizePrompt(text, { isSpecialAdded: true, isSpecialParsed: true });
        return withTokens(tokens, { ...plain, text });
      }
      case 'tokens': {
        const tokens = this.#checkTokens(question.tokens);
        return { ...plain, tokens, text: this.textOf(tokens) };
      }
      case 'chat':
        return this.#readChat(question.chat);
      default:
        throw invalidArgument(`a ${question.kind} request generates no text`);
    }
  }

  build(
    request: LlamaRequest,
    prompt: Prompt,
    { info, sender, tensors, onStarted, onEnd }: RequestParts,
  ): GenerationResponder {
    if (request.isStream && request.isInputExcluded === false) {
      throw invalidArgument('When streaming, `exclude_input_in_output` = False is not allowed.');
    }
    const settings =
      request.samplingParameters === undefined
        ? samplingFromRequestParameters(Object.entries(info.parameters))
        : parseSamplingParameters(request.samplingParameters);
    const maxTokens = this.#checkLength(prompt.tokens.length, settings);
    const adapter = this.#findAdapter(settings.loraName);
    const { model } = this.#parts;
    const isSpecialShown = !settings.areSpecialTokensSkipped || prompt.hasTools;
    return new GenerationResponder({
      prompt: prompt.tokens,
      choices: this.#makeChoices(prompt, settings, {
        ...choiceSettings(settings, this.#speculation(settings) === 'lookup'),
        stop: [...settings.stop, ...prompt.stop],
        maxTokens,
        isSpecialShown,
        logprobCount: settings.logprobs ?? (wantsLogprobs(request) ? 0 : undefined),
      }),
      adapter,
      priority: settings.priority === 0 ? info.priority : settings.priority,
      maxTokens,
      isDrafted: this.#speculation(settings) === 'draft',
      isStream: request.isStream,
      echo: request.isInputExcluded === true || request.question.kind === 'chat' ? '' : prompt.text,
      extras: request.extras,
      logprobsFormat: settings.logprobsFormat,
      pieceOf: (token) => model.piece(token, true),
      tensors,
      sender,
      onStarted: (cachedTokens) => onStarted(prompt.tokens.length, cachedTokens),
      onEnd,
    });
  }

  tokenize(text: unknown, options: TokenizeOptions): number[] | Promise<number[]> {
    if (typeof text !== 'string') throw invalidArgument("'text' must be a string");
    return this.#tokenizer.tokenize(text, options);
  }

  renderChat(chat: Readonly<Record<string, unknown>>): number[] | Promise<number[]> {
    const { text, options } = this.#renderChat(chat);
    return this.tokenize(text, options);
  }

  /** A template writes the first token itself where the model wants one. */
  #renderChat(chat: Readonly<Record<string, unknown>>): { text: string; options: TokenizeOptions } {
    const { template, model, limits } = this.#parts;
    const { messages } = chat;
    if (Array.isArray(messages) && messages.length > limits.contextLength) {
      throw invalidArgument(
        `there are ${messages.length} messages, more than this model's context has tokens (${limits.contextLength})`,
      );
    }
    const text = template.render({
      messages,
      tools: chat.tools ?? undefined,
      kwargs: chat.chat_template_kwargs ?? undefined,
    });
    const begin = model.beginToken;
    const isBegun = begin >= 0 && text.startsWith(model.tokenText(begin));
    return { text, options: { isSpecialAdded: !isBegun, isSpecialParsed: true } };
  }

  /** What cannot fit is refused before it is tokenized. */
  #tokenizePrompt(text: string, options: TokenizeOptions): number[] | Promise<number[]> {
    const { model, limits } = this.#parts;
    if (text.length > UNASKED_MAX) {
      const bytes = Buffer.byteLength(text);
      const least = Math.ceil(bytes / model.longestPiece);
      if (least >= limits.contextLength) {
        throw invalidArgument(
          `the prompt has ${bytes} bytes, which are at least ${least} tokens, but this model's context is ${limits.contextLength} tokens`,
        );
      }
    }
    return this.tokenize(text, options);
  }

  textOf(tokens: readonly unknown[]): string {
    return Buffer.concat(
      this.#checkTokens(tokens).map((token) => this.#parts.model.piece(token, true)),
    ).toString();
  }

  pieceText(token: number): string {
    return this.#parts.model.piece(token, true).toString();
  }

  #readChat(chat: Readonly<Record<string, unknown>>): Prompt | Promise<Prompt> {
    const tools = parseTools(chat.tools ?? undefined);
    const toolChoice = parseToolChoice(chat.tool_choice ?? undefined, tools);
    const isParallel = chat.parallel_tool_calls !== false;
    const { text, options } = this.#renderChat(toolChoice === 'none' ? { ...chat, tools: undefined } : chat);
    return withTokens(this.#tokenizePrompt(text, options), {
      text: '',
      grammar: toolGrammar({ tools, toolChoice, isParallel, format: this.#toolFormat }),
      hasTools: tools.length > 0 && toolChoice !== 'none',
      stop: this.#parts.template.stopStrings,
    });
  }

  #checkTokens(tokens: readonly unknown[]): number[] {
    const { tokenCount } = this.#parts.model;
    if (tokens.length === 0) throw invalidArgument('the prompt is empty');
    const wrong = tokens.find(
      (token) => !Number.isInteger(token) || Number(token) < 0 || Number(token) >= tokenCount,
    );
    if (wrong !== undefined)
      throw invalidArgument(`${String(wrong)} is no token of this model, which has ${tokenCount}`);
    return tokens as number[];
  }

  /** How many tokens may be generated. */
  #checkLength(promptLength: number, { maxTokens }: SamplingSettings): number {
    const { limits, settings } = this.#parts;
    const { contextLength } = limits;
    const room = contextLength - promptLength;
    if (room < 1) {
      throw invalidArgument(
        `the prompt has ${promptLength} tokens, but this model's context is ${contextLength} tokens and the answer needs at least one: ` +
          "shorten the prompt, or raise the parameter 'context_length' of its config",
      );
    }
    // Without a number even a text that could go on for ever ends where the context does.
    if (maxTokens === null) return room;
    return settings.isContextShift ? maxTokens : Math.min(maxTokens, room);
  }

  #makeChoices(prompt: Prompt, settings: SamplingSettings, choice: ChoiceSettings): Choice[] {
    const { model } = this.#parts;
    const grammarText = settings.grammar ?? prompt.grammar;
    const seed = settings.seed ?? randomInt(2 ** 32);
    const { maxWaiting } = this.#parts.settings;
    if (settings.n > maxWaiting) {
      throw invalidArgument(
        `sampling parameter 'n' is ${settings.n}, but only ${maxWaiting} texts may wait; raise the parameter 'max_waiting' of the model's config`,
      );
    }
    return Array.from({ length: settings.n }, (_, i) => {
      const grammar =
        grammarText === undefined
          ? undefined
          : new GrammarConstraint(model, grammarText, this.#grammarScratch);
      const sampler = new TokenSampler(settings, prompt.tokens, createPrng(seed + i), this.#candidates);
      const pooled =
        grammar === undefined ? this.#pool(prompt.tokens, settings, choice, seed + i) : undefined;
      return new Choice(model, choice, prompt.tokens, { sampler, grammar, pooled });
    });
  }

  /** Threads of the pool see nothing but logits: whoever needs more of a step is served here. */
  #pool(
    prompt: readonly number[],
    settings: SamplingSettings,
    { logprobCount, minTokens }: ChoiceSettings,
    seed: number,
  ): PooledSampler | undefined {
    const { pool } = this.#parts;
    const isSeen = logprobCount !== undefined || minTokens > 0 || this.#speculation(settings) !== 'off';
    if (pool === undefined || !pool.isOpen || isSeen) return undefined;
    const isPromptSeen = settings.repetitionPenalty !== 1;
    return pool.create({ settings: samplerSettings(settings), prompt: isPromptSeen ? prompt : [], seed });
  }

  #findAdapter(name: string | null): number {
    if (name === null) return 0;
    const { adapters } = this.#parts.settings;
    if (adapters.length === 0) throw invalidArgument('LoRA feature is not enabled.');
    const index = adapters.findIndex((adapter) => adapter.name === name);
    if (index >= 0) return index + 1;
    const names = adapters.map((adapter) => `'${adapter.name}'`).join(', ');
    throw invalidArgument(`LoRA ${name} is not supported, we currently support [${names}]`);
  }

  #speculation({ speculative }: SamplingSettings): 'off' | 'draft' | 'lookup' {
    const { settings, limits } = this.#parts;
    if (speculative === 'draft' && settings.draftFile === undefined) {
      throw invalidArgument(
        'sampling parameter \'speculative\' is "draft", but the model has no draft_model',
      );
    }
    if (speculative !== null && speculative !== 'off' && limits.isRecurrent) {
      throw invalidArgument(
        'sampling parameter \'speculative\' must be "off": the state of this model cannot be cut back',
      );
    }
    return speculative ?? settings.speculative;
  }
}

/** Only what a sampler needs travels to its thread. */
function samplerSettings(settings: SamplerSettings): SamplerSettings {
  const { temperature, topK, topP, minP, typicalP, logitBias } = settings;
  const { repetitionPenalty, presencePenalty, frequencyPenalty, penaltyLastTokens } = settings;
  return {
    ...{ temperature, topK, topP, minP, typicalP, logitBias },
    ...{ repetitionPenalty, presencePenalty, frequencyPenalty, penaltyLastTokens },
  };
}

function withTokens(
  tokens: readonly number[] | Promise<readonly number[]>,
  rest: Omit<Prompt, 'tokens'>,
): Prompt | Promise<Prompt> {
  return tokens instanceof Promise
    ? tokens.then((known) => ({ ...rest, tokens: known }))
    : { ...rest, tokens };
}

function wantsLogprobs({ extras }: LlamaRequest): boolean {
  return extras.has('logprobs') || extras.has('cumulativeLogprob');
}

function choiceSettings(settings: SamplingSettings, isLookup: boolean) {
  return {
    minTokens: settings.minTokens,
    isStopIncluded: settings.isStopIncluded,
    stopTokens: new Set(settings.stopTokenIds),
    isEndIgnored: settings.isEosIgnored,
    isLookup,
  };
}
