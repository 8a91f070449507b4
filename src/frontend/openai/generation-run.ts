// One request to generate while it runs: its inferences, one for each prompt and, with models that give one choice at a time,
// for each choice. Responses come in from the core and go out, choice by choice, to a listener that writes them. Answered
// exactly once: one `onDone` or one `onError`, whatever the inferences do, and nothing after the client has gone.

import { StringDecoder } from 'node:string_decoder';
import type { InferCall } from '../../core/infer.ts';
import type { InferRequest, InferResponse, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import type { StatusError } from '../../domain/status.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import { ApiError } from './api-error.ts';
import { type FinishReason, type ResponsePiece, readPiece } from './response-piece.ts';
import type { TokenLogprob } from './token-logprobs.ts';

/** News of one choice. */
export interface ChoicePiece {
  readonly choice: number;
  readonly text: string;
  readonly logprobs: readonly TokenLogprob[];
  /** Set once, with the last piece of the choice. */
  readonly finishReason: FinishReason | undefined;
}

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Undefined when the model does not tell. */
  readonly cachedTokens: number | undefined;
}

export interface GenerationListener {
  /** True: the client reads too slowly; `GenerationRun.room` is called when it has caught up. */
  readonly isBehind: boolean;
  onPiece(piece: ChoicePiece): void;
  onTimings(timings: unknown): void;
  /** Every choice has been finished. `usage` is undefined when the model does not count tokens. */
  onDone(usage: Usage | undefined): void;
  onError(error: ApiError): void;
}

/** One inference of the run. */
export interface RunPart {
  readonly request: InferRequest;
  /** Its choices are numbered from here. */
  readonly firstChoice: number;
  readonly choiceCount: number;
  readonly trace: RequestTrace | undefined;
}

export interface RunOptions {
  readonly parts: readonly RunPart[];
  /** Tells a choice that was cut from one that ended, where the model itself does not. */
  readonly maxTokens: number | undefined;
  /** Under which name the client asked for structured outputs. */
  readonly structureField: string | undefined;
  /** Prompts that more than one part has; their tokens count once. */
  readonly partsPerPrompt: number;
  /** That of the client. */
  readonly cancellation: Cancellation;
  infer(call: Pick<InferCall, 'request' | 'sink' | 'cancellation' | 'trace'>): void;
}

export class GenerationRun {
  readonly #options: RunOptions;
  readonly #listener: GenerationListener;
  readonly #sinks: PartSink[];
  #openCount: number;
  #isOver = false;

  constructor(options: RunOptions, listener: GenerationListener) {
    this.#options = options;
    this.#listener = listener;
    this.#openCount = options.parts.length;
    this.#sinks = options.parts.map((part) => new PartSink(this, part, options.maxTokens));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get listener(): GenerationListener {
    return this.#listener;
  }

