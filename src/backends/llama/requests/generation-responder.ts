// Answers one generation: takes the news of its choices and sends them, token by token or all at the end. A client that
// reads slowly gets its text in larger pieces; nothing waits for it and nothing is kept but the text itself.

import type { ResponseSender } from '../../../backend/sdk.ts';
import { StatusError } from '../../../domain/status.ts';
import type { Choice, ChoiceNews } from '../engine/choice.ts';
import type { Generation } from '../engine/generation.ts';
import { encodeLogprobs, type LogprobsFormat, type StepLogprobs } from '../text/logprobs.ts';
import type { Extra } from './read-request.ts';
import type { ResponseTensors } from './response-tensors.ts';

export interface ResponderOptions extends Omit<Generation, 'onNews' | 'onError'> {
  readonly isStream: boolean;
  /** Stands before the text of an answer that is sent as a whole. */
  readonly echo: string;
  readonly extras: ReadonlySet<Extra>;
  readonly logprobsFormat: LogprobsFormat;
  pieceOf(token: number): Uint8Array;
  tensors(): ResponseTensors;
  readonly sender: ResponseSender;
  /** Once, however it ends. */
  onEnd(report: GenerationReport): void;
}

export interface GenerationReport {
  /** `abort`: cancelled or failed. */
  readonly reason: 'stop' | 'length' | 'abort';
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  readonly choiceCount: number;
  /** Undefined when no token came. */
  readonly firstTokenMs: number | undefined;
  readonly totalMs: number;
}

/** What one choice has told and nobody has been sent yet. */
interface Unsent {
  text: string;
  tokenCount: number;
  logprobs: StepLogprobs[];
  isFinished: boolean;
}

