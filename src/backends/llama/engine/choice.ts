// One text in the making: chooses its tokens, follows its grammar, turns tokens into text that may be sent, and knows when
// it is over. A request has n of them. The engine feeds it logits; the responder takes its news.

import type { GrammarConstraint } from '../library/grammar.ts';
import type { LlamaModel } from '../library/model.ts';
import { computeLogprobs, type StepLogprobs } from '../text/logprobs.ts';
import { PromptLookup } from '../text/prompt-lookup.ts';
import { StopStrings } from '../text/stop-strings.ts';
import { Utf8Assembler } from '../text/utf8-assembler.ts';
import type { PooledSampler } from './sampler-pool.ts';
import type { TokenSampler } from './token-sampler.ts';

export type FinishReason = 'stop' | 'length';

export interface ChoiceSettings {
  readonly maxTokens: number;
  readonly minTokens: number;
  readonly stop: readonly string[];
  readonly isStopIncluded: boolean;
  readonly stopTokens: ReadonlySet<number>;
  readonly isEndIgnored: boolean;
  /** Control tokens have a text. */
  readonly isSpecialShown: boolean;
  /** Alternatives to tell of; undefined for no log probabilities at all. */
  readonly logprobCount: number | undefined;
  readonly isLookup: boolean;
}

/** What has happened since it was last taken. */
export interface ChoiceNews {
  readonly text: string;
  readonly tokenCount: number;
  readonly logprobs: readonly StepLogprobs[];
  readonly finishReason: FinishReason | undefined;
}

/** What a choice asks of its model and of its grammar. */
export type ChoiceVocabulary = Pick<LlamaModel, 'endTokens' | 'isEndOfGeneration' | 'piece'>;
export type ChoiceGrammar = Pick<GrammarConstraint, 'allows' | 'mask' | 'accept' | 'free'>;

const DRAWS_BEFORE_MASK = 24;

export class Choice {
  readonly #model: ChoiceVocabulary;
  readonly #settings: ChoiceSettings;
  readonly #sampler: TokenSampler;
  /** The same on another thread; undefined where the tokens must be chosen here. */
  readonly pooled: PooledSampler | undefined;
  readonly #grammar: ChoiceGrammar | undefined;
  readonly #assembler = new Utf8Assembler();
  readonly #stops: StopStrings;
  readonly #lookup: PromptLookup | undefined;
  readonly #tokens: number[] = [];
  #text = '';
  #takenTokens = 0;
  #logprobs: StepLogprobs[] = [];
  #finishReason: FinishReason | undefined;
  /** Of all tokens so far, where log probabilities are asked for. */
  cumulativeLogprob = 0;

  constructor(
    model: ChoiceVocabulary,
    settings: ChoiceSettings,
    prompt: readonly number[],
    parts: {
      readonly sampler: TokenSampler;
      readonly grammar: ChoiceGrammar | undefined;
      readonly pooled?: PooledSampler | undefined;
    },
  ) {
    this.#model = model;
    this.#settings = settings;
    this.#sampler = parts.sampler;
    this.#grammar = parts.grammar;
    this.pooled = parts.pooled;
    this.#stops = new StopStrings(settings.stop, { isIncluded: settings.isStopIncluded });
    this.#lookup = settings.isLookup ? new PromptLookup(prompt) : undefined;
  }

  get tokens(): readonly number[] {
    return this.#tokens;
  }

  get finishReason(): FinishReason | undefined {
    return this.#finishReason;
  }

  /** True when a device may choose all tokens: the largest logit, with nothing to see or to forbid. */
  get isDeviceChosen(): boolean {
    const { logprobCount, minTokens } = this.#settings;
    return (
      this.#sampler.isPlainGreedy &&
      this.#grammar === undefined &&
      logprobCount === undefined &&
      minTokens === 0
    );
  }

  /** It proposes what may follow. */
  get isLookup(): boolean {
    return this.#lookup !== undefined;
  }

  /** What may follow, from the text itself. */
  propose(count: number): readonly number[] {
    return this.#lookup?.propose(count) ?? [];
  }

  /** Chooses from the logits, which are changed, and takes the token. */
  next(logits: Float32Array): number {
    const { logprobCount, minTokens } = this.#settings;
    const raw = logprobCount === undefined ? undefined : Float32Array.from(logits);
    if (this.#tokens.length < minTokens) this.#forbidEnd(logits);
    let token = this.#sampler.choose(logits);
    if (this.#grammar !== undefined && !this.#grammar.allows(token)) {
      token = this.#chooseAllowed(this.#grammar, logits, token);
      if (!(logits[token]! > Number.NEGATIVE_INFINITY)) {
        this.#finish('stop');
        return token;
      }
    }
    if (raw !== undefined) {
      const logprobs = computeLogprobs(raw, { token, topCount: logprobCount! });
      this.#logprobs.push(logprobs);
      this.cumulativeLogprob += logprobs.chosen.logprob;
    }
    return this.take(token);
  }

  /** A token that was chosen elsewhere; returns it. */
  take(token: number): number {
    const { maxTokens, minTokens, isEndIgnored, stopTokens, isSpecialShown } = this.#settings;
    this.#tokens.push(token);
    this.#sampler.accept(token);
    this.#lookup?.append(token);
    if (stopTokens.has(token) || (!isEndIgnored && this.#model.isEndOfGeneration(token))) {
      this.#finish('stop');
      return token;
    }
    this.#grammar?.accept(token);
    const text = this.#assembler.push(this.#model.piece(token, isSpecialShown));
    if (this.#tokens.length <= minTokens) {
      this.#text += text;
    } else {
      const { text: sendable, stop } = this.#stops.push(text);
      this.#text += sendable;
      if (stop !== null) {
        this.#finishReason = 'stop';
        return token;
      }
    }
    if (this.#tokens.length >= maxTokens) this.#finish('length');
    return token;
  }

  takeNews(): ChoiceNews {
    const news = {
      text: this.#text,
      tokenCount: this.#tokens.length - this.#takenTokens,
      logprobs: this.#logprobs,
      finishReason: this.#finishReason,
    };
    this.#text = '';
    this.#takenTokens = this.#tokens.length;
    this.#logprobs = [];
    return news;
  }

  free(): void {
    this.pooled?.free();
    this.#grammar?.free();
  }

  /**
   * Draws again without those that were refused. The first that is allowed comes as often as it would from the allowed ones
   * alone, and is found long before a grammar has looked at a whole vocabulary, which takes it milliseconds.
   */
  #chooseAllowed(grammar: ChoiceGrammar, logits: Float32Array, refused: number): number {
    let token = refused;
    for (let i = 0; i < DRAWS_BEFORE_MASK; i++) {
      logits[token] = Number.NEGATIVE_INFINITY;
      token = this.#sampler.chooseAgain(logits);
      if (logits[token] === Number.NEGATIVE_INFINITY || grammar.allows(token)) return token;
    }
    grammar.mask(logits);
    return this.#sampler.chooseAgain(logits);
  }

  #finish(reason: FinishReason): void {
    // Half a character, where the last token allowed cut it off, is left out.
    this.#text += this.#stops.flush();
    this.#finishReason = reason;
  }

  #forbidEnd(logits: Float32Array): void {
    for (const token of this.#model.endTokens) logits[token] = Number.NEGATIVE_INFINITY;
    for (const token of this.#settings.stopTokens) logits[token] = Number.NEGATIVE_INFINITY;
  }
}