  start(): void {
    this.#options.cancellation.onCancel(() => {
      this.#isOver = true;
      this.#cancelParts();
    });
    for (const sink of this.#sinks) {
      const { request, trace } = sink.part;
      try {
        if (!this.#isOver) this.#options.infer({ request, sink, cancellation: sink.cancellation, trace });
        else sink.end();
      } catch (thrown) {
        sink.end();
        this.fail(thrown);
      }
    }
  }

  /** The client has caught up. */
  room(): void {
    for (const sink of this.#sinks) sink.onRoom?.();
  }

  /**
   * The first failure of a part is that of the whole; the others work for nobody then. They are cancelled when the core, which
   * calls us in the middle of its work on a batch, has finished that.
   */
  fail(thrown: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    queueMicrotask(() => this.#cancelParts());
    this.#listener.onError(ApiError.from(thrown, this.#options.structureField));
  }

  partDone(): void {
    this.#openCount -= 1;
    if (this.#openCount > 0 || this.#isOver) return;
    this.#isOver = true;
    this.#listener.onDone(this.#usage());
  }

  #cancelParts(): void {
    for (const sink of this.#sinks) if (!sink.isEnded) sink.cancellation.cancel();
  }

  #usage(): Usage | undefined {
    let promptTokens = 0;
    let completionTokens = 0;
    let cachedTokens: number | undefined;
    for (const [i, { counts }] of this.#sinks.entries()) {
      if (counts.inputTokens === undefined || counts.outputTokens === undefined) return undefined;
      completionTokens += counts.outputTokens;
      if (i % this.#options.partsPerPrompt > 0) continue;
      promptTokens += counts.inputTokens;
      if (counts.cachedTokens !== undefined) cachedTokens = (cachedTokens ?? 0) + counts.cachedTokens;
    }
    return { promptTokens, completionTokens, cachedTokens };
  }
}

interface Counts {
  inputTokens: number | undefined;
  cachedTokens: number | undefined;
  outputTokens: number | undefined;
}

/** What is known of one choice of a part. */
interface Choice {
  readonly decoder: StringDecoder;
  tokenCount: number;
  isFinished: boolean;
}

class PartSink implements ResponseSink {
  readonly part: RunPart;
  readonly cancellation = new Cancellation();
  readonly counts: Counts = { inputTokens: undefined, cachedTokens: undefined, outputTokens: undefined };
  readonly #run: GenerationRun;
  readonly #choices: readonly Choice[];
  readonly #maxTokens: number | undefined;
  #isEnded = false;
  onRoom: (() => void) | undefined;

  constructor(run: GenerationRun, part: RunPart, maxTokens: number | undefined) {
    this.#run = run;
    this.part = part;
    this.#maxTokens = maxTokens;
    this.#choices = Array.from({ length: part.choiceCount }, () => ({
      decoder: new StringDecoder('utf8'),
      tokenCount: 0,
      isFinished: false,
    }));
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  send(response: InferResponse): boolean {
    this.part.trace?.mark('INFER_RESPONSE_COMPLETE');
    if (this.#run.isOver) return true;
    try {
      this.#take(readPiece(response));
    } catch (thrown) {
      this.#run.fail(thrown);
    }
    return this.#run.isOver || !this.#run.listener.isBehind;
  }

  sendError(error: StatusError): boolean {
    this.#run.fail(error);
    return true;
  }

  finish(): void {
    this.#isEnded = true;
    if (!this.#run.isOver) this.#finishChoices();
    this.end();
  }

  fail(error: StatusError): void {
    this.#isEnded = true;
    this.#run.fail(error);
    this.end();
  }

  /** Nothing comes any more, and what depends on this part has been written: its trace is complete. */
  end(): void {
    const { trace } = this.part;
    this.#isEnded = true;
    trace?.mark('HTTP_SEND_START');
    trace?.mark('HTTP_SEND_END');
    trace?.end();
  }

  #finishChoices(): void {
    for (const [i, choice] of this.#choices.entries()) {
      if (!choice.isFinished)
        this.#emit(i, { text: '', logprobs: [], finishReason: this.#guessReason(choice) });
    }
    this.#run.partDone();
  }

  #take(piece: ResponsePiece): void {
    const { counts } = this;
    counts.inputTokens = piece.inputTokens ?? counts.inputTokens;
    counts.cachedTokens = piece.cachedTokens ?? counts.cachedTokens;
    if (piece.timings !== undefined) this.#run.listener.onTimings(piece.timings);
    for (const [i, choice] of this.#choices.entries()) {
      const tokens = piece.outputTokens[i];
      if (tokens !== undefined) {
        choice.tokenCount += tokens;
        counts.outputTokens = (counts.outputTokens ?? 0) + tokens;
      }
      const bytes = piece.texts[i];
      const text = bytes === undefined ? '' : choice.decoder.write(bytes);
      const logprobs = piece.logprobs[i] ?? [];
      const finishReason = piece.finishReasons[i];
      if (choice.isFinished || (text === '' && logprobs.length === 0 && finishReason === undefined)) continue;
      this.#emit(i, { text, logprobs, finishReason });
    }
  }

  #emit(i: number, news: Omit<ChoicePiece, 'choice'>): void {
    const choice = this.#choices[i]!;
    const { finishReason } = news;
    choice.isFinished = finishReason !== undefined;
    // What is left of a character that was never completed.
    const text = choice.isFinished ? news.text + choice.decoder.end() : news.text;
    this.#run.listener.onPiece({ ...news, text, choice: this.part.firstChoice + i });
  }

  /** For a model that gives no reason. */
  #guessReason(choice: Choice): FinishReason {
    return this.#maxTokens !== undefined && choice.tokenCount >= this.#maxTokens ? 'length' : 'stop';
  }
}