export class GenerationResponder implements Generation {
  readonly #options: ResponderOptions;
  readonly #unsent: Unsent[];
  readonly #startMs = performance.now();
  #startedMs: number | undefined;
  #firstTokenMs: number | undefined;
  #cachedTokens = 0;
  #isWaiting = false;
  #isEnded = false;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#unsent = options.choices.map(() => ({ text: '', tokenCount: 0, logprobs: [], isFinished: false }));
  }

  get prompt(): readonly number[] {
    return this.#options.prompt;
  }

  get choices(): readonly Choice[] {
    return this.#options.choices;
  }

  get adapter(): number {
    return this.#options.adapter;
  }

  get priority(): number {
    return this.#options.priority;
  }

  get maxTokens(): number {
    return this.#options.maxTokens;
  }

  get isDrafted(): boolean {
    return this.#options.isDrafted;
  }

  onStarted(cachedTokens: number): void {
    this.#cachedTokens = cachedTokens;
    this.#startedMs = performance.now();
    this.#options.onStarted(cachedTokens);
  }

  onNews(): void {
    if (this.#isEnded) return;
    this.#firstTokenMs ??= performance.now();
    this.#options.choices.forEach((choice, i) => {
      gather(this.#unsent[i]!, choice.takeNews());
    });
    const isFinished = this.#unsent.every((unsent) => unsent.isFinished);
    if (!this.#options.isStream) {
      if (isFinished) this.#send(true);
      return;
    }
    if (this.#options.sender.hasRoom) this.#send(isFinished);
    else this.#sendLater();
  }

  onError(error: StatusError): void {
    if (this.#isEnded) return;
    this.#options.sender.send(error, true);
    this.#end('abort');
  }

  /** The client has gone. */
  cancel(): void {
    this.onError(new StatusError('CANCELLED', 'Request was cancelled'));
  }

  /** It was never taken: nobody is told here. */
  drop(): void {
    this.#isEnded = true;
    for (const choice of this.#options.choices) choice.free();
  }

  #sendLater(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    void this.#options.sender.whenRoom().then(() => {
      this.#isWaiting = false;
      if (!this.#isEnded) this.#send(this.#unsent.every((unsent) => unsent.isFinished));
    });
  }

  #send(isFinal: boolean): void {
    const { isStream, echo } = this.#options;
    // Half a character or the beginning of a stop string is no news yet.
    const hasNews = isFinal || this.#unsent.some(({ text, tokenCount }) => text !== '' || tokenCount > 0);
    if (isStream && !hasNews) return;
    const tensors = this.#options.tensors();
    tensors.texts(
      'text_output',
      this.#unsent.map(({ text }) => (isStream ? text : echo + text)),
    );
    this.#addExtras(tensors, isFinal);
    for (const unsent of this.#unsent) {
      unsent.text = '';
      unsent.tokenCount = 0;
      unsent.logprobs = [];
    }
    this.#options.sender.send(tensors.outputs, isFinal);
    if (isFinal)
      this.#end(
        this.#options.choices.some(({ finishReason }) => finishReason === 'length') ? 'length' : 'stop',
      );
  }

  #addExtras(tensors: ResponseTensors, isFinal: boolean): void {
    const { extras, choices, prompt, logprobsFormat, pieceOf } = this.#options;
    if (extras.has('finishReason')) {
      tensors.texts(
        'finish_reason',
        choices.map(({ finishReason }) => finishReason ?? 'None'),
      );
    }
    if (extras.has('cumulativeLogprob')) {
      tensors.floats(
        'cumulative_logprob',
        choices.map(({ cumulativeLogprob }) => cumulativeLogprob),
      );
    }
    if (extras.has('logprobs')) {
      const format = { format: logprobsFormat, pieceOf };
      tensors.texts(
        'logprobs',
        this.#unsent.map(({ logprobs }) => encodeLogprobs(logprobs, format)),
      );
    }
    if (extras.has('inputTokens')) {
      tensors.uint32s('num_input_tokens', [prompt.length]).uint32s('num_cached_tokens', [this.#cachedTokens]);
    }
    if (extras.has('outputTokens')) {
      tensors.uint32s(
        'num_output_tokens',
        this.#unsent.map(({ tokenCount }) => tokenCount),
      );
    }
    if (extras.has('timings') && isFinal) tensors.texts('timings', [JSON.stringify(this.#timings())]);
  }

  #timings() {
    const nowMs = performance.now();
    const startedMs = this.#startedMs ?? nowMs;
    const firstMs = this.#firstTokenMs ?? nowMs;
    const generated = this.#generatedTokens;
    const round = (ms: number) => Math.round(ms * 1000) / 1000;
    return {
      queue_ms: round(startedMs - this.#startMs),
      prompt_ms: round(firstMs - startedMs),
      time_to_first_token_ms: round(firstMs - this.#startMs),
      generation_ms: round(nowMs - firstMs),
      total_ms: round(nowMs - this.#startMs),
      prompt_tokens: this.#options.prompt.length,
      cached_tokens: this.#cachedTokens,
      completion_tokens: generated,
      tokens_per_second: generated < 2 ? null : round(((generated - 1) * 1000) / (nowMs - firstMs)),
    };
  }

  get #generatedTokens(): number {
    return this.#options.choices.reduce((sum, { tokens }) => sum + tokens.length, 0);
  }

  #end(reason: GenerationReport['reason']): void {
    this.#isEnded = true;
    for (const choice of this.#options.choices) choice.free();
    this.#options.onEnd({
      reason,
      promptTokens: this.#options.prompt.length,
      cachedTokens: this.#cachedTokens,
      generatedTokens: this.#generatedTokens,
      choiceCount: this.#options.choices.length,
      firstTokenMs: this.#firstTokenMs === undefined ? undefined : this.#firstTokenMs - this.#startMs,
      totalMs: performance.now() - this.#startMs,
    });
  }
}

function gather(unsent: Unsent, news: ChoiceNews): void {
  unsent.text += news.text;
  unsent.tokenCount += news.tokenCount;
  unsent.logprobs.push(...news.logprobs);
  unsent.isFinished = news.finishReason !== undefined;
}
